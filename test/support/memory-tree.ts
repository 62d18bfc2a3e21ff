import type { Entry, FolderEntry, Listing } from '../../src/drive/files.ts';
import { keyOf, type Path, parentOf, ROOT } from '../../src/util/path.ts';

/**
 * Entries by path, with names folded as in the service. A listing is the same object until its folder changes.
 */
export class MemoryTree {
  readonly #entries = new Map<string, Entry>();
  /** Keys of children by the key of their folder. */
  readonly #children = new Map<string, Set<string>>();
  readonly #listings = new Map<string, Listing>();

  get(path: Path): Entry | undefined {
    return this.#entries.get(keyOf(path));
  }

  all(): Entry[] {
    return [...this.#entries.values()];
  }

  /** Returns the entries at `path` and below it, parents first. */
  at(path: Path): Entry[] {
    return this.#within(keyOf(path));
  }

  listing(folder: FolderEntry): Listing {
    const key = keyOf(folder.path);
    const listing = this.#listings.get(key) ?? { folder, children: this.#childrenOf(key) };
    this.#listings.set(key, listing);
    return listing;
  }

  put(entry: Entry): void {
    const key = keyOf(entry.path);
    const parent = keyOf(parentOf(entry.path));
    this.#entries.set(key, entry);
    if (entry.path !== ROOT) this.#children.set(parent, (this.#children.get(parent) ?? new Set()).add(key));
    this.#forgetListings(key, parent);
  }

  drop(entry: Entry): void {
    const key = keyOf(entry.path);
    const parent = keyOf(parentOf(entry.path));
    this.#entries.delete(key);
    this.#children.get(parent)?.delete(key);
    this.#forgetListings(key, parent);
  }

  #within(key: string): Entry[] {
    const entry = this.#entries.get(key);
    const below = [...(this.#children.get(key) ?? [])].flatMap((child) => this.#within(child));
    return entry ? [entry, ...below] : below;
  }

  #childrenOf(key: string): Entry[] {
    return [...(this.#children.get(key) ?? [])].flatMap((child) => this.#entries.get(child) ?? []);
  }

  #forgetListings(...keys: readonly string[]): void {
    for (const key of keys) this.#listings.delete(key);
  }
}
