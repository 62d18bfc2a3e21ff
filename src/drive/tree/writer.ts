import { isApiFailure } from '../../api/errors.ts';
import type { AroundCommit } from '../../api/remote.ts';
import type { Placeholder } from '../../state/placeholders.ts';
import { join, nameOf, type Path, ROOT } from '../../util/path.ts';
import { placedIn } from '../cache/tree-cache.ts';
import { FileError } from '../errors.ts';
import type { Entry, FileEntry, FolderEntry, WriteOptions, Written } from '../files.ts';
import { modeAllows } from '../local-files.ts';
import { isDoubtful, isWithinWaiting } from '../names.ts';
import { placeholderEntry } from '../placeholders.ts';
import { parentFolder, putInTurn, type TreeParts } from './parts.ts';
import type { Reader } from './reader.ts';

/** Files and folders that come to be, and content that is replaced. */
export class Writer {
  constructor(
    private readonly parts: TreeParts,
    private readonly reading: Reader,
    /** How long an empty file waits for its body, ms. */
    private readonly placeholderMs: number,
  ) {}

  async write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Written> {
    const { localFiles, metadata, placeholders, clock } = this.parts;
    const parent = await this.#placeFor(path, signal);
    if (localFiles.owns(path))
      return localFiles.write(join(parent.path, nameOf(path)), body, options, this.#turnAt(path));
    const existing = await metadata.stat(path, signal);
    if (existing?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
    if (existing) return this.#store(parent, existing, body, options, signal);
    const placeholder = await placeholders.get(path);
    if (placeholder) return this.#replacePlaceholder(parent, placeholder, body, options, signal);
    // Only the service can say of two that may only create which came first.
    if (options.mode.if !== 'any' || isDoubtful(path) || (options.sizeBytes ?? 0) > 0)
      return this.#store(parent, path, body, options, signal);
    const peeked = await peek(body);
    if (!peeked.isEmpty) return this.#store(parent, path, peeked.body, options, signal);
    const modifiedMs = options.modifiedMs ?? clock.now();
    const place = join(parent.path, nameOf(path));
    const entry = await this.#makePlaceholder(place, modifiedMs, this.placeholderMs);
    if (entry) return { entry, created: true };
    // Something has come there while the body ended.
    return this.write(path, empty(), { ...options, sizeBytes: 0 }, signal);
  }

  async keep(path: Path, placeholderMs: number): Promise<Written> {
    const { localFiles, placeholders, clock } = this.parts;
    const existing = await this.reading.stat(path);
    const placeholder = existing && (await placeholders.get(path));
    const still = placeholder && (await this.#keepPlaceholder(placeholder, placeholderMs));
    if (still) return { entry: still, created: false };
    if (existing && !placeholder) return { entry: existing, created: false };
    const parent = await this.#placeFor(path);
    const place = join(parent.path, nameOf(path));
    if (localFiles.owns(path))
      return localFiles.write(place, empty(), { mode: { if: 'any' } }, this.#turnAt(path));
    if (isDoubtful(path)) return this.#store(parent, path, empty(), { mode: { if: 'absent' }, sizeBytes: 0 });
    const entry = await this.#makePlaceholder(place, clock.now(), placeholderMs);
    return entry ? { entry, created: true } : this.keep(path, placeholderMs);
  }

  /** Makes a placeholder a real one. When the service has got one there meanwhile, that one stays. */
  async commitPlaceholder(placeholder: Placeholder): Promise<void> {
    const { remote, metadata, placeholders, locks, log } = this.parts;
    const { path, modifiedMs } = placeholder;
    const isStillThere = async () => (await placeholders.get(path))?.id === placeholder.id;
    const aroundCommit: AroundCommit = (commit) =>
      locks.shared([path], async () => {
        if (!(await isStillThere())) throw new FileError('not-found', `${path} is not held any more`);
        return commit();
      });
    const change = metadata.begin([path]);
    let entry: FileEntry | undefined;
    try {
      const mode = { if: 'absent' } as const;
      entry = await remote.write(path, empty(), { mode, sizeBytes: 0, modifiedMs, aroundCommit });
      await this.#becomes(placeholder, entry);
    } catch (error) {
      // It was moved or removed before its turn came.
      if (!(await isStillThere())) return;
      if (isApiFailure(error, 'malformed-path', 'disallowed-name'))
        log.error('the storage service refuses the name of an empty file, which is lost', { path });
      else if (isApiFailure(error, 'conflict-file', 'conflict-folder'))
        await this.#findCommitted(placeholder);
      else throw error;
    } finally {
      change.end(entry ? [[path, entry]] : []);
    }
    await placeholders.forget(path);
  }

  async createFolder(path: Path): Promise<FolderEntry> {
    const parent = await this.#placeFor(path);
    return putInTurn(this.parts, path, () => this.#makeFolder(parent, path));
  }

  async #makeFolder(parent: FolderEntry, path: Path): Promise<FolderEntry> {
    const { localFiles, metadata, remote } = this.parts;
    const place = join(parent.path, nameOf(path));
    if (await this.reading.stat(path)) throw new FileError('exists', `something is at ${path} already`);
    if (localFiles.owns(path)) return localFiles.createFolder(place);
    const change = metadata.begin([path], { tree: true });
    let folder: FolderEntry;
    try {
      folder = placedIn(parent.path, await remote.createFolder(place));
    } catch (error) {
      change.failed(error);
      throw error;
    }
    change.end([[path, folder]], { isNew: true });
    return folder;
  }

  async setModified(path: Path, modifiedMs: number): Promise<Entry> {
    const { localFiles, placeholders, metadata, times } = this.parts;
    const entry = await this.reading.stat(path);
    if (!entry) throw new FileError('not-found', `${path} is not there`);
    if (localFiles.owns(path)) {
      await localFiles.touch(path, modifiedMs);
      return { ...entry, modifiedMs };
    }
    const placeholder = await placeholders.get(path);
    const still =
      placeholder?.id === entry.id &&
      (await this.#keepPlaceholder({ ...placeholder, modifiedMs }, placeholders.remainingMs(placeholder)));
    if (still) return still;
    const shown = await times.set(entry, modifiedMs);
    metadata.adorn(shown);
    return shown;
  }

  /** The folder in which `path` is to be made. */
  async #placeFor(path: Path, signal?: AbortSignal): Promise<FolderEntry> {
    if (path === ROOT) throw new FileError('is-a-folder', 'the root of the drive is a folder');
    if (isWithinWaiting(path))
      throw new FileError('bad-name', `davgate keeps the name ${nameOf(path)} for itself`);
    return parentFolder(this.parts, path, signal);
  }

  async #replacePlaceholder(
    parent: FolderEntry,
    placeholder: Placeholder,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal: AbortSignal | undefined,
  ): Promise<Written> {
    const { placeholders } = this.parts;
    const { path } = placeholder;
    if (!modeAllows(options.mode, placeholderEntry(placeholder)))
      throw new FileError('changed', `${path} is not what was expected`);
    return placeholders.withCommitsPaused(path, async () => {
      // Until now it may have been committed: then it is a file like any other.
      if (!(await placeholders.get(path))) return this.write(path, body, options, signal);
      const peeked = await peek(body);
      if (peeked.isEmpty && !options.sizeBytes) {
        const { modifiedMs = placeholder.modifiedMs } = options;
        const waitMs = Math.max(placeholders.remainingMs(placeholder), this.placeholderMs);
        const entry = await this.#keepPlaceholder({ ...placeholder, modifiedMs }, waitMs);
        return entry ? { entry, created: false } : this.write(path, empty(), options, signal);
      }
      // Whoever named the held revision wants to replace nothing else that has come there meanwhile.
      const mode = options.mode.if === 'rev' ? ({ if: 'absent' } as const) : options.mode;
      const becomes = (entry: FileEntry) => this.#becomes(placeholder, entry);
      const written = await this.#store(parent, path, peeked.body, { ...options, mode }, signal, becomes);
      await placeholders.forget(path);
      return { entry: written.entry, created: false };
    });
  }

  #turnAt(path: Path): AroundCommit {
    return (work) => putInTurn(this.parts, path, work);
  }

  /** `undefined` when something is there by now. */
  #makePlaceholder(place: Path, modifiedMs: number, placeholderMs: number): Promise<FileEntry | undefined> {
    return putInTurn(this.parts, place, async () =>
      (await this.reading.stat(place))
        ? undefined
        : this.parts.placeholders.make(place, modifiedMs, placeholderMs),
    );
  }

  /** As `Placeholders.keep`; `undefined` when the file is not held any more. */
  #keepPlaceholder(placeholder: Placeholder, placeholderMs: number): Promise<FileEntry | undefined> {
    const { placeholders } = this.parts;
    return putInTurn(this.parts, placeholder.path, async () =>
      (await placeholders.get(placeholder.path))?.id === placeholder.id
        ? placeholders.keep(placeholder, placeholderMs)
        : undefined,
    );
  }

