import { expect } from 'vitest';
import type { Api, Page, Shown } from '../model/api.ts';
import { Mirror } from '../model/mirror.ts';
import { isPassing, patiently } from './answers.ts';

/** A client that knows the whole tree from its changes alone, which it reads at one node after the other. */
export class LoggingFollower {
  /** How often each revision of a file was reported, by path and rev. */
  readonly reported = new Map<string, number>();
  readonly #mirror = new Mirror();
  #cursor = '';
  #turn: number;

  constructor(
    private readonly apis: readonly Api[],
    first: number,
    private readonly limit: number,
  ) {
    this.#turn = first;
  }

  async begin(): Promise<void> {
    const argument = { path: '', recursive: true, limit: this.limit };
    const page = await patiently(() =>
      this.#next().rpc<Page>('files/list_folder/get_latest_cursor', argument),
    );
    if (typeof page === 'string') throw new Error(page);
    this.#cursor = page.cursor;
  }

  /** Waits for changes and reads them until `isOver`. */
  async followUntil(over: AbortSignal): Promise<void> {
    while (!over.aborted) {
      const outcome = await this.#next().changes(this.#cursor, over);
      // A node that cannot wait now, or that was killed, says nothing of changes: they are asked for at once.
      if (typeof outcome === 'object' && !isPassing(outcome.refusal))
        throw new Error(`the long poll of a follower is refused: ${outcome.refusal}`);
      await this.follow();
    }
  }

  /** Reads all changes that there are. */
  async follow(): Promise<void> {
    for (let hasMore = true; hasMore; ) {
      const cursor = this.#cursor;
      const page = await patiently(() => this.#next().rpc<Page>('files/list_folder/continue', { cursor }));
      if (typeof page === 'string') throw new Error(`a follower is refused: ${page}`);
      for (const entry of page.entries) this.#apply(entry);
      this.#cursor = page.cursor;
      hasMore = page.has_more;
    }
  }

  /** The tree, as lines. */
  get lines(): readonly string[] {
    return this.#mirror.paths;
  }

  #apply(entry: Shown): void {
    const { '.tag': kind, path_lower: path, rev } = entry;
    if (!kind) throw new Error(`an entry without a kind: ${path}`);
    this.#mirror.apply(kind, path, lineOf(entry));
    if (kind !== 'file') return;
    const change = `${path} ${rev}`;
    this.reported.set(change, (this.reported.get(change) ?? 0) + 1);
  }

  #next(): Api {
    const api = this.apis[this.#turn++ % this.apis.length];
    if (!api) throw new Error('there are no nodes');
    return api;
  }
}

/** Returns an entry as it is compared. */
function lineOf({ path_display, rev, id, content_hash }: Shown): string {
  return [path_display, id, rev ?? 'folder', content_hash].join(' ');
}

/** Returns the whole tree that a node shows, as lines. */
export async function linesAt(api: Api): Promise<readonly string[]> {
  return (await entriesAt(api)).map(lineOf).sort();
}

export async function entriesAt(api: Api): Promise<readonly Shown[]> {
  const entries: Shown[] = [];
  let page = await api.rpc<Page>('files/list_folder', { path: '', recursive: true, limit: 2000 });
  for (;;) {
    if (typeof page === 'string') throw new Error(`list_folder: ${page}`);
    entries.push(...page.entries);
    if (!page.has_more) break;
    page = await api.rpc<Page>('files/list_folder/continue', { cursor: page.cursor });
  }
  expect(new Set(entries.map(({ path_lower }) => path_lower)).size).toBe(entries.length);
  return entries;
}
