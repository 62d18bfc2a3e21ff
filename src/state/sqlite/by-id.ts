import { LRUCache } from 'lru-cache';

/** What of the values is kept in memory, in bytes; all ids that have one are kept. */
const VALUES_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Rows of a table by the id of a file, with all ids in memory: to ask for ids that have nothing, which most
 * do, costs no query.
 */
export class ById<T extends object> {
  readonly #load: (id: string) => T | undefined;
  readonly #values: LRUCache<string, T>;
  #ids = new Set<string>();

  constructor(load: (id: string) => T | undefined, sizeBytesOf: (value: T) => number) {
    this.#load = load;
    this.#values = new LRUCache({ maxSize: VALUES_BYTES_MAX, sizeCalculation: sizeBytesOf });
  }

  /** These are the ids that have a value; nothing else is known any more. */
  reset(ids: Iterable<string>): void {
    this.#ids = new Set(ids);
    this.#values.clear();
  }

  has(id: string): boolean {
    return this.#ids.has(id);
  }

  get ids(): string[] {
    return [...this.#ids];
  }

  get isEmpty(): boolean {
    return this.#ids.size === 0;
  }

  /** Of those ids that have a value. */
  of(ids: readonly string[]): Map<string, T> {
    const found = new Map<string, T>();
    for (const id of ids) {
      const value = this.#ids.has(id) ? this.get(id) : undefined;
      if (value) found.set(id, value);
    }
    return found;
  }

  /** The value of `id`, which is not copied: whoever gets it does not change it. */
  get(id: string): T | undefined {
    if (!this.#ids.has(id)) return undefined;
    const cached = this.#values.get(id);
    if (cached) return cached;
    const value = this.#load(id);
    if (value) this.#values.set(id, value);
    return value;
  }

  /** The row of `id` has changed; whether it has one now. */
  changed(id: string, exists: boolean): void {
    this.#values.delete(id);
    if (exists) this.#ids.add(id);
    else this.#ids.delete(id);
  }
}