  /** `at`: the file that is there, or the path of one to be. `stored` is called before anyone sees the new entry. */
  async #store(
    parent: FolderEntry,
    at: FileEntry | Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
    stored?: (entry: FileEntry) => Promise<void>,
  ): Promise<Written> {
    const { metadata, remote, space } = this.parts;
    let before = typeof at === 'string' ? undefined : at;
    // What is there keeps its name, in whatever letter case it is written to.
    const path = typeof at === 'string' ? join(parent.path, nameOf(at)) : at.path;
    const change = metadata.begin([path]);
    const aroundCommit: AroundCommit = (commit) =>
      putInTurn(this.parts, path, () => {
        const known = metadata.peek(path);
        if (known === 'absent') before = undefined;
        else if (known?.kind === 'file') before = known;
        return commit();
      });
    let entry: FileEntry;
    try {
      const committed = await remote.write(path, body, { ...options, aroundCommit }, signal);
      await stored?.(committed);
      entry = await this.#withTime(placedIn(parent.path, committed), options.modifiedMs);
    } catch (error) {
      change.failed(error);
      throw isApiFailure(error, 'conflict-folder')
        ? new FileError('is-a-folder', `${path} is a folder`, { cause: error })
        : isApiFailure(error, 'conflict-file')
          ? new FileError('changed', `${path} is not what was expected`, { cause: error })
          : error;
    }
    change.end([[path, entry]]);
    space.add(entry.sizeBytes - (before?.sizeBytes ?? 0));
    return { entry, created: before === undefined };
  }

  /** The service ignores the time that comes with content which is there already. */
  async #withTime(entry: FileEntry, wantedMs: number | undefined): Promise<FileEntry> {
    const { times } = this.parts;
    if (wantedMs === undefined || Math.floor(wantedMs / 1000) === Math.floor(entry.modifiedMs / 1000))
      return (await times.on([entry]))[0] ?? entry;
    return times.set(entry, wantedMs);
  }

  /**
   * What stands in the way of a placeholder may be itself, committed before a kill, also with its body: it gets the
   * properties that were acknowledged for its path, unless it has some of its own.
   */
  async #findCommitted(placeholder: Placeholder): Promise<void> {
    const { remote, state } = this.parts;
    const found = await remote.stat(placeholder.path);
    const isBare = found?.kind === 'file' && (await state.properties.of([found.id])).size === 0;
    if (isBare) await this.#becomes(placeholder, found);
    else await state.properties.forget([placeholder.id]);
  }

  async #becomes(placeholder: Placeholder, entry: Entry): Promise<void> {
    await this.parts.state.properties.rename(placeholder.id, entry.id);
  }
}

/** Whether a body has no bytes, and the body again. */
async function peek(
  body: AsyncIterable<Uint8Array>,
): Promise<{ readonly isEmpty: boolean; readonly body: AsyncIterable<Uint8Array> }> {
  const iterator = body[Symbol.asyncIterator]();
  let first = await iterator.next();
  while (!first.done && first.value.byteLength === 0) first = await iterator.next();
  if (first.done) return { isEmpty: true, body: empty() };
  return { isEmpty: false, body: resumed(first.value, iterator) };
}

async function* resumed(first: Uint8Array, rest: AsyncIterator<Uint8Array>): AsyncIterable<Uint8Array> {
  let isDone = false;
  try {
    yield first;
    for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
    isDone = true;
  } finally {
    if (!isDone) await rest.return?.();
  }
}

async function* empty(): AsyncIterable<Uint8Array> {}
