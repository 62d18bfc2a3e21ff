import { isApiFailure } from '../../api/errors.ts';
import type { Entry, FolderEntry, Remote } from '../../api/remote.ts';
import { type Clock, momentNow } from '../../util/clock.ts';
import { foldName, join, keyOf, nameOf, type Path, parentOf } from '../../util/path.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import { FileError } from '../errors.ts';
import type { ModifiedTimes } from '../set-times.ts';
import { CachedFolder, type Known } from './folder-cache.ts';
import { type Fetch, takeChanges } from './in-flight.ts';
import { parentKeyOf } from './key-tree.ts';
import { placedIn, placedKnown, type TreeCache, withTimeOf } from './tree-cache.ts';

export interface LookupsParts {
  readonly remote: Pick<Remote, 'stat' | 'list'>;
  readonly known: TreeCache;
  readonly times: ModifiedTimes;
  readonly clock: Clock;
  /** What the service may have and nobody is to see. */
  readonly isHidden: (name: string) => boolean;
}

/** A folder that is known in part is listed besides when so many more names in it are asked for one by one. */
const SINGLE_QUESTIONS_MAX = 2;

/** What keeps changing while it is asked for is asked for so often. */
const ATTEMPTS_MAX = 8;

/** Rounds of changes that are worked into one listing while more arrive. */
const SETTLING_MAX = 100;

/** A listing that the service breaks off is begun so often. */
const RESETS_MAX = 3;

/**
 * Questions to the service, each asked once for all who wait for it. An answer counts only as far as nothing
 * newer was learnt while it was on its way.
 */
export class Lookups {
  readonly #entries = new SingleFlight<string, Known>();
  readonly #folders = new SingleFlight<string, CachedFolder>();

  constructor(private readonly parts: LookupsParts) {}

  /** What is at `path`, which is not the root. */
  async entry(path: Path, signal: AbortSignal | undefined): Promise<Known> {
    const { known } = this.parts;
    const key = keyOf(path);
    const siblings = known.folder(parentKeyOf(key));
    if (siblings && !siblings.unsure && ++siblings.questions === SINGLE_QUESTIONS_MAX)
      this.#listBeside(parentKeyOf(key));
    const flight = `${known.fetches.generation} ${key}`;
    return this.#entries.run(flight, (stop) => this.#fetchEntry(path, stop), signal);
  }

  /** All that is in `folder`, which is there. */
  folder(folder: FolderEntry, signal: AbortSignal | undefined): Promise<CachedFolder> {
    const flight = `${this.parts.known.fetches.generation} ${keyOf(folder.path)}`;
    return this.#folders.run(flight, (stop) => this.#fetchFolder(folder, stop), signal);
  }

  /**
   * Begins to ask what is in `path` before it is known to be a folder; `entry` is on its way. Nobody waits for it:
   * `folder` joins it, and a failure of it says nothing.
   */
  beginFolder(path: Path, entry: Promise<Known>, signal: AbortSignal | undefined): void {
    const flight = `${this.parts.known.fetches.generation} ${keyOf(path)}`;
    this.#folders.run(flight, (stop) => this.#fetchUnseen(path, entry, stop), signal).catch(() => {});
  }

