import type { Change, Entry, FolderEntry, Remote } from '../api/remote.ts';
import type { Clock } from '../util/clock.ts';
import { foldName, join, keyOf, nameOf, type Path, parentOf, ROOT } from '../util/path.ts';
import { SingleFlight } from '../util/single-flight.ts';
import { FileError, isApiFailure } from './errors.ts';
import { type Fetch, Fetches, takeChanges } from './fetches.ts';
import type { Listing } from './files.ts';
import { parentKeyOf } from './key-tree.ts';
import { CachedFolder, FolderCache, type Known } from './listing.ts';
import { type Ongoing, OwnChanges, stateOf } from './own-changes.ts';
import type { SetTimes } from './set-times.ts';

export interface MetadataParts {
  readonly remote: Pick<Remote, 'stat' | 'list'>;
  readonly times: SetTimes;
  readonly clock: Clock;
  /** What the service may have and nobody is to see. */
  readonly isHidden: (name: string) => boolean;
  /** Whether what was asked for at `askedMs` may still be believed. */
  readonly isFresh: (askedMs: number) => boolean;
  readonly bytesMax: number;
}

/** A folder in which this many names were asked for in vain is listed when the next one is. */
const MISSES_MAX = 2;

/** As many names of a listing are asked for one by one when it is not known what they are; more of them all at once. */
const UNSURE_MAX = 16;

/** What keeps changing while it is asked for is asked for so often. */
const ATTEMPTS_MAX = 8;

/** A listing that the service breaks off is begun so often. */
const RESETS_MAX = 3;

/** What is begun by `Metadata.begin`, to be ended with what it made of each place. */
export interface OwnChange {
  /** What became of a place that is left out is not known. `isNew`: a folder among them has just been made and is empty. */
  end(outcomes: readonly (readonly [Path, Known])[], how?: { readonly isNew: boolean }): void;
}

/** What is where in the service, from memory wherever that is certain, and never older than a change of ours. */
export class Metadata {
  readonly #parts: MetadataParts;
  readonly #folders: FolderCache;
  readonly #fetches = new Fetches();
  readonly #own = new OwnChanges();
  readonly #entryFlights = new SingleFlight<string, Known>();
  readonly #folderFlights = new SingleFlight<string, CachedFolder>();
  #root: FolderEntry = { kind: 'folder', id: 'root', path: ROOT, name: '' };

  constructor(parts: MetadataParts) {
    this.#parts = parts;
    this.#folders = new FolderCache(parts.bytesMax, parts.isFresh);
  }

  /** The root of the drive, which the service does not describe. */
  get root(): FolderEntry {
    return this.#root;
  }

  get sizeBytes(): number {
    return this.#folders.sizeBytes;
  }

  /** What is known without a question to the service. */
  peek(path: Path): Known | undefined {
    return path === ROOT ? this.#root : this.#peek(keyOf(path));
  }

