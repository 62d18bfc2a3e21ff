import type { Entry, FolderEntry } from '../../api/remote.ts';
import { type Clock, type Moment, momentNow } from '../../util/clock.ts';
import { join, keyOf, nameOf, type Path, ROOT } from '../../util/path.ts';
import type { Listing } from '../files.ts';
import { CachedFolder, FolderCache, type Known } from './folder-cache.ts';
import { InFlight } from './in-flight.ts';
import { parentKeyOf } from './key-tree.ts';
import { stateOf } from './local-changes.ts';

/**
 * What is known of the tree. Whatever is learnt here reaches at once the questions under way, whose answers
 * may be older. Keys are those of `keyOf`.
 */
export class TreeCache {
  readonly fetches = new InFlight();
  readonly #folders: FolderCache;
  #root: FolderEntry = { kind: 'folder', id: 'root', path: ROOT, name: '' };

  constructor(
    private readonly clock: Clock,
    bytesMax: number,
    isFresh: (asked: Moment) => boolean,
  ) {
    this.#folders = new FolderCache(bytesMax, isFresh);
  }

  get root(): FolderEntry {
    return this.#root;
  }

  get sizeBytes(): number {
    return this.#folders.sizeBytes;
  }

  /** What is known to be at `key`, or that nothing can be there. */
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

  /** As `peek`, without a look at what is above. */
  at(key: string): Known | undefined {
    return this.#folders.get(key);
  }

  /** What is known to be at `key`, however long ago it was learnt; not where a change of ours has made it doubtful. */
  last(key: string): Known | undefined {
    if (key === ROOT) return this.#root;
    return this.#folders.kept(parentKeyOf(key))?.get(nameOf(key as Path));
  }

  /** As `CachedFolder.lastListing`, of the folder at `key`. */
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

  /** Takes over a listing that was just read; of what is in it no folder any more nothing is known inside. */
  keepFolder(key: string, folder: CachedFolder): void {
    for (const below of this.#folders.below(key)) {
      const name = nameOf(below as Path);
      this.#dropUnless(below, this.last(below), folder.get(name));
    }
    this.#folders.keep(key, folder);
  }

  /** From now on `known` is what is at `key`; `undefined`: it is not known. Remembered where its folder is. */
  learn(key: string, known: Known | undefined): void {
    this.fetches.changed(key, known);
    const parentKey = parentKeyOf(key);
    const folder = this.#folders.kept(parentKey);
    if (!folder) return;
    const name = nameOf(key as Path);
    if (known === undefined) folder.doubt(name);
    else folder.set(name, placedKnown(folder.path, known));
    this.#folders.keep(parentKey, folder);
  }

  /** Remembers an answer of the service, in a folder of which nothing was known if need be. */
  store(key: string, known: Known, parentPath: Path): void {
    const parentKey = parentKeyOf(key);
    const folder = this.#folders.find(parentKey) ?? new CachedFolder(parentPath, momentNow(this.clock));
    const name = nameOf(key as Path);
    const before = this.last(key);
    this.#dropUnless(key, before, known);
    folder.set(name, known === 'absent' ? known : withTimeOf(before, known));
    this.#folders.keep(parentKey, folder);
  }

  /** We have made the folder at `path`, and nothing is in it. */
  startEmpty(path: Path): void {
    this.#folders.keep(keyOf(path), CachedFolder.whole(path, momentNow(this.clock), []));
  }

  /** Takes over what the service does not know of an entry, the time that was set for it, if it still is what is there. */
  adorn(entry: Entry): void {
    if (entry.path === ROOT) {
      if (entry.kind === 'folder') this.#root = entry;
      return;
    }
    const key = keyOf(entry.path);
    const now = this.last(key);
    if (now !== undefined && stateOf(now) === stateOf(entry)) this.learn(key, entry);
    // Answers on their way do not know the time.
    else this.fetches.changed(key, undefined);
  }

  /** What lies below `key` is not known any more. */
  drop(key: string): void {
    this.#folders.dropWithin(key);
    this.fetches.dropped(key);
  }

  /** Neither what is at `key` nor what lies below it is known any more. */
  forget(key: string): void {
    this.drop(key);
    if (key !== ROOT) this.learn(key, undefined);
  }

  /** Something is at `key`, although, as far as is known, one of the folders above it is not there. */
  doubtMissingAbove(key: string): void {
    for (let above = parentKeyOf(key); above !== ROOT; above = parentKeyOf(above)) {
      const known = this.last(above);
      if (known === 'absent' || (known !== undefined && known.kind === 'file')) this.learn(above, undefined);
    }
  }

  /** `before` at `key` has become `known`: a folder is as new as the last name that came or went. */
  touchParent(key: string, before: Known | undefined, known: Known): void {
    if (before === undefined || (before === 'absent') === (known === 'absent')) return;
    const parent = this.peek(parentKeyOf(key));
    if (parent !== undefined && parent !== 'absent' && parent.kind === 'folder')
      this.adorn({ ...parent, modifiedMs: this.clock.now() });
  }

  /** What is known inside a folder is so of this folder only. */
  #dropUnless(key: string, before: Known | undefined, now: Known | undefined): void {
    if (now === undefined) return;
    const isFolder = now !== 'absent' && now.kind === 'folder';
    const isAnother = isFolder && before !== undefined && before !== 'absent' && before.id !== now.id;
    if (!isFolder || isAnother) this.drop(key);
  }

  reset(): void {
    this.#folders.clear();
    this.fetches.voidAll();
  }
}

/** `entry` where it lies in `folder`: the service may know the names above it in another letter case. */
export function placedIn<E extends Entry>(folder: Path, entry: E): E {
  const path = join(folder, entry.name);
  return path === entry.path ? entry : { ...entry, path };
}

export function placedKnown(folder: Path, known: Known): Known {
  return known === 'absent' ? known : placedIn(folder, known);
}

/** The service knows no times of folders: what we know of one outlives a new answer. */
export function withTimeOf(before: Known | undefined, entry: Entry): Entry {
  if (entry.kind === 'file' || entry.modifiedMs !== undefined) return entry;
  if (before === undefined || before === 'absent' || before.kind === 'file') return entry;
  if (before.id !== entry.id || before.modifiedMs === undefined) return entry;
  return { ...entry, modifiedMs: before.modifiedMs };
}
