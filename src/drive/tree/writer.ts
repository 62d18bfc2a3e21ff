import { isApiFailure } from '../../api/errors.ts';
import type { AroundCommit, Remote } from '../../api/remote.ts';
import type { Placeholder } from '../../state/placeholders.ts';
import type { Clock } from '../../util/clock.ts';
import { join, nameOf, type Path, ROOT } from '../../util/path.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import { placedIn } from '../cache/tree-cache.ts';
import { FileError } from '../errors.ts';
import type { FileIds } from '../file-ids.ts';
import type { Entry, FileEntry, FolderEntry, WriteOptions, Written } from '../files.ts';
import { type LocalFiles, modeAllows } from '../local-files.ts';
import type { ModifiedTimes } from '../modified-times.ts';
import { isDoubtful } from '../names.ts';
import type { PathLocks } from '../path-locks.ts';
import { isPlaceholder, type Placeholders, placeholderEntry } from '../placeholders.ts';
import type { QuotaCache } from '../quota-cache.ts';
import type { Reader } from './tree.ts';

interface WriterDeps {
  readonly remote: Pick<Remote, 'createFolder' | 'write'>;
  readonly ids: FileIds;
  readonly metadata: MetadataCache;
  readonly localFiles: LocalFiles;
  readonly placeholders: Placeholders;
  readonly times: ModifiedTimes;
  readonly locks: PathLocks;
  readonly reader: Reader;
  readonly quota: QuotaCache;
  readonly clock: Clock;
  /** How long a placeholder waits for its body, in ms. */
  readonly placeholderMs: number;
  /** Applies what other gateways have changed; `undefined` without others. */
  readonly catchUp: (() => Promise<void>) | undefined;
}

/** Writes files, creates folders and sets modification times. */
export class Writer {
  constructor(private readonly deps: WriterDeps) {}

