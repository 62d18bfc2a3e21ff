import { ApiError } from '../../src/api/errors.ts';
import type { Change, Entry, FileEntry, FolderEntry, Page } from '../../src/api/remote.ts';
import { nameOf, namesOf, type Path, parentOf, pathOf, ROOT } from '../../src/util/path.ts';
import { MemoryRemote } from './memory-remote.ts';

const PAGE_ENTRIES = 2000;

/**
 * A `Remote` with too many entries to keep in memory: `/folder-0/file-0.txt` and so on, made on demand.
 * Otherwise it is a `MemoryRemote`.
 */
export class VastRemote extends MemoryRemote {
  constructor(
    readonly folderCount: number,
    readonly filesEach: number,
  ) {
    super();
  }

  folder(index: number): FolderEntry {
    const name = `folder-${index}`;
    return { kind: 'folder', id: `id:${name}`, path: pathOf([name]), name };
  }

  file(folder: number, index: number): FileEntry {
    const name = `file-${index}.txt`;
    return {
      kind: 'file',
      id: `id:${folder}-${index}`,
      path: pathOf([`folder-${folder}`, name]),
      name,
      rev: `${folder}a${index}`,
      sizeBytes: index,
      contentHash: `${folder}-${index}`.padStart(64, '0'),
      modifiedMs: 0,
      committedMs: 0,
    };
  }

  override async stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined> {
    const stored = await super.stat(path, signal);
    return stored ?? this.#at(path);
  }

  override async *list(
    folder: Path,
    { recursive }: { recursive: boolean },
    signal?: AbortSignal,
  ): AsyncIterable<Page> {
    this.calls.push({ call: 'list', path: folder });
    const at = folder === ROOT ? undefined : this.#at(folder);
    if (folder !== ROOT && at?.kind !== 'folder') throw new ApiError('not-found', `${folder} is not there`);
    let changes: Change[] = [];
    for (const entry of this.#within(folder, recursive)) {
      changes.push({ kind: 'put', entry });
      if (changes.length < PAGE_ENTRIES) continue;
      signal?.throwIfAborted();
      yield { changes, cursor: '0', hasMore: true };
      changes = [];
    }
    yield { changes, cursor: '0', hasMore: false };
  }

  *#within(folder: Path, recursive: boolean): Iterable<Entry> {
    for (let index = 0; index < this.folderCount; index++) {
      if (folder === ROOT) yield this.folder(index);
      if (folder !== ROOT ? nameOf(folder) !== `folder-${index}` : !recursive) continue;
      for (let file = 0; file < this.filesEach; file++) yield this.file(index, file);
    }
  }

  #at(path: Path): Entry | undefined {
    const [folderName = '', fileName] = namesOf(path);
    const folder = Number(/^folder-(\d+)$/.exec(folderName)?.[1] ?? Number.NaN);
    if (!(folder < this.folderCount)) return undefined;
    if (fileName === undefined) return this.folder(folder);
    const file = Number(/^file-(\d+)\.txt$/.exec(nameOf(path))?.[1] ?? Number.NaN);
    return file < this.filesEach && parentOf(path) === this.folder(folder).path
      ? this.file(folder, file)
      : undefined;
  }
}
