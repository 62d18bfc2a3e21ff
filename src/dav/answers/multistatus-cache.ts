import { LRUCache } from 'lru-cache';
import type { Entry, Listing } from '../../drive/files.ts';
import type { PropertySet } from '../properties/set.ts';

/** Whole answers kept: a listing of 10,000 rows takes 5 to 7 MB. */
const ANSWERS_BYTES_MAX = 16 * 1024 * 1024;
/** Rows kept, in characters, over all kinds of PROPFIND. */
const ROWS_LENGTH_MAX = 8 * 1024 * 1024;

/**
 * Answers and rows made before. Entries and listings are immutable, so what was made from one stays right
 * for as long as that very value is what the drive shows; nothing here has to be told of a change.
 */
export class MultistatusCache {
  readonly #answers = new LRUCache<string, Buffer>({
    maxSize: ANSWERS_BYTES_MAX,
    sizeCalculation: (body, key) => body.length + key.length,
  });
  readonly #numbers = new WeakMap<object, number>();
  #lastNumber = 0;
  #rows = new WeakMap<PropertySet, WeakMap<Entry, string>>();
  #rowsLength = 0;

  /**
   * What an answer is known by: the listing, the kind of PROPFIND, where the client says the folder is, and
   * the version of the dead properties if they are shown.
   */
  key(listing: Listing, set: PropertySet, href: string, version: number | undefined): string {
    return `${this.#number(listing)} ${this.#number(set)} ${version} ${href}`;
  }

  answer(key: string): Buffer | undefined {
    return this.#answers.get(key);
  }

  keepAnswer(key: string, body: Buffer): void {
    this.#answers.set(key, body);
  }

  /** The row of `entry` that `make` makes, made once. */
  row(set: PropertySet, entry: Entry, make: () => string): string {
    const rows = this.#rowsOf(set);
    const known = rows.get(entry);
    if (known !== undefined) return known;
    // A string made of pieces stays a tree of them until it is copied: flat, it is sent three times as fast.
    const row = Buffer.from(make()).toString();
    rows.set(entry, row);
    this.#rowsLength += row.length;
    // A weak map cannot tell what it still holds, so all start anew.
    if (this.#rowsLength > ROWS_LENGTH_MAX) {
      this.#rows = new WeakMap();
      this.#rowsLength = 0;
    }
    return row;
  }

  #rowsOf(set: PropertySet): WeakMap<Entry, string> {
    const known = this.#rows.get(set);
    if (known) return known;
    const rows = new WeakMap<Entry, string>();
    this.#rows.set(set, rows);
    return rows;
  }

  #number(value: object): number {
    const known = this.#numbers.get(value);
    if (known !== undefined) return known;
    this.#lastNumber += 1;
    this.#numbers.set(value, this.#lastNumber);
    return this.#lastNumber;
  }
}
