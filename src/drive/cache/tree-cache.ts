import type { Entry, FolderEntry } from '../../api/remote.ts';
import { type Clock, momentNow } from '../../util/clock.ts';
import { join, keyOf, nameOf, type Path, parentKeyOf, ROOT } from '../../util/path.ts';
import type { Listing } from '../files.ts';
import { CachedFolder, FolderCache, type Known } from './folder-cache.ts';
import type { Freshness } from './freshness.ts';
import { InFlight } from './in-flight.ts';
import { stateOf } from './local-changes.ts';

/**
 * The cached tree of the drive. Each change is passed to the running requests too, whose answers may be older. Keys are
 * those of `keyOf`.
 */
export class TreeCache {
  readonly inFlight = new InFlight();
  readonly #folders: FolderCache;
  #root: FolderEntry = { kind: 'folder', id: 'root', path: ROOT, name: '' };

  constructor(
    private readonly clock: Clock,
    bytesMax: number,
    freshness: Freshness,
  ) {
    this.#folders = new FolderCache(bytesMax, freshness);
  }

  get root(): FolderEntry {
    return this.#root;
  }

  get sizeBytes(): number {
    return this.#folders.sizeBytes;
  }

  /** Returns the cached state of `key`: also `absent` when a folder above it is missing. */
  peek(key: string): Known | undefined {
    if (key === ROOT) return this.#root;
    const known = this.#folders.get(key);
    if (known !== undefined) return known;
    for (let above = parentKeyOf(key); above !== ROOT; above = parentKeyOf(above)) {
      const ancestor = this.#folders.get(above);
      if (ancestor === 'absent' || (ancestor !== undefined && ancestor.kind === 'file')) return 'absent';
      if (ancestor !== undefined) return undefined;
    }
    return undefined;
  }

  /** Like `peek`, without looking at the folders above. */
  at(key: string): Known | undefined {
    return this.#folders.get(key);
  }

  /** Returns the last known state of `key`, however old, unless an own change has outdated it. */
  last(key: string): Known | undefined {
    if (key === ROOT) return this.#root;
    return this.#folders.kept(parentKeyOf(key))?.get(nameOf(key as Path));
  }

  /** Returns `CachedFolder.lastListing` of the folder at `key`. */
  lastListing(key: string, isCovered: (path: Path) => boolean): Listing | undefined {
    const folder = this.last(key);
    if (folder === undefined || folder === 'absent' || folder.kind === 'file') return undefined;
    return this.#folders.kept(key)?.lastListing(folder, isCovered);
  }

  folder(key: string): CachedFolder | undefined {
    return this.#folders.find(key);
  }

  foldersWithin(key: string): CachedFolder[] {
    return this.#folders.within(key);
  }

  /** Stores a new listing. Drops the contents of children that are no longer folders. */
  keepFolder(key: string, folder: CachedFolder): void {
    for (const below of this.#folders.below(key)) {
      const name = nameOf(below as Path);
      this.#dropUnless(below, this.last(below), folder.get(name));
    }
    this.#folders.keep(key, folder);
  }

  /** Records that `known` is at `key` now; `undefined`: unknown. Stored only if the parent folder is cached. */
  learn(key: string, known: Known | undefined): void {
    this.inFlight.changed(key, known);
    const parentKey = parentKeyOf(key);
    const folder = this.#folders.kept(parentKey);
    if (!folder) return;
    const name = nameOf(key as Path);
    if (known === undefined) folder.doubt(name);
    else folder.set(name, placedKnown(folder.path, known));
    this.#folders.keep(parentKey, folder);
  }

  /** Stores an answer of the service, also when the parent folder is not cached yet. */
  store(key: string, known: Known, parentPath: Path): void {
    const parentKey = parentKeyOf(key);
    const folder = this.#folders.find(parentKey) ?? new CachedFolder(parentPath, momentNow(this.clock));
    const name = nameOf(key as Path);
    const before = this.last(key);
    this.#dropUnless(key, before, known);
    folder.set(name, known === 'absent' ? known : withTimeOf(before, known));
    this.#folders.keep(parentKey, folder);
  }

  /** Records that davgate has created the folder at `path`, which is empty. */
  startEmpty(path: Path): void {
    this.#folders.keep(keyOf(path), CachedFolder.whole(path, momentNow(this.clock), []));
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
    this.#folders.dropWithin(key);
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

  /** Updates the parent's time when a name appeared at `key` or disappeared. */
  touchParent(key: string, before: Known | undefined, known: Known): void {
    if (before === undefined || (before === 'absent') === (known === 'absent')) return;
    const parent = this.peek(parentKeyOf(key));
    if (parent !== undefined && parent !== 'absent' && parent.kind === 'folder')
      this.adorn({ ...parent, modifiedMs: this.clock.now() });
  }

  /** Drops the contents of `key` unless it is still the same folder. */
  #dropUnless(key: string, before: Known | undefined, now: Known | undefined): void {
    if (now === undefined) return;
    const isFolder = now !== 'absent' && now.kind === 'folder';
    const isAnother = isFolder && before !== undefined && before !== 'absent' && before.id !== now.id;
    if (!isFolder || isAnother) this.drop(key);
  }

  reset(): void {
    this.#folders.clear();
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
