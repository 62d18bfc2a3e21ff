import { LRUCache } from 'lru-cache';
import type { Entry, FolderEntry } from '../../api/remote.ts';
import type { Moment } from '../../util/clock.ts';
import { join, nameOf, type Path } from '../../util/path.ts';
import type { Listing } from '../files.ts';
import { KeyTree, parentKeyOf } from './key-tree.ts';

/** What is known of one name: its entry, or that nothing has it. */
export type Known = Entry | 'absent';

/** What an entry takes in memory beside its strings, roughly. */
const ENTRY_BYTES = 400;

/** What a folder takes beside what it holds. */
const FOLDER_BYTES = 500;

/** What is known of what is in one folder: everything, or some names. Names are folded. */
export class CachedFolder {
  readonly #known = new Map<string, Known>();
  /** Names of a whole listing of which it is not known any more what they are. */
  readonly #unsure = new Set<string>();
  #whole = false;
  #listing: Listing | undefined;
  sizeBytes = FOLDER_BYTES;
  /** How many single names of it the service was asked for. */
  questions = 0;

  constructor(
    /** In display case. */
    readonly path: Path,
    /** When the oldest of what it says was asked for. */
    readonly asked: Moment,
  ) {}

  /** A folder of which all is known. */
  static whole(path: Path, asked: Moment, children: Iterable<readonly [name: string, Entry]>): CachedFolder {
    const folder = new CachedFolder(path, asked);
    for (const [name, entry] of children) folder.set(name, entry);
    folder.#whole = true;
    return folder;
  }

  get isWhole(): boolean {
    return this.#whole && this.#unsure.size === 0;
  }

  /** What is missing to a whole listing; `undefined` when most of it is. */
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
    // A whole listing says by itself what is absent.
    if (known === 'absent' && this.#whole) return;
    this.#known.set(name, known);
    this.sizeBytes += bytesOf(name, known);
  }

  /** From now on nothing is known of `name`. */
  doubt(name: string): void {
    this.#remove(name);
    if (this.#whole) this.#unsure.add(name);
  }

  /** Of a whole folder; the same object until something changes. Built only when asked for: many changes may come first. */
  listing(folder: FolderEntry): Listing {
    if (this.#listing?.folder !== folder) this.#listing = { folder, children: [...this.entries()] };
    return this.#listing;
  }

  /**
   * All that was in it when that was last known, but for names that are `isCovered`; `undefined` when it never was, or
   * when a name is in doubt that is not covered.
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

/** The folders of a drive as far as they are known, in bounded memory: those not asked for longest make room. */
export class FolderCache {
  readonly #folders: LRUCache<string, { readonly folder: CachedFolder }>;
  readonly #keys = new KeyTree();

  /** `isFresh`: whether something may still be believed that was asked for at `asked`. */
  constructor(
    bytesMax: number,
    private readonly isFresh: (asked: Moment) => boolean,
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
    return folder && this.isFresh(folder.asked) ? folder : undefined;
  }

  /** As `find`, and also where it may not be believed any more: what changes has to reach that too. */
  kept(key: string): CachedFolder | undefined {
    return this.#folders.get(key)?.folder;
  }

  /** Puts `folder` at its key, or counts its size anew. */
  keep(key: string, folder: CachedFolder): void {
    // A new holder each time: the size of a value that is set again unchanged is not looked at.
    this.#folders.set(key, { folder }, { size: folder.sizeBytes });
    if (this.#folders.has(key)) this.#keys.add(key);
    else this.#keys.delete(key);
  }

  /** What is known of the name that `key` ends with. */
  get(key: string): Known | undefined {
    return this.find(parentKeyOf(key))?.get(nameOf(key as Path));
  }

  /** Drops what is known of what lies in `key` and below; what `key` itself is stays known. */
  dropWithin(key: string): void {
    for (const each of this.#keys.within(key)) this.#folders.delete(each);
  }

  /** The folders that are known, at `key` and below. */
  within(key: string): CachedFolder[] {
    return this.#keys.within(key).flatMap((each) => this.#folders.peek(each)?.folder ?? []);
  }

  /** The keys directly below `key` at or below which something is known. */
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
