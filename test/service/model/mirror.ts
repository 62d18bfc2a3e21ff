/** What a client knows that applies the entries of listings and changes as service-api.md §9.4 tells it to. */
export class Mirror {
  readonly #shown = new Map<string, string>();

  /** Each known path in the words it was shown in, sorted. */
  get paths(): string[] {
    return [...this.#shown.values()].sort();
  }

  /** A file replaces what is there, a folder keeps its children, a deletion takes all below it along. */
  apply(kind: 'file' | 'folder' | 'deleted', key: string, shown = key): void {
    if (kind !== 'folder')
      for (const other of [...this.#shown.keys()]) if (other.startsWith(`${key}/`)) this.#shown.delete(other);
    if (kind === 'deleted') this.#shown.delete(key);
    else this.#shown.set(key, shown);
  }
}
