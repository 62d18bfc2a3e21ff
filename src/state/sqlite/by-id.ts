import { LRUCache } from 'lru-cache';

/** Maximum size of the values in memory, in bytes; all ids are in memory. */
const VALUES_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Rows of a table by file id, with all ids in memory: most files have no row, and need no query to find that out.
 */
export class ById<T extends object> {
  readonly #load: (id: string) => T | undefined;
  readonly #values: LRUCache<string, T>;
  #ids = new Set<string>();
  /** The reading methods of a store whose rows are in such a table. */
  readonly reads = {
    /** Returns the values of those ids that have one. */
    of: async (ids: readonly string[]): Promise<Map<string, T>> => this.#of(ids),
    ids: async (): Promise<string[]> => [...this.#ids],
    isEmpty: async (): Promise<boolean> => this.#ids.size === 0,
  };

  constructor(load: (id: string) => T | undefined, sizeBytesOf: (value: T) => number) {
    this.#load = load;
    this.#values = new LRUCache({ maxSize: VALUES_BYTES_MAX, sizeCalculation: sizeBytesOf });
  }

  /** Replaces the known ids and drops the cached values. */
  reset(ids: Iterable<string>): void {
    this.#ids = new Set(ids);
    this.#values.clear();
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  /** Returns the value of `id`, which callers must not change. */
  get(id: string): T | undefined {
    if (!this.#ids.has(id)) return undefined;
    const cached = this.#values.get(id);
    if (cached) return cached;
    const value = this.#load(id);
    if (value) this.#values.set(id, value);
    return value;
  }

  /** Records that the row of `id` has changed; `exists`: whether there is one now. */
  changed(id: string, exists: boolean): void {
    this.#values.delete(id);
    if (exists) this.#ids.add(id);
    else this.#ids.delete(id);
  }

  #of(ids: readonly string[]): Map<string, T> {
    const found = new Map<string, T>();
    for (const id of ids) {
      const value = this.get(id);
      if (value) found.set(id, value);
    }
    return found;
  }
}