  async write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Written> {
    const { reader, localFiles, metadata, placeholders, clock } = this.deps;
    const parent = await this.#placeFor(path, signal);
    if (reader.keeperOf(path) === 'machine')
      return localFiles.write(join(parent.path, nameOf(path)), body, options, this.#aroundCommitAt(path));
    const existing = await metadata.stat(path, signal);
    if (existing?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
    if (existing) return this.#store(parent, existing, body, options, signal);
    const placeholder = await placeholders.get(path);
    if (placeholder) return this.#replacePlaceholder(parent, placeholder, body, options, signal);
    // Of two writes that may only create the file, the service decides which came first.
    if (options.mode.if !== 'any' || (options.sizeBytes ?? 0) > 0 || isDoubtful(path))
      return this.#store(parent, path, body, options, signal);
    const peeked = await peek(body);
    if (!peeked.isEmpty) return this.#store(parent, path, peeked.body, options, signal);
    const modifiedMs = options.modifiedMs ?? clock.now();
    const place = join(parent.path, nameOf(path));
    const entry = await this.#makePlaceholder(place, modifiedMs, this.deps.placeholderMs);
    if (entry) return { entry, created: true };
    // Another request has created something there meanwhile.
    return this.write(path, empty(), { ...options, sizeBytes: 0 }, signal);
  }

  /** See `Files.keepPlaceholder`. */
  async keepPlaceholder(path: Path, placeholderMs: number): Promise<Written> {
    const { localFiles, placeholders, clock } = this.deps;
    const existing = await this.deps.reader.stat(path);
    const placeholder = existing && (await placeholders.get(path));
    const still = placeholder && (await this.#renew(placeholder, placeholder.modifiedMs, placeholderMs));
    if (still) return { entry: still, created: false };
    // It was committed meanwhile.
    if (existing && isPlaceholder(existing)) return this.keepPlaceholder(path, placeholderMs);
    if (existing && !placeholder) return { entry: existing, created: false };
    const parent = await this.#placeFor(path);
    const place = join(parent.path, nameOf(path));
    if (localFiles.owns(path))
      return localFiles.write(place, empty(), { mode: { if: 'any' } }, this.#aroundCommitAt(path));
    if (isDoubtful(path)) return this.#store(parent, path, empty(), { mode: { if: 'absent' }, sizeBytes: 0 });
    const entry = await this.#makePlaceholder(place, clock.now(), placeholderMs);
    return entry ? { entry, created: true } : this.keepPlaceholder(path, placeholderMs);
  }

  async createFolder(path: Path): Promise<FolderEntry> {
    const parent = await this.#placeFor(path);
    return this.#whileParentIsThere(path, () => this.#makeFolder(parent, path));
  }

  async #makeFolder(parent: FolderEntry, path: Path): Promise<FolderEntry> {
    const { localFiles, metadata, remote } = this.deps;
    const place = join(parent.path, nameOf(path));
    if (await this.deps.reader.stat(path)) throw new FileError('exists', `something is at ${path} already`);
    if (localFiles.owns(path)) return localFiles.createFolder(place);
    const change = metadata.begin([path], { tree: true });
    let folder: FolderEntry;
    try {
      folder = placedIn(parent.path, await remote.createFolder(place));
    } catch (error) {
      await change.failed(error);
      throw error;
    }
    await change.end([[path, folder]], { isNew: true });
    return folder;
  }

  async setModified(path: Path, modifiedMs: number): Promise<Entry> {
    const { localFiles, placeholders, metadata, times } = this.deps;
    const entry = await this.deps.reader.stat(path);
    if (!entry) throw new FileError('not-found', `${path} is not there`);
    if (localFiles.owns(path)) {
      await localFiles.touch(path, modifiedMs);
      return { ...entry, modifiedMs };
    }
    const placeholder = await placeholders.get(path);
    const still =
      placeholder?.id === entry.id &&
      (await this.#renew(placeholder, modifiedMs, placeholders.remainingMs(placeholder)));
    if (still) return still;
    // It was committed meanwhile.
    if (isPlaceholder(entry)) return this.setModified(path, modifiedMs);
    const shown = await times.set(entry, modifiedMs);
    await metadata.setTime(shown);
    return shown;
  }

  /** Returns the folder in which `path` can be created. */
  async #placeFor(path: Path, signal?: AbortSignal): Promise<FolderEntry> {
    if (path === ROOT) throw new FileError('is-a-folder', 'the root of the drive is a folder');
    if (this.deps.reader.keeperOf(path) === 'nobody')
      throw new FileError('bad-name', `davgate keeps the name ${nameOf(path)} for itself`);
    return this.deps.reader.parentOf(path, signal);
  }

  async #replacePlaceholder(
    parent: FolderEntry,
    placeholder: Placeholder,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal: AbortSignal | undefined,
  ): Promise<Written> {
    const { placeholders } = this.deps;
    const { path } = placeholder;
    if (!modeAllows(options.mode, placeholderEntry(placeholder)))
      throw new FileError('changed', `${path} is not what was expected`);
    return placeholders.withCommitsPaused([path], async () => {
      // It may have been committed meanwhile: then it is a file like any other.
      if (!(await placeholders.get(path))) return this.write(path, body, options, signal);
      const peeked = await peek(body);
      if (peeked.isEmpty && !options.sizeBytes) {
        const { modifiedMs = placeholder.modifiedMs } = options;
        const waitMs = Math.max(placeholders.remainingMs(placeholder), this.deps.placeholderMs);
        const entry = await this.#renew(placeholder, modifiedMs, waitMs);
        return entry ? { entry, created: false } : this.write(path, empty(), options, signal);
      }
      // A write that named the placeholder's revision must not replace anything else.
      const mode = options.mode.if === 'rev' ? ({ if: 'absent' } as const) : options.mode;
      const becomes = ({ id }: FileEntry) => this.deps.ids.rename(placeholder.id, id);
      const written = await this.#store(parent, path, peeked.body, { ...options, mode }, signal, becomes);
      await placeholders.forget(placeholder);
      return { entry: written.entry, created: false };
    });
  }

  /**
   * Runs `work`, which creates or replaces the entry at `path`, while nothing is moved or removed there. Looks up the
   * folder again first, because it may have been removed while a body arrived, here or at another gateway: the service would
   * make it again. Throws `parent-missing`.
   */
  #whileParentIsThere<T>(path: Path, work: () => Promise<T>): Promise<T> {
    const { locks, catchUp, reader } = this.deps;
    return locks.shared([path], async () => {
      await catchUp?.();
      await reader.parentOf(path);
      return work();
    });
  }

  #aroundCommitAt(path: Path): AroundCommit {
    return (work) => this.#whileParentIsThere(path, work);
  }

