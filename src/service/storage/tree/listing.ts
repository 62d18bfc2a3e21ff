import { setImmediate as otherCalls } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../../util/clock.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { Alarm } from '../../../util/wait.ts';
import { notFound } from '../errors.ts';
import { type CursorState, type Cursors, ownerDigest, refused } from '../feed/cursors.ts';
import { Feed, type FeedRow, isDeletion } from '../feed/feed.ts';
import type { Ticks } from '../feed/ticks.ts';
import type { Watchers } from '../feed/watchers.ts';
import { type CursorOwner, type ListingScope, StorageError, type StoredPage } from '../storage.ts';
import type { Store } from './entry-writes.ts';
import { splitKey } from './places.ts';
import { type EntryRow, storedDeletion, storedOf } from './tree-rows.ts';

/** Maximum number of entries in a page (service-api.md §6.1). */
const PAGE_MAX = 2000;

/** Entries in a page after a latest cursor that was requested without a limit. */
const PAGE_DEFAULT = 500;

/**
 * Limits of the memory of unchanged cursors: their number, and their characters in all. The cursor of a deep folder has
 * tens of thousands.
 */
const UNCHANGED_MAX = 10_000;
const UNCHANGED_CHARACTERS_MAX = 8 * 1024 * 1024;

/** The position before the first entry. */
const START = { parent: '', nameKey: '' };

/**
 * Listings with their cursors (service-api.md §9.4). Each page reads the current tree; changes made meanwhile follow as
 * changes before the last page.
 */