  async stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined> {
    const known = this.peek(path) ?? (await this.#ask(path, signal));
    return known === 'absent' ? undefined : known;
  }

  /** Throws `FileError` `not-found` or `not-a-folder`. */
  async list(path: Path, signal?: AbortSignal): Promise<Listing> {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const entry = await this.stat(path, signal);
      if (!entry) throw new FileError('not-found', `${path} is not there`);
      if (entry.kind === 'file') throw new FileError('not-a-folder', `${path} is not a folder`);
      const known = this.#folders.find(keyOf(path));
      if (known?.isWhole) return known.listing(entry);
      const { unsure } = known ?? {};
      if (unsure && unsure.size <= UNSURE_MAX) {
        await Promise.all([...unsure].map((name) => this.#ask(join(entry.path, name), signal)));
        continue;
      }
      const folder = await this.#askFolder(entry, signal);
      if (folder.isWhole) return folder.listing(entry);
    }
    throw tooUnsteady(path);
  }

  /** The whole folders that are known at `path` and below. */
  cachedWithin(path: Path): CachedFolder[] {
    return this.#folders.within(keyOf(path));
  }

  /** A whole listing that is known already. */
  cachedListing(path: Path): Listing | undefined {
    const entry = this.peek(path);
    const folder = this.#folders.find(keyOf(path));
    return entry !== undefined && entry !== 'absent' && entry.kind === 'folder' && folder?.isWhole
      ? folder.listing(entry)
      : undefined;
  }

  /**
   * To be called before we change something at `paths`, so that no older answer is believed afterwards.
   * `shield`: what is there is shown until the end, whatever the feed says meanwhile.
   */
  begin(
    paths: readonly Path[],
    { tree = false, shield = false }: { readonly tree?: boolean; readonly shield?: boolean } = {},
  ): OwnChange {
    const changes = paths.map((path) => {
      const key = keyOf(path);
      return this.#own.begin(key, this.#peek(key), { tree, shield });
    });
    return {
      end: (outcomes, { isNew } = { isNew: false }) => {
        const byKey = new Map(outcomes.map(([path, known]) => [keyOf(path), known]));
        for (const change of changes) {
          const known = this.#end(change, byKey.get(change.key));
          if (isNew && known !== undefined && known !== 'absent' && !change.seenBelow)
            this.#startEmpty(known.path);
        }
      },
    };
  }

  /** Takes over a fact about an entry that the service does not know: the time that was set for it. */
  adorn(entry: Entry): void {
    if (entry.path === ROOT) this.#root = { ...this.#root, ...(entry as FolderEntry) };
    else this.#learn(keyOf(entry.path), entry);
  }

  /** What the change feed says, in its order. `doubted`: it may be older than changes of ours. */
  async apply(changes: readonly Change[], { doubted }: { readonly doubted: boolean }): Promise<void> {
    const puts = changes.flatMap((change) => (change.kind === 'put' ? change.entry : []));
    const shown = (await this.#parts.times.on(puts))[Symbol.iterator]();
    for (const change of changes) {
      if (change.kind === 'deleted') this.#applyOne(change.path, 'absent', doubted);
      else this.#applyOne(change.entry.path, shown.next().value ?? change.entry, doubted);
    }
  }

  /** The feed has told all that had happened by `reachedMs`. */
  reached(reachedMs: number): void {
    this.#own.reached(reachedMs);
  }

  /** Forgets all: nothing says what has changed since it was learnt. */
  reset(): void {
    this.#folders.clear();
    this.#fetches.voidAll();
  }

  #peek(key: string): Known | undefined {
    const known = this.#folders.get(key);
    if (known !== undefined) return known;
    for (let above = parentKeyOf(key); above !== ROOT; above = parentKeyOf(above)) {
      const ancestor = this.#folders.get(above);
      if (ancestor === 'absent' || (ancestor !== undefined && ancestor.kind === 'file')) return 'absent';
      if (ancestor !== undefined) return undefined;
    }
    return undefined;
  }

  async #ask(path: Path, signal: AbortSignal | undefined): Promise<Known> {
    const key = keyOf(path);
    const siblings = this.#folders.find(parentKeyOf(key));
    if (siblings && siblings.unsure === undefined && ++siblings.misses > MISSES_MAX) {
      const parent = await this.stat(parentOf(path), signal);
      if (parent?.kind !== 'folder') return 'absent';
      const known = (await this.#askFolder(parent, signal)).get(nameOf(key as Path));
      if (known !== undefined) return known;
    }
    const flight = `${this.#fetches.generation} ${key}`;
    return this.#entryFlights.run(flight, (stop) => this.#fetchEntry(path, stop), signal);
  }

  async #fetchEntry(path: Path, signal: AbortSignal): Promise<Known> {
    const key = keyOf(path);
    const fetch = this.#fetches.begin('entry', key);
    try {
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        const [parent, found] = await Promise.all([
          this.stat(parentOf(path), signal),
          this.#parts.remote.stat(path, signal),
        ]);
        if (found && parent?.kind !== 'folder') {
          this.#learn(parentKeyOf(key), undefined);
          continue;
        }
        if (parent?.kind !== 'folder') return 'absent';
        const [entry] = await this.#parts.times.on(found ? [placedIn(parent.path, found)] : []);
        const newer = takeChanges(fetch).get(key);
        if (newer === 'unsure') continue;
        const known = newer === undefined ? (entry ?? 'absent') : placedKnown(parent.path, newer);
        if (!fetch.isVoid) this.#store(key, known, parent.path);
        return known;
      }
      throw tooUnsteady(path);
    } finally {
      this.#fetches.end(fetch);
    }
  }

