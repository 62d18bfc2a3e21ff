import { LRUCache } from 'lru-cache';
import type { Entry, FolderEntry } from '../../api/remote.ts';
import {
  ageMs,
  type Clock,
  type Instant,
  instantIn,
  LONG_AGO,
  type Moment,
  momentNow,
} from '../../util/clock.ts';
import { join, KeyTree, keyOf, nameOf, type Path, parentKeyOf, ROOT } from '../../util/path.ts';
import type { Listing } from '../files.ts';
import { InFlight, type Known, stateOf } from './recency.ts';

/** How long one long poll lasts, in ms: short enough for firewalls that forget quiet connections. */
export const POLL_MS = 90_000;

/**
 * Maximum silence of the feed, in ms: the service may add 90 s to a poll. A longer silence means that the machine has
 * slept, or that the service asked for a pause, and changes go unnoticed.
 */
const SILENCE_MS_MAX = POLL_MS + 120_000;

/** Approximate memory of an entry without its strings, in bytes. */
const ENTRY_BYTES = 400;

/** Approximate memory of a folder without its entries, in bytes. */
const FOLDER_BYTES = 500;

/** The cached part of one folder: a whole listing, or some names. Names are in folded case. */
export class CachedFolder {
  readonly #known = new Map<string, Known>();
  /** Names of a whole listing whose entries are outdated. */
  readonly #unsure = new Set<string>();
  #whole = false;
  #listing: Listing | undefined;
  sizeBytes = FOLDER_BYTES;
  /** Number of its names that were looked up one by one. */
  questions = 0;

  constructor(
    /** Path in display case. */
    readonly path: Path,
    /** Time of the request for its oldest answer. */
    readonly asked: Moment,
  ) {}

  /** Creates a folder with a whole listing. */
  static whole(path: Path, asked: Moment, children: Iterable<readonly [name: string, Entry]>): CachedFolder {
    const folder = new CachedFolder(path, asked);
    for (const [name, entry] of children) folder.set(name, entry);
    folder.#whole = true;
    return folder;
  }

  get isWhole(): boolean {
    return this.#whole && this.#unsure.size === 0;
  }

  /** The outdated names of a whole listing; `undefined` when there is no whole listing. */
  get unsure(): ReadonlySet<string> | undefined {
    return this.#whole ? this.#unsure : undefined;
  }

  get(name: string): Known | undefined {
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    return this.#whole && !this.#unsure.has(name) ? 'absent' : undefined;
  }