  /** Creates a placeholder. Returns `undefined` when the path is taken. */
  #makePlaceholder(place: Path, modifiedMs: number, placeholderMs: number): Promise<FileEntry | undefined> {
    return this.#whileParentIsThere(place, async () =>
      (await this.deps.reader.stat(place))
        ? undefined
        : this.deps.placeholders.make(place, modifiedMs, placeholderMs),
    );
  }

  /** Calls `Placeholders.renew`. Returns `undefined` also when the placeholder no longer exists. */
  #renew(
    { path, id }: Placeholder,
    modifiedMs: number,
    placeholderMs: number,
  ): Promise<FileEntry | undefined> {
    const { placeholders } = this.deps;
    const renew = async () => {
      const found = await placeholders.get(path);
      return found?.id === id ? placeholders.renew(found, modifiedMs, placeholderMs) : undefined;
    };
    return placeholders.withCommitsPaused([path], () => this.#whileParentIsThere(path, renew));
  }

  /** Writes to the service. `at`: the existing file, or the path of a new one. Calls `stored` before the entry is visible. */
  async #store(
    parent: FolderEntry,
    at: FileEntry | Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
    stored?: (entry: FileEntry) => Promise<void>,
  ): Promise<Written> {
    const { metadata, remote, quota } = this.deps;
    let before = typeof at === 'string' ? undefined : at;
    // An existing file keeps its name, whatever letter case the client uses.
    const path = typeof at === 'string' ? join(parent.path, nameOf(at)) : at.path;
    const change = metadata.begin([path], { isUpload: true });
    const aroundCommit: AroundCommit = (commit) =>
      this.#whileParentIsThere(path, () => {
        const known = metadata.peek(path);
        if (known === 'absent') before = undefined;
        else if (known?.kind === 'file') before = known;
        change.commits();
        return commit();
      });
    let entry: FileEntry;
    try {
      const committed = await remote.write(path, body, { ...options, aroundCommit }, signal);
      await stored?.(committed);
      entry = await this.#withTime(placedIn(parent.path, committed), before, options.modifiedMs);
    } catch (error) {
      await change.failed(error);
      throw isApiFailure(error, 'conflict-folder')
        ? new FileError('is-a-folder', `${path} is a folder`, { cause: error })
        : isApiFailure(error, 'conflict-file')
          ? new FileError('changed', `${path} is not what was expected`, { cause: error })
          : error;
    }
    await change.end([[path, entry]]);
    quota.add(entry.sizeBytes - (before?.sizeBytes ?? 0));
    return { entry, created: before === undefined };
  }

  /** Sets the time that the client wants where the service has ignored it, as it does for unchanged content. */
  async #withTime(
    entry: FileEntry,
    before: FileEntry | undefined,
    wantedMs: number | undefined,
  ): Promise<FileEntry> {
    const { times } = this.deps;
    if (wantedMs !== undefined && Math.floor(wantedMs / 1000) !== Math.floor(entry.modifiedMs / 1000))
      return times.set(entry, wantedMs);
    // Nobody has set the time of a new file.
    if (before?.id !== entry.id) return entry;
    return (await times.applyTo([entry]))[0] ?? entry;
  }
}

/** Returns whether `body` has no bytes, and the body from its beginning. */
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
