import { ApiError } from '../../src/api/errors.ts';
import { partsOf } from '../../src/api/long-names.ts';
import type {
  Change,
  Entry,
  FileEntry,
  FolderEntry,
  Revisions,
  RevisionsOptions,
} from '../../src/api/remote.ts';
import type { CommitOptions } from '../../src/api/write/upload-calls.ts';
import { contentHashOf } from '../../src/util/content-hash.ts';
import { isWithin, join, keyOf, nameOf, type Path, parentOf, ROOT, relocate } from '../../src/util/path.ts';
import { MemoryPast } from './memory-past.ts';

interface Stored {
  readonly entry: Entry;
  readonly content: Uint8Array;
}

const EMPTY = new Uint8Array(0);

/** The contents of a storage service: folded names, revisions, ids, and changes in order. */
export class MemoryStore {
  /** All changes. Their number is the cursor. */
  readonly changes: Change[] = [];
  readonly past = new MemoryPast();
  readonly #tree = new Map<string, Stored>();
  /** Contents by revision. */
  readonly #contents = new Map<string, Uint8Array>();
  #count = 0;
  #nowMs = Date.UTC(2026, 0, 1);

  /** `changed` is called after each change. */
  constructor(private readonly changed: () => void) {}

  at(path: Path): Entry | undefined {
    return this.#tree.get(keyOf(path))?.entry;
  }

  /** Returns the entry at `path`. Throws `not-found`. */
  existing(path: Path): Entry {
    return this.#stored(path).entry;
  }

  /** Returns the content of a file, or `undefined`. */
  contentAt(path: Path): Uint8Array | undefined {
    const stored = this.#tree.get(keyOf(path));
    return stored?.entry.kind === 'file' ? stored.content : undefined;
  }

  /** Returns the content of a current or former revision. */
  contentOf(rev: string): Uint8Array | undefined {
    return this.#contents.get(rev);
  }