  #askFolder(folder: FolderEntry, signal: AbortSignal | undefined): Promise<CachedFolder> {
    const flight = `${this.#fetches.generation} ${keyOf(folder.path)}`;
    return this.#folderFlights.run(flight, (stop) => this.#fetchFolder(folder, stop), signal);
  }

  async #fetchFolder(folder: FolderEntry, signal: AbortSignal): Promise<CachedFolder> {
    const key = keyOf(folder.path);
    const fetch = this.#fetches.begin('folder', key);
    const askedMs = this.#parts.clock.now();
    try {
      const found = await this.#readFolder(folder, signal);
      await this.#settle(fetch, folder, found, signal);
      const listed = CachedFolder.whole(folder.path, askedMs, this.#withFolderTimes(key, found));
      if (!fetch.isVoid) this.#folders.keep(key, listed);
      return listed;
    } catch (error) {
      // The folder itself has changed: what was known of it is out of date.
      if (isApiFailure(error, 'not-found', 'not-folder')) this.#forget(key);
      throw error;
    } finally {
      this.#fetches.end(fetch);
    }
  }

  async #readFolder(folder: FolderEntry, signal: AbortSignal, attempt = 1): Promise<Map<string, Entry>> {
    try {
      return await this.#readPages(folder, signal);
    } catch (error) {
      if (!isApiFailure(error, 'reset') || attempt === RESETS_MAX) throw error;
      return this.#readFolder(folder, signal, attempt + 1);
    }
  }

  async #readPages(folder: FolderEntry, signal: AbortSignal): Promise<Map<string, Entry>> {
    const found = new Map<string, Entry>();
    for await (const { changes } of this.#parts.remote.list(folder.path, { recursive: false }, signal)) {
      const puts: Entry[] = [];
      for (const change of changes) {
        if (change.kind === 'deleted') found.delete(foldName(nameOf(change.path)));
        else if (!this.#parts.isHidden(change.entry.name)) puts.push(placedIn(folder.path, change.entry));
      }
      for (const entry of await this.#parts.times.on(puts)) found.set(foldName(entry.name), entry);
    }
    return found;
  }

  /** Brings what was read up to date with what changed meanwhile. When it returns nothing is left to be known. */
  async #settle(fetch: Fetch, folder: FolderEntry, found: Map<string, Entry>, signal: AbortSignal) {
    for (let changes = takeChanges(fetch); changes.size > 0; changes = takeChanges(fetch)) {
      const unsure: string[] = [];
      for (const [key, known] of changes) {
        const name = nameOf(key as Path);
        if (known === 'unsure') unsure.push(name);
        else if (known === 'absent') found.delete(name);
        else found.set(name, placedIn(folder.path, known));
      }
      for (const name of unsure) {
        const entry = await this.#parts.remote.stat(join(folder.path, name), signal);
        const [shown] = await this.#parts.times.on(entry ? [placedIn(folder.path, entry)] : []);
        if (shown && !this.#parts.isHidden(shown.name)) found.set(name, shown);
        else found.delete(name);
      }
    }
  }

  /** What we know of folders' times, which the service does not, outlives a new listing. */
  #withFolderTimes(key: string, found: ReadonlyMap<string, Entry>): Iterable<readonly [string, Entry]> {
    const before = this.#folders.find(key);
    if (!before) return found;
    return [...found].map(([name, entry]) => [name, withTimeOf(before.get(name), entry)]);
  }

  #startEmpty(path: Path): void {
    this.#folders.keep(keyOf(path), CachedFolder.whole(path, this.#parts.clock.now(), []));
  }

  #end(ongoing: Ongoing, outcome: Known | undefined): Known | undefined {
    const { key, tree } = ongoing;
    const known = this.#own.end(ongoing, outcome, this.#parts.clock.now());
    const before = this.#folders.get(key);
    if (tree || outcome === undefined) this.#drop(key);
    if (known !== undefined && known !== 'absent') this.#doubtMissingAbove(key);
    this.#learn(key, known);
    if (known === undefined) return known;
    if (known !== 'absent') this.#store(key, known, parentOf(known.path));
    this.#touchParent(key, before, known);
    return known;
  }

  /** We have put something where, as far as is known, no folder is. */
  #doubtMissingAbove(key: string): void {
    for (let above = parentKeyOf(key); above !== ROOT; above = parentKeyOf(above)) {
      const known = this.#folders.get(above);
      if (known === 'absent' || (known !== undefined && known.kind === 'file')) this.#learn(above, undefined);
    }
  }

  #applyOne(path: Path, known: Known, doubted: boolean): void {
    if (path === ROOT) this.reset();
    if (path === ROOT || this.#parts.isHidden(nameOf(path))) return;
    const key = keyOf(path);
    const verdict = this.#own.judge(key, known);
    const before = this.#folders.get(key);
    const isNews = before === undefined || stateOf(before) !== stateOf(known);
    if (!isNews || verdict === 'ignore') return;
    if (doubted || verdict === 'doubt' || isOlder(known, before)) {
      this.#forget(key);
      return;
    }
    // What lies in a folder of which nothing was known may be known all the same.
    if (known === 'absent' || known.kind === 'file' || before !== undefined) this.#drop(key);
    this.#learn(key, known);
    this.#touchParent(key, before, known);
  }

  #drop(key: string): void {
    this.#folders.dropWithin(key);
    this.#fetches.dropped(key);
  }

  /** Nothing is known any more of what is at `key` and below. */
  #forget(key: string): void {
    this.#drop(key);
    if (key !== ROOT) this.#learn(key, undefined);
  }

  /** From now on `known` is what is at `key`; `undefined`: it is not known. */
  #learn(key: string, known: Known | undefined): void {
    this.#fetches.changed(key, known);
    const parentKey = parentKeyOf(key);
    const folder = this.#folders.find(parentKey);
    if (!folder) return;
    if (known === undefined) folder.doubt(nameOf(key as Path));
    else folder.set(nameOf(key as Path), placedKnown(folder.path, known));
    this.#folders.keep(parentKey, folder);
  }

  #store(key: string, known: Known, parentPath: Path): void {
    const parentKey = parentKeyOf(key);
    const folder = this.#folders.find(parentKey) ?? new CachedFolder(parentPath, this.#parts.clock.now());
    const name = nameOf(key as Path);
    folder.set(name, known === 'absent' ? known : withTimeOf(folder.get(name), known));
    this.#folders.keep(parentKey, folder);
  }

  /** A folder is as new as the last name that came or went. */
  #touchParent(key: string, before: Known | undefined, known: Known): void {
    if (before === undefined || (before === 'absent') === (known === 'absent')) return;
    const modifiedMs = this.#parts.clock.now();
    const parentKey = parentKeyOf(key);
    if (parentKey === ROOT) {
      this.#root = { ...this.#root, modifiedMs };
      return;
    }
    const parent = this.#folders.get(parentKey);
    if (parent !== undefined && parent !== 'absent' && parent.kind === 'folder')
      this.#learn(parentKey, { ...parent, modifiedMs });
  }
}

function placedIn<E extends Entry>(folder: Path, entry: E): E {
  const path = join(folder, entry.name);
  return path === entry.path ? entry : { ...entry, path };
}

function placedKnown(folder: Path, known: Known): Known {
  return known === 'absent' ? known : placedIn(folder, known);
}

function withTimeOf(before: Known | undefined, entry: Entry): Entry {
  if (entry.kind === 'file' || entry.modifiedMs !== undefined) return entry;
  if (before === undefined || before === 'absent' || before.kind === 'file' || before.id !== entry.id)
    return entry;
  return before.modifiedMs === undefined ? entry : { ...entry, modifiedMs: before.modifiedMs };
}

/** Whether the feed tells of a revision that was committed before the one that is known. */
function isOlder(known: Known, before: Known | undefined): boolean {
  if (known === 'absent' || before === undefined || before === 'absent') return false;
  return known.kind === 'file' && before.kind === 'file' && known.committedMs < before.committedMs;
}

function tooUnsteady(path: Path): FileError {
  return new FileError('busy', `${path} keeps changing while it is being looked at; try again`);
}
