/** A client's copy of a tree, updated from entries as service-api.md §9.4 requires. */
export class Mirror {
  readonly #shown = new Map<string, string>();

  /** The display paths, sorted. */
  get paths(): string[] {
    return [...this.#shown.values()].sort();
  }

  /**
   * Applies an entry: a file replaces its path, a folder keeps its children, a deletion removes all below its
   * path.
   */
  apply(kind: 'file' | 'folder' | 'deleted', key: string, shown = key): void {
    if (kind !== 'folder')
      for (const other of [...this.#shown.keys()]) if (other.startsWith(`${key}/`)) this.#shown.delete(other);
    if (kind === 'deleted') this.#shown.delete(key);
    else this.#shown.set(key, shown);
  }
}