  /** All entries in the order of their creation. */
  get entries(): Entry[] {
    return [...this.#tree.values()].map(({ entry }) => entry);
  }

  get usedBytes(): number {
    return [...this.#tree.values()].reduce((sum, { content }) => sum + content.byteLength, 0);
  }

  /** Returns all entries below `path`. */
  within(path: Path): Entry[] {
    const below = (entry: Entry) => keyOf(entry.path) !== keyOf(path) && isWithin(entry.path, path);
    return this.entries.filter(below);
  }

  commit(path: Path, content: Uint8Array, { mode, modifiedMs }: CommitOptions): FileEntry {
    mustBeTaken(path);
    const old = this.at(path);
    if (old?.kind === 'folder') throw new ApiError('conflict-folder', `a folder is at ${path}`);
    if (mode.if === 'absent' && old) throw new ApiError('conflict-file', `a file is at ${path}`);
    const contentHash = contentHashOf(content);
    if (mode.if !== 'absent' && old?.contentHash === contentHash) return old;
    if (mode.if === 'rev' && old?.rev !== mode.rev)
      throw new ApiError('conflict-file', `${path} has changed`);
    this.#makeParents(path);
    const committedMs = this.#tick();
    const wholeMs = Math.floor((modifiedMs ?? committedMs) / 1000) * 1000;
    const entry: FileEntry = {
      kind: 'file',
      id: old?.id ?? this.unique('id:'),
      path: old?.path ?? this.#displayed(path),
      name: old?.name ?? nameOf(path),
      rev: this.unique('rev'),
      sizeBytes: content.byteLength,
      contentHash,
      modifiedMs: wholeMs,
      committedMs,
    };
    this.#put(entry, content);
    return entry;
  }

  /** Makes a folder at a path that must be free. */
  createFolder(path: Path): FolderEntry {
    mustBeTaken(path);
    this.#mustBeFree(path);
    return this.makeFolder(path);
  }

  /** Returns the folder at `path`, which is made if missing. */
  makeFolder(path: Path): FolderEntry {
    const old = this.at(path);
    if (old?.kind === 'file') throw new ApiError('conflict-ancestor', `${path} is a file`);
    if (old) return old;
    this.#makeParents(path);
    const entry: FolderEntry = {
      kind: 'folder',
      id: this.unique('id:'),
      path: this.#displayed(path),
      name: nameOf(path),
    };
    this.#put(entry, EMPTY);
    return entry;
  }

  relocate(from: Path, to: Path, isMove: boolean): Entry {
    mustBeTaken(from);
    mustBeTaken(to);
    const source = this.existing(from);
    // The service does not change only the letter case of a name.
    if (isMove && keyOf(from) === keyOf(to)) return source;
    if (isWithin(to, from)) throw new ApiError('into-itself', `${to} lies in ${from}`);
    this.#mustBeFree(to);
    this.#makeParents(to);
    const top = this.#displayed(to);
    const moving = [source, ...this.within(from)].map(({ path }) => this.#stored(path));
    if (isMove) this.remove(from);
    for (const { entry, content } of moving) {
      const path = relocate(entry.path, source.path, top);
      const id = isMove ? entry.id : this.unique('id:');
      const place = { id, path, name: nameOf(path) };
      if (entry.kind === 'folder') this.#put({ ...entry, ...place }, EMPTY);
      else this.#put({ ...entry, ...place, rev: this.unique('rev'), committedMs: this.#tick() }, content);
    }
    return this.existing(to);
  }

  remove(path: Path): void {
    const entry = this.existing(path);
    for (const each of [entry, ...this.within(path)]) {
      this.#tree.delete(keyOf(each.path));
      this.past.deleted(each.path, this.#nowMs);
    }
    this.#tell({ kind: 'deleted', path: entry.path });
  }

  /** Removes the item at `path` with all of its revisions. */
  removeForGood(path: Path): void {
    const all = [this.existing(path), ...this.within(path)];
    for (const entry of all) if (entry.kind === 'file') this.#contents.delete(entry.rev);
    this.remove(path);
    for (const entry of all) this.past.forget(entry.path);
  }

  revisions(path: Path, { limit, followsMoves }: RevisionsOptions): Revisions {
    const { files: here, ...known } = this.past.revisions(path);
    const files = followsMoves ? this.past.ofFile(here[0]?.id) : here;
    const placed = files.map((file) => ({ ...file, path: join(parentOf(path), file.name) }));
    return { ...known, files: placed.slice(0, limit), hasMore: files.length > limit };
  }

  restore(path: Path, rev: string): FileEntry {
    const old = this.at(path);
    if (old?.kind === 'folder') throw new ApiError('conflict-folder', `a folder is at ${path}`);
    const here = this.past.revisions(path).files;
    const revision = [...here, ...this.past.ofFile(here[0]?.id)].find((file) => file.rev === rev);
    const content = this.#contents.get(rev);
    if (!revision || !content) throw new ApiError('revision-gone', `${path} has no such revision`);
    this.#makeParents(path);
    const isElsewhere = this.entries.some(({ id }) => id === revision.id);
    const id = old?.id ?? (isElsewhere ? this.unique('id:') : revision.id);
    const name = old?.name ?? (here.includes(revision) ? revision.name : nameOf(path));
    const place = { path: this.#displayed(join(parentOf(path), name)), name };
    const entry = { ...revision, id, ...place, rev: this.unique('rev'), committedMs: this.#tick() };
    this.#put(entry, content);
    return entry;
  }

  /** Returns a new unique text. */
  unique(kind: string): string {
    this.#count++;
    return `${kind}${this.#count}`;
  }

  #put(entry: Entry, content: Uint8Array): void {
    this.#tree.set(keyOf(entry.path), { entry, content });
    this.past.put(entry);
    if (entry.kind === 'file') this.#contents.set(entry.rev, content);
    this.#tell({ kind: 'put', entry });
  }

  #tell(change: Change): void {
    this.changes.push(change);
    this.changed();
  }

  #stored(path: Path): Stored {
    const stored = this.#tree.get(keyOf(path));
    if (!stored) throw new ApiError('not-found', `${path} is not there`);
    return stored;
  }

  #mustBeFree(path: Path): void {
    const kind = this.at(path)?.kind;
    if (kind) throw new ApiError(`conflict-${kind}`, `something is at ${path}`);
  }

  #makeParents(path: Path): void {
    if (parentOf(path) !== ROOT) this.makeFolder(parentOf(path));
  }

  /** Returns `path` in the letter case of its existing parents. */
  #displayed(path: Path): Path {
    return join(this.at(parentOf(path))?.path ?? ROOT, nameOf(path));
  }

  #tick(): number {
    this.#nowMs += 1000;
    return this.#nowMs;
  }
}

/** Throws for paths that the service refuses to create, change or remove. */
export function mustBeTaken(path: Path): void {
  const name = nameOf(path);
  if (path === ROOT) throw new ApiError('no-permission', 'not the root');
  if (partsOf(name).some((part) => part.length > 255)) throw new ApiError('malformed-path', name);
}
