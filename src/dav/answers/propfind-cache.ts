import { LRUCache } from 'lru-cache';
import type { Entry, Listing } from '../../drive/files.ts';
import type { PropertySelection } from '../properties/property-selection.ts';

/** Maximum size of the cached answers, in bytes. A listing of 10,000 rows takes 5 to 7 MB. */
const ANSWERS_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum length of the cached rows, in characters, over all selections. */
const ROWS_LENGTH_MAX = 8 * 1024 * 1024;
/** Maximum number of cached selections. Each client program repeats the same few request bodies. */
const SELECTIONS_MAX = 64;

/**
 * Rendered PROPFIND answers and rows, and parsed request bodies. Entries and listings are immutable values, so whatever
 * was rendered from one stays valid while the drive shows that value: nothing here needs to be invalidated.
 */
export class PropfindCache {
  readonly #selections = new LRUCache<string, PropertySelection>({ max: SELECTIONS_MAX });
  readonly #answers = new LRUCache<string, Buffer>({
    maxSize: ANSWERS_BYTES_MAX,
    sizeCalculation: (body, key) => body.length + key.length,
  });
  readonly #ids = new WeakMap<object, number>();
  #lastId = 0;
  #rows = new WeakMap<PropertySelection, WeakMap<Entry, string>>();
  #rowsLength = 0;

  /** Returns the selection cached under `key`, the request body with all that changes its meaning. */
  async selection(key: string, parse: () => Promise<PropertySelection>): Promise<PropertySelection> {
    const known = this.#selections.get(key);
    if (known) return known;
    const selection = await parse();
    this.#selections.set(key, selection);
    return selection;
  }

  /** Returns the key of an answer. `version` is that of the dead properties, if the answer shows any. */
  answerKey(
    listing: Listing,
    selection: PropertySelection,
    href: string,
    version: number | undefined,
  ): string {
    return `${this.#idOf(listing)} ${this.#idOf(selection)} ${version} ${href}`;
  }

  answer(key: string): Buffer | undefined {
    return this.#answers.get(key);
  }

  keepAnswer(key: string, body: Buffer): void {
    this.#answers.set(key, body);
  }

  /** Returns the row of `entry`, rendered once. */
  row(selection: PropertySelection, entry: Entry, render: () => string): string {
    const rows = this.#rowsOf(selection);
    const known = rows.get(entry);
    if (known !== undefined) return known;
    // V8 keeps a concatenated string as a tree until it is copied; a flat one is sent three times as fast.
    const row = Buffer.from(render()).toString();
    rows.set(entry, row);
    this.#rowsLength += row.length;
    // A weak map cannot tell how much of it is still alive: start over.
    if (this.#rowsLength > ROWS_LENGTH_MAX) {
      this.#rows = new WeakMap();
      this.#rowsLength = 0;
    }
    return row;
  }

  #rowsOf(selection: PropertySelection): WeakMap<Entry, string> {
    const known = this.#rows.get(selection);
    if (known) return known;
    const rows = new WeakMap<Entry, string>();
    this.#rows.set(selection, rows);
    return rows;
  }

  #idOf(value: object): number {
    const known = this.#ids.get(value);
    if (known !== undefined) return known;
    this.#lastId += 1;
    this.#ids.set(value, this.#lastId);
    return this.#lastId;
  }
}
