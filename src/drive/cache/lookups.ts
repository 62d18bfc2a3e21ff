import { isApiFailure } from '../../api/errors.ts';
import type { Entry, FolderEntry, Remote } from '../../api/remote.ts';
import { type Clock, momentNow } from '../../util/clock.ts';
import { foldName, join, keyOf, nameOf, type Path, parentKeyOf, parentOf, ROOT } from '../../util/path.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import { FileError } from '../errors.ts';
import type { ModifiedTimes } from '../modified-times.ts';
import { doubtLooked, type Fetch, type Known, takeChanges } from './recency.ts';
import { CachedFolder, placedIn, placedKnown, type TreeCache, withTimeOf } from './tree-cache.ts';

export interface LookupsDeps {
  readonly remote: Pick<Remote, 'stat' | 'list'>;
  readonly cache: TreeCache;
  readonly times: ModifiedTimes;
  readonly clock: Clock;
  /** Returns whether an entry of the service with this name is hidden from clients. */
  readonly isHidden: (name: string) => boolean;
  /** Awaited after each answer: a change that another gateway had begun before it is then known. */
  readonly afterAnswer?: (() => Promise<void>) | undefined;
}

/** After this many single lookups in a folder, the whole folder is listed as well. */
const SINGLE_QUESTIONS_MAX = 2;

/** Maximum number of requests for an entry that changes meanwhile. */
const ATTEMPTS_MAX = 8;

/** Maximum number of rounds in which changes are merged into one listing while more arrive. */
const SETTLING_MAX = 100;

/** Maximum number of attempts at a listing that the service resets. */
const RESETS_MAX = 3;

/**
 * Lookups at the service, each sent once for all callers that wait for it. Changes learnt before the answer arrives
 * take precedence over it.
 */
export class Lookups {
  readonly #entries = new SingleFlight<string, Known>();
  readonly #folders = new SingleFlight<string, CachedFolder>();

  constructor(private readonly deps: LookupsDeps) {}

  /** Looks up `path`, which is not the root. */
  async entry(path: Path, signal: AbortSignal | undefined): Promise<Known> {
    const { cache } = this.deps;
    const key = keyOf(path);
    const siblings = cache.folder(parentKeyOf(key));
    if (siblings && !siblings.unsure && ++siblings.questions === SINGLE_QUESTIONS_MAX)
      this.#listBeside(parentKeyOf(key));
    return this.#entry(path, signal);
  }

  /**
   * Lists `folder`. Returns `undefined` when it is not there: another lookup of its entry, which waits for replacements, tells
   * whether it was only moved aside for a moment.
   */
  async folder(folder: FolderEntry, signal: AbortSignal | undefined): Promise<CachedFolder | undefined> {
    const { path } = folder;
    const flight = `${this.deps.cache.inFlight.generation} ${keyOf(path)}`;
    const read = (stop: AbortSignal) => this.#readNow(path, async () => folder, stop);
    try {
      return await this.#folders.run(flight, read, signal);
    } catch (error) {
      if (!isApiFailure(error, 'not-found', 'not-folder')) throw error;
      // The folder itself has changed, so its cached entry is outdated.
      this.deps.cache.forget(keyOf(path));
      if (path === ROOT) throw error;
      return undefined;
    }
  }

  /**
   * Starts to list `path` before it is known to be a folder; `entry` is the running lookup of it. `folder` joins the
   * listing later. A failure of this listing is ignored.
   */
  beginFolder(path: Path, entry: Promise<Known>, signal: AbortSignal | undefined): void {
    const flight = `${this.deps.cache.inFlight.generation} ${keyOf(path)}`;
    this.#folders.run(flight, (stop) => this.#fetchUnseen(path, entry, stop), signal).catch(() => {});
  }

