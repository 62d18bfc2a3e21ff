import type { Hold } from '../../state/placeholders.ts';
import { contentHashOf } from '../../util/content-hash.ts';
import { join, nameOf, type Path, ROOT } from '../../util/path.ts';
import { placedIn } from '../cache/tree-cache.ts';
import { FileError, isApiFailure } from '../errors.ts';
import type { Entry, FileEntry, FolderEntry, WriteOptions, Written } from '../files.ts';
import { holds } from '../local-files.ts';
import { isDoubtful, isWithinWaiting } from '../names.ts';
import { heldEntry } from '../placeholders.ts';
import type { Turn } from '../upload/lane-member.ts';
import { parentFolder, putInTurn, type TreeParts } from './parts.ts';
import type { Reading } from './reader.ts';

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
    if (asides.keeps(path))
      return asides.write(join(parent.path, nameOf(path)), body, options, this.#turnAt(path));
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
    const entry = await this.#makeHeld(place, modifiedMs, this.holdMs);
    if (entry) return { entry, created: true };
    // Something has come there while the body ended.
    return this.write(path, empty(), { ...options, sizeBytes: 0 }, signal);
  }

  async hold(path: Path, holdMs: number): Promise<Written> {
    const { asides, held, clock } = this.parts;
    const existing = await this.reading.stat(path);
    const hold = existing && (await held.get(path));
    const still = hold && (await this.#keepHeld(hold, holdMs));
    if (still) return { entry: still, created: false };
    if (existing && !hold) return { entry: existing, created: false };
    const parent = await this.#placeFor(path);
    const place = join(parent.path, nameOf(path));
    if (asides.keeps(path)) return asides.write(place, empty(), { mode: { if: 'any' } }, this.#turnAt(path));
    if (isDoubtful(path)) return this.#store(parent, path, empty(), { mode: { if: 'absent' }, sizeBytes: 0 });
    const entry = await this.#makeHeld(place, clock.now(), holdMs);
    return entry ? { entry, created: true } : this.hold(path, holdMs);
  }

  /** Makes a held file a real one. When the service has got one there meanwhile, that one stays. */
  async commitHold(hold: Hold): Promise<void> {
    const { lane, metadata, held, locks, log } = this.parts;
    const { path, modifiedMs } = hold;
    const isStillHeld = async () => (await held.get(path))?.id === hold.id;
    const inTurn: Turn = (commit) =>
      locks.shared([path], async () => {
        if (!(await isStillHeld())) throw new FileError('not-found', `${path} is not held any more`);
        return commit();
      });
    const change = metadata.begin([path]);
    let entry: FileEntry | undefined;
    try {
      entry = await lane.commit({
        path,
        content: NOTHING,
        sizeBytes: 0,
        contentHash: contentHashOf(NOTHING),
        options: { mode: { if: 'absent' }, modifiedMs },
        inTurn,
      });
      await this.#becomes(hold, entry);
    } catch (error) {
      // It was moved or removed before its turn came.
      if (!(await isStillHeld())) return;
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
    const parent = await this.#placeFor(path);
    return putInTurn(this.parts, path, () => this.#makeFolder(parent, path));
  }

  async #makeFolder(parent: FolderEntry, path: Path): Promise<FolderEntry> {
    const { asides, metadata, remote } = this.parts;
    const place = join(parent.path, nameOf(path));
    if (await this.reading.stat(path)) throw new FileError('exists', `something is at ${path} already`);
    if (asides.keeps(path)) return asides.createFolder(place);
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
    const { asides, held, metadata, times } = this.parts;
    const entry = await this.reading.stat(path);
    if (!entry) throw new FileError('not-found', `${path} is not there`);
    if (asides.keeps(path)) {
      await asides.touch(path, modifiedMs);
      return { ...entry, modifiedMs };
    }
    const hold = await held.get(path);
    const still =
      hold?.id === entry.id && (await this.#keepHeld({ ...hold, modifiedMs }, held.remainingMs(hold)));
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
        const waitMs = Math.max(held.remainingMs(hold), this.holdMs);
        const entry = await this.#keepHeld({ ...hold, modifiedMs }, waitMs);
        return entry ? { entry, created: false } : this.write(path, empty(), options, signal);
      }
      // Whoever named the held revision wants to replace nothing else that has come there meanwhile.
      const mode = options.mode.if === 'rev' ? ({ if: 'absent' } as const) : options.mode;
      const becomes = (entry: FileEntry) => this.#becomes(hold, entry);
      const written = await this.#store(parent, path, peeked.body, { ...options, mode }, signal, becomes);
      await held.forget(path);
      return { entry: written.entry, created: false };
    });
  }

  #turnAt(path: Path): Turn {
    return (work) => putInTurn(this.parts, path, work);
  }

  /** `undefined` when something is there by now. */
  #makeHeld(place: Path, modifiedMs: number, holdMs: number): Promise<FileEntry | undefined> {
    return putInTurn(this.parts, place, async () =>
      (await this.reading.stat(place)) ? undefined : this.parts.held.make(place, modifiedMs, holdMs),
    );
  }

  /** As `HeldFiles.keep`; `undefined` when the file is not held any more. */
  #keepHeld(hold: Hold, holdMs: number): Promise<FileEntry | undefined> {
    const { held } = this.parts;
    return putInTurn(this.parts, hold.path, async () =>
      (await held.get(hold.path))?.id === hold.id ? held.keep(hold, holdMs) : undefined,
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
    const { metadata, uploader, space } = this.parts;
    let before = typeof at === 'string' ? undefined : at;
    // What is there keeps its name, in whatever letter case it is written to.
    const path = typeof at === 'string' ? join(parent.path, nameOf(at)) : at.path;
    const change = metadata.begin([path]);
    const inTurn: Turn = (commit) =>
      putInTurn(this.parts, path, () => {
        const known = metadata.peek(path);
        if (known === 'absent') before = undefined;
        else if (known?.kind === 'file') before = known;
        return commit();
      });
    let entry: FileEntry;
    try {
      const committed = await uploader.store(path, body, options, signal, inTurn);
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
   * What stands in the way of a held file may be itself, committed before a kill, also with its body: it gets the
   * properties that were acknowledged for its path, unless it has some of its own.
   */
  async #findCommitted(hold: Hold): Promise<void> {
    const { remote, state } = this.parts;
    const found = await remote.stat(hold.path);
    const isBare = found?.kind === 'file' && (await state.properties.of([found.id])).size === 0;
    if (isBare) await this.#becomes(hold, found);
    else await state.properties.forget([hold.id]);
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
