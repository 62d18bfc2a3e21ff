import type { Hold } from '../state/holds.ts';
import { contentHashOf } from '../util/content-hash.ts';
import { join, nameOf, type Path, ROOT } from '../util/path.ts';
import { holds } from './aside.ts';
import { FileError, isApiFailure } from './errors.ts';
import type { Entry, FileEntry, FolderEntry, WriteOptions, Written } from './files.ts';
import { heldEntry } from './holds.ts';
import { placedIn } from './metadata/known-tree.ts';
import { isDoubtful, isWithinWaiting } from './names.ts';
import { parentFolder, type TreeParts } from './parts.ts';
import type { Reading } from './reading.ts';

const NOTHING = new Uint8Array(0);

/** Files and folders that come to be, and content that is replaced. */
export class Writing {
  constructor(
    private readonly parts: TreeParts,
    private readonly reading: Reading,
    /** How long an empty file waits for its body, ms. */
    private readonly holdMs: number,
  ) {}

  async write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Written> {
    const { asides, metadata, held, clock } = this.parts;
    const parent = await this.#placeFor(path, signal);
    if (asides.keeps(path)) return asides.write(join(parent.path, nameOf(path)), body, options);
    const existing = await metadata.stat(path, signal);
    if (existing?.kind === 'folder') throw new FileError('is-a-folder', `${path} is a folder`);
    if (existing) return this.#store(parent, existing, body, options, signal);
    const hold = await held.get(path);
    if (hold) return this.#replaceHeld(parent, hold, body, options, signal);
    // Only the service can say of two that may only create which came first.
    if (options.mode.if !== 'any' || isDoubtful(path) || (options.sizeBytes ?? 0) > 0)
      return this.#store(parent, path, body, options, signal);
    const peeked = await peek(body);
    if (!peeked.isEmpty) return this.#store(parent, path, peeked.body, options, signal);
    const modifiedMs = options.modifiedMs ?? clock.now();
    const place = join(parent.path, nameOf(path));
    return { entry: await held.make(place, modifiedMs, this.holdMs), created: true };
  }

  async hold(path: Path, holdMs: number): Promise<Written> {
    const { asides, held, clock } = this.parts;
    const existing = await this.reading.stat(path);
    const hold = existing && (await held.get(path));
    if (hold) return { entry: await held.keep(hold, holdMs), created: false };
    if (existing) return { entry: existing, created: false };
    const parent = await this.#placeFor(path);
    const place = join(parent.path, nameOf(path));
    if (asides.keeps(path)) return asides.write(place, empty(), { mode: { if: 'any' } });
    if (isDoubtful(path)) return this.#store(parent, path, empty(), { mode: { if: 'absent' }, sizeBytes: 0 });
    return { entry: await held.make(place, clock.now(), holdMs), created: true };
  }

  /** Makes a held file a real one. When the service has got one there meanwhile, that one stays. */
  async commitHold(hold: Hold): Promise<void> {
    const { lane, metadata, held, log } = this.parts;
    const { path, modifiedMs } = hold;
    const change = metadata.begin([path]);
    let entry: FileEntry | undefined;
    try {
      entry = await lane.commit({
        path,
        content: NOTHING,
        sizeBytes: 0,
        contentHash: contentHashOf(NOTHING),
        options: { mode: { if: 'absent' }, modifiedMs },
      });
      await this.#becomes(hold, entry);
    } catch (error) {
      if (isApiFailure(error, 'malformed-path', 'disallowed-name'))
        log.error('the storage service refuses the name of an empty file, which is lost', { path });
      else if (isApiFailure(error, 'conflict-file', 'conflict-folder')) await this.#findCommitted(hold);
      else throw error;
    } finally {
      change.end(entry ? [[path, entry]] : []);
    }
    await held.forget(path);
  }

  async createFolder(path: Path): Promise<FolderEntry> {
    const { asides, metadata, remote } = this.parts;
    const parent = await this.#placeFor(path);
    const place = join(parent.path, nameOf(path));
    if (await this.reading.stat(path)) throw new FileError('exists', `something is at ${path} already`);
    if (asides.keeps(path)) return asides.createFolder(place);
    const change = metadata.begin([path], { tree: true });
    let folder: FolderEntry | undefined;
    try {
      folder = placedIn(parent.path, await remote.createFolder(place));
      return folder;
    } finally {
      change.end(folder ? [[path, folder]] : [], { isNew: true });
    }
  }

  async setModified(path: Path, modifiedMs: number): Promise<Entry> {
    const { asides, held, metadata, times } = this.parts;
    const entry = await this.reading.stat(path);
    if (!entry) throw new FileError('not-found', `${path} is not there`);
    if (asides.keeps(path)) {
      await asides.touch(path, modifiedMs);
      return { ...entry, modifiedMs };
    }
    const hold = await held.get(path);
    if (hold && hold.id === entry.id) return held.keep({ ...hold, modifiedMs }, held.remainingMs(hold));
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

  async #replaceHeld(
    parent: FolderEntry,
    hold: Hold,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal: AbortSignal | undefined,
  ): Promise<Written> {
    const { held } = this.parts;
    const { path } = hold;
    if (!holds(options.mode, heldEntry(hold)))
      throw new FileError('changed', `${path} is not what was expected`);
    return held.keepBack(path, async () => {
      // Until now it may have been committed: then it is a file like any other.
      if (!(await held.get(path))) return this.write(path, body, options, signal);
      const peeked = await peek(body);
      if (peeked.isEmpty && !options.sizeBytes) {
        const { modifiedMs = hold.modifiedMs } = options;
        const entry = await held.keep({ ...hold, modifiedMs }, Math.max(held.remainingMs(hold), this.holdMs));
        return { entry, created: false };
      }
      // Whoever named the held revision wants to replace nothing else that has come there meanwhile.
      const mode = options.mode.if === 'rev' ? ({ if: 'absent' } as const) : options.mode;
      const becomes = (entry: FileEntry) => this.#becomes(hold, entry);
      const written = await this.#store(parent, path, peeked.body, { ...options, mode }, signal, becomes);
      await held.forget(path);
      return { entry: written.entry, created: false };
    });
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
    const { metadata, uploader, space } = this.parts;
    const before = typeof at === 'string' ? undefined : at;
    // What is there keeps its name, in whatever letter case it is written to.
    const path = typeof at === 'string' ? join(parent.path, nameOf(at)) : at.path;
    const change = metadata.begin([path]);
    let entry: FileEntry | undefined;
    try {
      const committed = await uploader.store(path, body, options, signal);
      await stored?.(committed);
      entry = await this.#withTime(placedIn(parent.path, committed), options.modifiedMs);
    } catch (error) {
      throw isApiFailure(error, 'conflict-folder')
        ? new FileError('is-a-folder', `${path} is a folder`, { cause: error })
        : isApiFailure(error, 'conflict-file')
          ? new FileError('changed', `${path} is not what was expected`, { cause: error })
          : error;
    } finally {
      change.end(entry ? [[path, entry]] : []);
    }
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

  // What stands in the way of a held file may be itself, committed before a kill.
  async #findCommitted(hold: Hold): Promise<void> {
    const found = await this.parts.remote.stat(hold.path);
    if (found?.kind === 'file' && found.sizeBytes === 0) await this.#becomes(hold, found);
    else await this.parts.state.properties.forget([hold.id]);
  }

  async #becomes(hold: Hold, entry: Entry): Promise<void> {
    await this.parts.state.properties.rename(hold.id, entry.id);
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