  /** Lists the folder in the background: it may be large, and the client waits for a single name. */
  #listBeside(key: string): void {
    const folder = this.deps.cache.peek(key);
    if (folder === undefined || folder === 'absent' || folder.kind === 'file') return;
    this.folder(folder, undefined).catch(() => {});
  }

  #entry(path: Path, signal: AbortSignal | undefined): Promise<Known> {
    const flight = `${this.deps.cache.inFlight.generation} ${keyOf(path)}`;
    return this.#entries.run(flight, (stop) => this.#fetchEntry(path, stop), signal);
  }

  async #knownOrAsked(path: Path, signal: AbortSignal | undefined): Promise<Known> {
    return this.deps.cache.peek(keyOf(path)) ?? (await this.entry(path, signal));
  }

  async #fetchEntry(path: Path, signal: AbortSignal): Promise<Known> {
    const { cache, times } = this.deps;
    const key = keyOf(path);
    const fetch = cache.inFlight.begin('entry', key);
    try {
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        // The folder's entry has its name in display case.
        const [parent, found] = await Promise.all([
          this.#knownOrAsked(parentOf(path), signal),
          this.#ask(path, signal),
        ]);
        await this.deps.afterAnswer?.();
        const isInFolder = parent !== 'absent' && parent.kind === 'folder';
        if (!isInFolder && !found) return 'absent';
        if (!isInFolder) {
          cache.doubtMissingAbove(key);
          continue;
        }
        const [entry] = await times.applyTo(found ? [placedIn(parent.path, found)] : []);
        const newer = takeChanges(fetch).get(key);
        if (newer === 'unsure') continue;
        const answer = newer === undefined ? (entry ?? 'absent') : placedKnown(parent.path, newer);
        if (!fetch.isVoid) cache.store(key, answer, parent.path);
        return answer;
      }
      throw tooUnsteady(path);
    } finally {
      cache.inFlight.end(fetch);
    }
  }

  // A name that the service refuses does not exist. A failure would make the whole folder unlistable.
  async #ask(path: Path, signal: AbortSignal): Promise<Entry | undefined> {
    try {
      return await this.deps.remote.stat(path, signal);
    } catch (error) {
      if (isApiFailure(error, 'malformed-path')) return undefined;
      throw error;
    }
  }

  #fetchUnseen(path: Path, entry: Promise<Known>, signal: AbortSignal): Promise<CachedFolder> {
    const folder = async () => {
      const known = await entry;
      if (known === 'absent' || known.kind === 'file') throw tooUnsteady(path);
      return known;
    };
    return this.#readNow(path, folder, signal);
  }

  /** Lists a folder now. `theFolder` returns the folder's entry, which has its path in display case. */
  async #readNow(
    path: Path,
    theFolder: () => Promise<FolderEntry>,
    signal: AbortSignal,
  ): Promise<CachedFolder> {
    const { cache, clock } = this.deps;
    const key = keyOf(path);
    const fetch = cache.inFlight.begin('folder', key);
    const asked = momentNow(clock);
    try {
      const [folder, found] = await Promise.all([theFolder(), this.#readFolder(path, signal)]);
      await this.deps.afterAnswer?.();
      fetch.isAnswered = true;
      for (const [name, entry] of found) found.set(name, placedIn(folder.path, entry));
      doubtLooked(fetch, (child) => found.get(nameOf(child as Path)));
      await this.#settle(fetch, folder, found, signal);
      const before = cache.folder(key);
      if (before) for (const [name, entry] of found) found.set(name, withTimeOf(before.get(name), entry));
      const listed = CachedFolder.whole(folder.path, asked, found);
      if (!fetch.isVoid) cache.keepFolder(key, listed);
      return listed;
    } finally {
      cache.inFlight.end(fetch);
    }
  }

  async #readFolder(folder: Path, signal: AbortSignal, attempt = 1): Promise<Map<string, Entry>> {
    try {
      return await this.#readPages(folder, signal);
    } catch (error) {
      if (!isApiFailure(error, 'reset') || attempt === RESETS_MAX) throw error;
      return this.#readFolder(folder, signal, attempt + 1);
    }
  }

  async #readPages(folder: Path, signal: AbortSignal): Promise<Map<string, Entry>> {
    const { remote, times, isHidden } = this.deps;
    const found = new Map<string, Entry>();
    for await (const { changes } of remote.list(folder, { recursive: false }, signal)) {
      const puts: Entry[] = [];
      for (const change of changes) {
        if (change.kind === 'deleted') found.delete(foldName(nameOf(change.path)));
        else if (!isHidden(change.entry.name)) puts.push(change.entry);
      }
      for (const entry of await times.applyTo(puts)) found.set(foldName(entry.name), entry);
    }
    return found;
  }

  /** Merges the changes made meanwhile into `found`. Afterwards nothing is unsure. */
  async #settle(
    fetch: Fetch,
    folder: FolderEntry,
    found: Map<string, Entry>,
    signal: AbortSignal,
  ): Promise<void> {
    const { isHidden } = this.deps;
    let attempts = 0;
    for (let changes = takeChanges(fetch); changes.size > 0; changes = takeChanges(fetch)) {
      if (++attempts > SETTLING_MAX) throw tooUnsteady(folder.path);
      const settled = [...changes].map(async ([key, known]) => {
        const name = nameOf(key as Path);
        const now = known === 'unsure' ? await this.#entry(join(folder.path, name), signal) : known;
        if (now === 'absent' || isHidden(now.name)) found.delete(name);
        else found.set(name, placedIn(folder.path, now));
      });
      await Promise.all(settled);
    }
  }
}

export function tooUnsteady(path: Path): FileError {
  return new FileError('busy', `${path} keeps changing while it is being read; try again`);
}