export class Listings {
  readonly #feed: Feed;
  readonly #horizon: (ns: number) => number | undefined;
  /** For each cursor the last number up to which nothing had changed. */
  readonly #unchanged = new LRUCache<string, number>({
    max: UNCHANGED_MAX,
    maxSize: UNCHANGED_CHARACTERS_MAX,
    sizeCalculation: (_, cursor) => cursor.length,
  });

  constructor(
    database: SqliteDatabase,
    private readonly store: Store,
    private readonly cursors: Cursors,
    private readonly ticks: Ticks,
    private readonly watchers: Watchers,
    private readonly clock: Clock,
  ) {
    this.#feed = new Feed(database, store.removals);
    const horizon = database.prepare<[number], { horizon: number }>(
      'SELECT horizon FROM namespace WHERE id = ?',
    );
    this.#horizon = (ns) => horizon.get(ns)?.horizon;
  }

  /** Returns the first page of a listing. Throws `lookup/…`. */
  first(ns: number, owner: CursorOwner, scope: ListingScope, limit: number): StoredPage {
    return this.#page(ownerDigest(owner), { ...this.#state(ns, scope, limit), after: START });
  }

  /** Returns a cursor from which only later changes follow. Throws `lookup/…`. */
  latest(ns: number, owner: CursorOwner, scope: ListingScope, limit = PAGE_DEFAULT): string {
    return this.cursors.encode(ownerDigest(owner), this.#state(ns, scope, limit));
  }

  /** Returns the page after a cursor. Throws `cursor/…`, and `lookup/…` when the folder no longer exists. */
  next(owner: CursorOwner, cursor: string): StoredPage {
    const decoded = this.cursors.decode(cursor);
    if (decoded.owner !== ownerDigest(owner)) throw refused('malformed');
    this.#expectKnown(decoded.state);
    return this.#page(decoded.owner, decoded.state);
  }

  /** See `Storage.awaitChange`. */
  async awaitChange(cursor: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const { state } = this.cursors.decode(cursor);
    this.#expectKnown(state);
    signal.throwIfAborted();
    const alarm = new Alarm(this.clock);
    let woken: boolean | undefined;
    const forget = this.watchers.add(state, (changed) => {
      woken ??= changed;
      alarm.ring();
    });
    const end = alarm.sleep(timeoutMs, signal);
    try {
      if (await this.#isBehind(cursor, state, () => woken !== undefined || signal.aborted)) return true;
      await end;
    } finally {
      forget();
      alarm.ring();
    }
    if (woken === undefined) signal.throwIfAborted();
    return woken ?? false;
  }

  /** Returns the position before the first entry. */
  #state(ns: number, { path, recursive, includeDeleted }: ListingScope, asked: number): CursorState {
    const place = this.store.tree.locate(ns, path, 'lookup');
    const key = place?.key ?? '';
    this.#folder(ns, key);
    const limit = Math.min(Math.max(1, asked), PAGE_MAX);
    return { ns, key, recursive, includeDeleted, seq: this.ticks.last(ns), limit };
  }

  /** Throws `reset` when changes since a position have been dropped. */
  #expectKnown({ ns, seq }: CursorState): void {
    const horizon = this.#horizon(ns);
    // A number beyond ours comes from a time before the data directory was restored from a backup.
    if (horizon === undefined || seq < horizon || seq > this.ticks.last(ns)) throw refused('reset');
  }

  /**
   * Returns whether anything changed since the cursor; `false` also when `isOver` ends a long search. Clients poll a
   * cursor repeatedly: each poll examines only newer changes.
   */
  async #isBehind(cursor: string, state: CursorState, isOver: () => boolean): Promise<boolean> {
    if (state.after) return true;
    for (let since = this.#unchanged.get(cursor) ?? state.seq; ; await otherCalls()) {
      if (isOver()) return false;
      const row = state.key === '' ? undefined : this.store.tree.find(state.ns, splitKey(state.key));
      if (state.key !== '' && row?.revision !== null) return true;
      const latest = this.ticks.last(state.ns);
      const reached = this.#feed.unchangedUpTo(state, since, latest);
      if (reached === undefined) return true;
      this.#unchanged.set(cursor, reached);
      if (reached === latest) return false;
      since = reached;
    }
  }

  /** Returns the next page of a listing, or of the changes after its end. */
  #page(owner: string, state: CursorState): StoredPage {
    const folder = this.#folder(state.ns, state.key);
    // A listing of one folder reports its former children one by one as they are cleared away: a reader that continues
    // now would miss the others.
    if (folder && !state.recursive && this.store.removals.hasEmptied(folder, state.seq))
      throw refused('reset');
    if (!state.after) return this.#changes(owner, state);
    const { rows, next } = this.#feed.entries(state, state.after, state.limit);
    const { after, ...through } = state;
    const latest = this.ticks.last(state.ns);
    if (folder && state.recursive && after === START) rows.unshift(folder);
    return {
      entries: rows.map((row) => this.#shown(row)),
      cursor: this.cursors.encode(owner, next ? { ...state, after: next } : through),
      // After many changes the next page is perhaps empty, but has a later cursor.
      hasMore: next !== undefined || this.#feed.unchangedUpTo(state, state.seq, latest) !== latest,
    };
  }

  /** Returns a page of changes. */
  #changes(owner: string, state: CursorState): StoredPage {
    const { rows, seq, hasMore } = this.#feed.changes(
      state,
      state.seq,
      state.limit,
      this.ticks.last(state.ns),
    );
    return {
      entries: rows.map((row) => this.#shown(row)),
      cursor: this.cursors.encode(owner, { ...state, seq }),
      hasMore,
    };
  }

  /** Returns the row of the listed folder; `undefined` for the root. Throws unless it is a folder. */
  #folder(ns: number, key: string): EntryRow | undefined {
    if (key === '') return undefined;
    const row = this.store.tree.find(ns, splitKey(key));
    if (!row) throw notFound();
    if (row.revision !== null) throw new StorageError({ kind: 'lookup', tag: 'not_folder' });
    return row;
  }

  #shown(row: FeedRow): StoredPage['entries'][number] {
    return isDeletion(row) ? storedDeletion(row) : storedOf(row, this.store.directoryTag);
  }
}
