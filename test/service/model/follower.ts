import { expect } from 'vitest';
import type { Page } from './api.ts';
import { Mirror } from './mirror.ts';
import type { TreeRun } from './tree-run.ts';

interface Scope {
  /** Whether the cursor covers the whole tree below the run's folder, or its children alone. */
  readonly recursive: boolean;
  /** Maximum number of entries of a page. */
  readonly limit: number;
}

/** A client that builds its copy of the run's folder from changes alone. */
export class Follower {
  readonly #mirror = new Mirror();
  #cursor = '';

  constructor(
    private readonly tree: TreeRun,
    private readonly scope: Scope,
  ) {}

  async begin(): Promise<void> {
    const argument = { path: this.tree.folder, ...this.scope };
    const answer = await this.tree.api.rpc<Page>('files/list_folder/get_latest_cursor', argument);
    if (typeof answer === 'string') throw new Error(answer);
    this.#cursor = answer.cursor;
  }

  /** Reads and applies one page. Returns whether there are more. */
  async page(): Promise<boolean> {
    return (await this.#read()).has_more;
  }

  /**
   * Applies all changes since the last call and expects the copy to equal the tree. Returns the number of
   * changes.
   */
  async follow(): Promise<number> {
    let count = 0;
    for (let hasMore = true; hasMore; ) {
      const { entries, has_more } = await this.#read();
      count += entries.length;
      hasMore = has_more;
    }
    const { folder, model } = this.tree;
    const isShown = (path: string) => path !== folder && (this.scope.recursive || isChild(path, folder));
    expect(this.#mirror.paths.filter(isShown)).toEqual(model.paths.filter(isShown));
    return count;
  }

  /** Long polls during `work`, and expects an answer if `follow` then finds changes. */
  async awaitDuring(work: () => Promise<void>): Promise<void> {
    await this.follow();
    const over = new AbortController();
    const waiting = this.tree.api.changes(this.#cursor, over.signal);
    await work();
    const hasChanged = (await this.follow()) > 0;
    if (!hasChanged) over.abort();
    // Changes that cancel out, or none in time, are answered too; only a refusal is never right.
    expect(hasChanged ? ['changed'] : ['changed', 'unchanged', 'cut off']).toContain(await waiting);
  }

  /** Long polls during a restart of the service, which is no change. */
  async awaitAcross(restart: () => Promise<void>): Promise<void> {
    await this.follow();
    const waiting = this.tree.api.changes(this.#cursor);
    await restart();
    // A killed service does not answer.
    expect(['unchanged', 'cut off']).toContain(await waiting);
    expect(await this.follow()).toBe(0);
  }

  async #read(): Promise<Page> {
    const page = await this.tree.api.rpc<Page>('files/list_folder/continue', { cursor: this.#cursor });
    if (typeof page === 'string') throw new Error(`continue: ${page}`);
    expect(page.entries.length).toBeLessThanOrEqual(this.scope.limit);
    for (const { '.tag': kind, path_lower, path_display } of page.entries)
      if (kind) this.#mirror.apply(kind, path_lower, path_display);
    this.#cursor = page.cursor;
    return page;
  }
}

function isChild(path: string, folder: string): boolean {
  return path.lastIndexOf('/') === folder.length;
}