  set(name: string, known: Known): void {
    this.#remove(name);
    this.#unsure.delete(name);
    // In a whole listing a missing name is absent already.
    if (known === 'absent' && this.#whole) return;
    this.#known.set(name, known);
    this.sizeBytes += bytesOf(name, known);
  }

  /** Marks `name` as outdated. */
  doubt(name: string): void {
    this.#remove(name);
    if (this.#whole) this.#unsure.add(name);
  }

  /** Returns the whole listing, as the same object until something changes. Built on demand, since changes come in bursts. */
  listing(folder: FolderEntry): Listing {
    if (this.#listing?.folder !== folder) this.#listing = { folder, children: [...this.entries()] };
    return this.#listing;
  }

  /**
   * Returns the last whole listing, in which names that are `isCovered` may be missing; `undefined` when there is none, or
   * when a name that is not covered is outdated.
   */
  lastListing(folder: FolderEntry, isCovered: (path: Path) => boolean): Listing | undefined {
    const isSettled = (name: string) => isCovered(join(this.path, name));
    return this.#whole && [...this.#unsure].every(isSettled) ? this.listing(folder) : undefined;
  }

  *entries(): Iterable<Entry> {
    for (const known of this.#known.values()) if (known !== 'absent') yield known;
  }

  #remove(name: string): void {
    this.#listing = undefined;
    const old = this.#known.get(name);
    if (old === undefined) return;
    this.#known.delete(name);
    this.sizeBytes -= bytesOf(name, old);
  }
}

/** Whether the cache can be trusted: written by the change feed, read by the cache. */
export class Freshness {
  #isAlive = false;
  /** Time of the last report. */
  #heard: Moment | undefined;
  /** Until then no report counts. */
  #distrustedUntil: Instant = LONG_AGO;

  constructor(
    private readonly clock: Clock,
    /** How long cached answers are used while the feed is down, in ms. */
    private readonly staleMs: number,
  ) {}

  /** Whether the feed reports changes as they happen. */
  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Whether the feed counts as alive, but has been silent for too long. */
  get isSilent(): boolean {
    return this.#isAlive && this.#silentMs >= SILENCE_MS_MAX;
  }

  /** Whether an answer requested at `asked` may still be used. */
  isFresh(asked: Moment): boolean {
    if (this.#isAlive && !this.isSilent) return true;
    return Math.min(ageMs(this.clock, asked), this.#silentMs) < this.staleMs;
  }

  /** Records that the feed has reported everything up to now. */
  heard(): void {
    if (!this.#isDistrusted) this.#heard = momentNow(this.clock);
  }

  up(): void {
    if (!this.#isDistrusted) this.#isAlive = true;
  }

  down(): void {
    if (this.#isAlive && !this.isSilent) this.heard();
    this.#isAlive = false;
  }

  /** Like `down`, for at least `ms` from now: changes may be missing that the feed does not report. */
  distrust(ms: number): void {
    this.down();
    this.#distrustedUntil = instantIn(this.clock, ms);
  }

  get #isDistrusted(): boolean {
    return this.#distrustedUntil > this.clock.instant();
  }

  get #silentMs(): number {
    return this.#heard ? ageMs(this.clock, this.#heard) : Number.POSITIVE_INFINITY;
  }
}

/**
 * The cached tree of the drive, in bounded memory: the least recently used folders are dropped first. Each change is
 * passed to the running requests too, whose answers may be older. Keys are those of `keyOf`.
 */
export class TreeCache {
  readonly inFlight = new InFlight();
  readonly #folders: LRUCache<string, { readonly folder: CachedFolder }>;
  readonly #keys = new KeyTree();
  #root: FolderEntry = { kind: 'folder', id: 'root', path: ROOT, name: '' };

  constructor(
    private readonly clock: Clock,
    bytesMax: number,
    private readonly freshness: Freshness,
  ) {
    this.#folders = new LRUCache({
      maxSize: bytesMax,
      dispose: (_, key, reason) => {
        if (reason !== 'set') this.#keys.delete(key);
      },
    });
  }

  get root(): FolderEntry {
    return this.#root;
  }

  get sizeBytes(): number {
    return this.#folders.calculatedSize;
  }

  /** Returns the cached state of `key`: also `absent` when a folder above it is missing. */
  peek(key: string): Known | undefined {
    if (key === ROOT) return this.#root;
    const known = this.at(key);
    if (known !== undefined) return known;
    for (let above = parentKeyOf(key); above !== ROOT; above = parentKeyOf(above)) {
      const ancestor = this.at(above);
      if (ancestor === 'absent' || (ancestor !== undefined && ancestor.kind === 'file')) return 'absent';
      if (ancestor !== undefined) return undefined;
    }
    return undefined;
  }

  /** Like `peek`, without looking at the folders above. */
  at(key: string): Known | undefined {
    return this.folder(parentKeyOf(key))?.get(nameOf(key as Path));
  }

  /** Returns the last known state of `key`, however old, unless an own change has outdated it. */
  last(key: string): Known | undefined {
    if (key === ROOT) return this.#root;
    return this.#kept(parentKeyOf(key))?.get(nameOf(key as Path));
  }

  /** Returns `CachedFolder.lastListing` of the folder at `key`. */
  lastListing(key: string, isCovered: (path: Path) => boolean): Listing | undefined {
    const folder = this.last(key);
    if (folder === undefined || folder === 'absent' || folder.kind === 'file') return undefined;
    return this.#kept(key)?.lastListing(folder, isCovered);
  }

  /** Returns the cached folder at `key`, unless it is too old to be used. */
  folder(key: string): CachedFolder | undefined {
    const folder = this.#kept(key);
    return folder && this.freshness.isFresh(folder.asked) ? folder : undefined;
  }

  /** Returns the cached folders at `key` and below. */
  foldersWithin(key: string): CachedFolder[] {
    return this.#keys.within(key).flatMap((each) => this.#folders.peek(each)?.folder ?? []);
  }

  /** Stores a new listing. Drops the contents of children that are no longer folders. */
  keepFolder(key: string, folder: CachedFolder): void {
    for (const below of this.#keys.below(key)) {
      const name = nameOf(below as Path);
      this.#dropUnless(below, this.last(below), folder.get(name));
    }
    this.#keep(key, folder);
  }

  /** Records that `known` is at `key` now; `undefined`: unknown. Stored only if the parent folder is cached. */
  learn(key: string, known: Known | undefined): void {
    this.inFlight.changed(key, known);
    const parentKey = parentKeyOf(key);
    const folder = this.#kept(parentKey);
    if (!folder) return;
    const name = nameOf(key as Path);
    if (known === undefined) folder.doubt(name);
    else folder.set(name, placedKnown(folder.path, known));
    this.#keep(parentKey, folder);
  }

  /** Stores an answer of the service, also when the parent folder is not cached yet. */
  store(key: string, known: Known, parentPath: Path): void {
    const parentKey = parentKeyOf(key);
    const folder = this.folder(parentKey) ?? new CachedFolder(parentPath, momentNow(this.clock));
    const name = nameOf(key as Path);
    const before = this.last(key);
    this.inFlight.looked(key, known);
    this.#dropUnless(key, before, known);
    folder.set(name, known === 'absent' ? known : withTimeOf(before, known));
    this.#keep(parentKey, folder);
  }

  /** Records that davgate has created the folder at `path`, which is empty. */
  startEmpty(path: Path): void {
    this.#keep(keyOf(path), CachedFolder.whole(path, momentNow(this.clock), []));
  }

  /** Stores the time that a client set, which the service does not know, if `entry` is still current. */
  adorn(entry: Entry): void {
    if (entry.path === ROOT) {
      if (entry.kind === 'folder') this.#root = entry;
      return;
    }
    const key = keyOf(entry.path);
    const now = this.last(key);
    if (now !== undefined && stateOf(now) === stateOf(entry)) this.learn(key, entry);
    // The answers of running requests lack the time.
    else this.inFlight.changed(key, undefined);
  }

  /** Drops the cached state below `key`. */
  drop(key: string): void {
    for (const each of this.#keys.within(key)) this.#folders.delete(each);
    this.inFlight.dropped(key);
  }

  /** Drops the cached state at `key` and below. */
  forget(key: string): void {
    this.drop(key);
    if (key !== ROOT) this.learn(key, undefined);
  }

  /** Records that `key` exists: a folder above it that is cached as absent is outdated. */
  doubtMissingAbove(key: string): void {
    for (let above = parentKeyOf(key); above !== ROOT; above = parentKeyOf(above)) {
      const known = this.last(above);
      if (known === 'absent' || (known !== undefined && known.kind === 'file')) this.learn(above, undefined);
    }
  }

  /** Updates the parent's time when a name appeared at `key` or disappeared, at `madeMs`. */
  touchParent(key: string, before: Known | undefined, known: Known, madeMs: number): void {
    if (before === undefined || (before === 'absent') === (known === 'absent')) return;
    const parent = this.peek(parentKeyOf(key));
    if (parent !== undefined && parent !== 'absent' && parent.kind === 'folder')
      this.adorn({ ...parent, modifiedMs: madeMs });
  }

  /** Drops the contents of `key` unless it is still the same folder. */
  #dropUnless(key: string, before: Known | undefined, now: Known | undefined): void {
    if (now === undefined) return;
    const isFolder = now !== 'absent' && now.kind === 'folder';
    const isAnother = isFolder && before !== undefined && before !== 'absent' && before.id !== now.id;
    if (!isFolder || isAnother) this.drop(key);
  }

  /** Also returns a folder that is too old to be used: changes must be applied to it too. */
  #kept(key: string): CachedFolder | undefined {
    return this.#folders.get(key)?.folder;
  }

  /** Stores `folder`, or updates its size. */
  #keep(key: string, folder: CachedFolder): void {
    // A new object each time: lru-cache ignores the new size of the same value.
    this.#folders.set(key, { folder }, { size: folder.sizeBytes });
    if (this.#folders.has(key)) this.#keys.add(key);
    else this.#keys.delete(key);
  }

  reset(): void {
    this.#folders.clear();
    this.#keys.clear();
    this.inFlight.voidAll();
  }
}

/** Returns `entry` with its path in `folder`: the service may use another letter case for the folders above it. */
export function placedIn<E extends Entry>(folder: Path, entry: E): E {
  const path = join(folder, entry.name);
  return path === entry.path ? entry : { ...entry, path };
}

export function placedKnown(folder: Path, known: Known): Known {
  return known === 'absent' ? known : placedIn(folder, known);
}

/** Returns `entry` with the folder's time from the cache: the service has no times of folders. */
export function withTimeOf(before: Known | undefined, entry: Entry): Entry {
  if (entry.kind === 'file' || entry.modifiedMs !== undefined) return entry;
  if (before === undefined || before === 'absent' || before.kind === 'file') return entry;
  if (before.id !== entry.id || before.modifiedMs === undefined) return entry;
  return { ...entry, modifiedMs: before.modifiedMs };
}

function bytesOf(name: string, known: Known): number {
  const pathLength = known === 'absent' ? 0 : known.path.length + known.name.length;
  return (known === 'absent' ? 100 : ENTRY_BYTES) + 2 * (name.length + pathLength);
}
