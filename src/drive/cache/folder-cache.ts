import { LRUCache } from 'lru-cache';
import type { Entry, FolderEntry } from '../../api/remote.ts';
import type { Moment } from '../../util/clock.ts';
import { join, nameOf, type Path, parentKeyOf } from '../../util/path.ts';
import type { Listing } from '../files.ts';
import type { Freshness } from './freshness.ts';
import { KeyTree } from './key-tree.ts';

/** The cached state of one name: its entry, or that there is none. */
export type Known = Entry | 'absent';

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

/** The cached folders of a drive, in bounded memory: the least recently used are dropped first. */
export class FolderCache {
  readonly #folders: LRUCache<string, { readonly folder: CachedFolder }>;
  readonly #keys = new KeyTree();

  constructor(
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

  get sizeBytes(): number {
    return this.#folders.calculatedSize;
  }

  find(key: string): CachedFolder | undefined {
    const folder = this.kept(key);
    return folder && this.freshness.isFresh(folder.asked) ? folder : undefined;
  }

  /** Like `find`, but also returns folders that are too old to be used: changes must be applied to them too. */
  kept(key: string): CachedFolder | undefined {
    return this.#folders.get(key)?.folder;
  }

  /** Stores `folder`, or updates its size. */
  keep(key: string, folder: CachedFolder): void {
    // A new object each time: lru-cache ignores the new size of the same value.
    this.#folders.set(key, { folder }, { size: folder.sizeBytes });
    if (this.#folders.has(key)) this.#keys.add(key);
    else this.#keys.delete(key);
  }

  /** Returns the cached state of the last name of `key`. */
  get(key: string): Known | undefined {
    return this.find(parentKeyOf(key))?.get(nameOf(key as Path));
  }

  /** Drops the folders at `key` and below; the entry of `key` itself stays in its parent. */
  dropWithin(key: string): void {
    for (const each of this.#keys.within(key)) this.#folders.delete(each);
  }

  /** Returns the cached folders at `key` and below. */
  within(key: string): CachedFolder[] {
    return this.#keys.within(key).flatMap((each) => this.#folders.peek(each)?.folder ?? []);
  }

  /** Returns the keys directly below `key` at or below which a folder is cached. */
  below(key: string): string[] {
    return this.#keys.below(key);
  }

  clear(): void {
    this.#folders.clear();
    this.#keys.clear();
  }
}

function bytesOf(name: string, known: Known): number {
  const pathLength = known === 'absent' ? 0 : known.path.length + known.name.length;
  return (known === 'absent' ? 100 : ENTRY_BYTES) + 2 * (name.length + pathLength);
}