  /** Nobody waits for it: a folder may be large, and who asks for one name wants that one now. */
  #listBeside(key: string): void {
    const folder = this.parts.known.peek(key);
    if (folder === undefined || folder === 'absent' || folder.kind === 'file') return;
    this.folder(folder, undefined).catch(() => {});
  }

  async #knownOrAsked(path: Path, signal: AbortSignal | undefined): Promise<Known> {
    return this.parts.known.peek(keyOf(path)) ?? (await this.entry(path, signal));
  }

  async #fetchEntry(path: Path, signal: AbortSignal): Promise<Known> {
    const { known, times } = this.parts;
    const key = keyOf(path);
    const fetch = known.fetches.begin('entry', key);
    try {
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        // The folder's entry says how its name is written.
        const [parent, found] = await Promise.all([
          this.#knownOrAsked(parentOf(path), signal),
          this.#ask(path, signal),
        ]);
        const isInFolder = parent !== 'absent' && parent.kind === 'folder';
        if (!isInFolder && !found) return 'absent';
        if (!isInFolder) {
          known.doubtMissingAbove(key);
          continue;
        }
        const [entry] = await times.on(found ? [placedIn(parent.path, found)] : []);
        const newer = takeChanges(fetch).get(key);
        if (newer === 'unsure') continue;
        const answer = newer === undefined ? (entry ?? 'absent') : placedKnown(parent.path, newer);
        if (!fetch.isVoid) known.store(key, answer, parent.path);
        return answer;
      }
      throw tooUnsteady(path);
    } finally {
      known.fetches.end(fetch);
    }
  }

  // Nothing has a name that the service does not take. A failure would keep the whole folder from being listed.
  async #ask(path: Path, signal: AbortSignal): Promise<Entry | undefined> {
    try {
      return await this.parts.remote.stat(path, signal);
    } catch (error) {
      if (isApiFailure(error, 'malformed-path')) return undefined;
      throw error;
    }
  }

  async #fetchFolder(folder: FolderEntry, signal: AbortSignal): Promise<CachedFolder> {
    try {
      return await this.#readNow(folder.path, async () => folder, signal);
    } catch (error) {
      // The folder itself has changed: what was known of it is out of date.
      if (isApiFailure(error, 'not-found', 'not-folder')) this.parts.known.forget(keyOf(folder.path));
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

  /** `theFolder`: how the name of what is read is written. */
  async #readNow(
    path: Path,
    theFolder: () => Promise<FolderEntry>,
    signal: AbortSignal,
  ): Promise<CachedFolder> {
    const { known, clock } = this.parts;
    const key = keyOf(path);
    const fetch = known.fetches.begin('folder', key);
    const asked = momentNow(clock);
    try {
      const [folder, found] = await Promise.all([theFolder(), this.#readFolder(path, signal)]);
      for (const [name, entry] of found) found.set(name, placedIn(folder.path, entry));
      await this.#settle(fetch, folder, found, signal);
      const before = known.folder(key);
      if (before) for (const [name, entry] of found) found.set(name, withTimeOf(before.get(name), entry));
      const listed = CachedFolder.whole(folder.path, asked, found);
      if (!fetch.isVoid) known.keepFolder(key, listed);
      return listed;
    } finally {
      known.fetches.end(fetch);
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
    const { remote, times, isHidden } = this.parts;
    const found = new Map<string, Entry>();
    for await (const { changes } of remote.list(folder, { recursive: false }, signal)) {
      const puts: Entry[] = [];
      for (const change of changes) {
        if (change.kind === 'deleted') found.delete(foldName(nameOf(change.path)));
        else if (!isHidden(change.entry.name)) puts.push(change.entry);
      }
      for (const entry of await times.on(puts)) found.set(foldName(entry.name), entry);
    }
    return found;
  }

  /** Brings what was read up to date with what changed meanwhile. When it returns nothing is left to be known. */
  async #settle(
    fetch: Fetch,
    folder: FolderEntry,
    found: Map<string, Entry>,
    signal: AbortSignal,
  ): Promise<void> {
    const { times, isHidden } = this.parts;
    let attempts = 0;
    for (let changes = takeChanges(fetch); changes.size > 0; changes = takeChanges(fetch)) {
      if (++attempts > SETTLING_MAX) throw tooUnsteady(folder.path);
      const unsure: string[] = [];
      for (const [key, known] of changes) {
        const name = nameOf(key as Path);
        if (known === 'unsure') unsure.push(name);
        else if (known === 'absent') found.delete(name);
        else found.set(name, placedIn(folder.path, known));
      }
      for (const name of unsure) {
        const entry = await this.#ask(join(folder.path, name), signal);
        const [shown] = await times.on(entry ? [placedIn(folder.path, entry)] : []);
        if (shown && !isHidden(shown.name)) found.set(name, shown);
        else found.delete(name);
      }
    }
  }
}

export function tooUnsteady(path: Path): FileError {
  return new FileError('busy', `${path} keeps changing while it is being looked at; try again`);
}
