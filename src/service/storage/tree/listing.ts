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

/** Entries a page may have (service-api.md §6.1). */
const PAGE_MAX = 2000;

/** Entries a page has when a latest cursor was asked for without a number. */
const PAGE_DEFAULT = 500;

/** Cursors whose quiet is remembered, and their characters in all: a deep folder's cursor has tens of thousands. */
const UNCHANGED_MAX = 10_000;
const UNCHANGED_CHARACTERS_MAX = 8 * 1024 * 1024;

/** The position before the first entry. */
const START = { parent: '', nameKey: '' };

/**
 * Listings with their cursors (service-api.md §9.4). A listing reads the tree as it is at each page; what
 * changed meanwhile follows as changes before it says that there is no more.
 */
export class Listings {
  readonly #feed: Feed;
  readonly #horizon: (ns: number) => number | undefined;
  /** Up to which number nothing had changed for a cursor when it was last asked about. */
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

  /** The first page of a listing. Throws `lookup/…`. */
  first(ns: number, owner: CursorOwner, scope: ListingScope, limit: number): StoredPage {
    return this.#page(ownerDigest(owner), { ...this.#state(ns, scope, limit), after: START });
  }

  /** A cursor that knows all there is now. Throws `lookup/…`. */
  latest(ns: number, owner: CursorOwner, scope: ListingScope, limit = PAGE_DEFAULT): string {
    return this.cursors.encode(ownerDigest(owner), this.#state(ns, scope, limit));
  }

  /** The page after a cursor. Throws `cursor/…`, and `lookup/…` when the folder went away. */
  next(owner: CursorOwner, cursor: string): StoredPage {
    const decoded = this.#decode(cursor);
    if (decoded.owner !== ownerDigest(owner)) throw refused('malformed');
    return this.#page(decoded.owner, decoded.state);
  }

  /** See `Storage.awaitChange`. */
  async awaitChange(cursor: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const { state } = this.#decode(cursor);
    signal.throwIfAborted();
    if (this.#isBehind(cursor, state)) return true;
    const alarm = new Alarm(this.clock);
    let woken: boolean | undefined;
    const forget = this.watchers.add(state, (changed) => {
      woken ??= changed;
      alarm.ring();
    });
    await alarm.sleep(timeoutMs, signal);
    forget();
    if (woken === undefined) signal.throwIfAborted();
    return woken ?? false;
  }

  /** A position at which nothing has been read. */
  #state(ns: number, { path, recursive, includeDeleted }: ListingScope, asked: number): CursorState {
    const place = this.store.tree.locate(ns, path, 'lookup');
    const key = place?.key ?? '';
    this.#folder(ns, key);
    const limit = Math.min(Math.max(1, asked), PAGE_MAX);
    return { ns, key, recursive, includeDeleted, seq: this.ticks.last, limit };
  }

  /** What a cursor says, when changes since it are still known. */
  #decode(cursor: string): ReturnType<Cursors['decode']> {
    const decoded = this.cursors.decode(cursor);
    const horizon = this.#horizon(decoded.state.ns);
    const { seq } = decoded.state;
    // A number we have not reached comes from before the data directory was put back from a backup.
    if (horizon === undefined || seq < horizon || seq > this.ticks.last) throw refused('reset');
    return decoded;
  }

  /** A cursor is polled again and again: only what came since the last time is looked through. */
  #isBehind(cursor: string, state: CursorState): boolean {
    if (state.after) return true;
    const row = state.key === '' ? undefined : this.store.tree.find(state.ns, splitKey(state.key));
    if (state.key !== '' && row?.revision !== null) return true;
    const changed = this.#feed.hasChanged(state, this.#unchanged.get(cursor) ?? state.seq, this.ticks.last);
    if (!changed) this.#unchanged.set(cursor, this.ticks.last);
    return changed;
  }

  /** The next page of a listing, or of the changes once the listing is through. */
  #page(owner: string, state: CursorState): StoredPage {
    const folder = this.#folder(state.ns, state.key);
    // Its former children are told one by one as they are cleared away, and who reads on now would miss the others.
    if (folder && !state.recursive && this.store.removals.hasEmptied(folder, state.seq))
      throw refused('reset');
    if (!state.after) return this.#changes(owner, state);
    const { rows, next } = this.#feed.entries(state, state.after, state.limit);
    const { after, ...through } = state;
    if (folder && state.recursive && after === START) rows.unshift(folder);
    return {
      entries: rows.map((row) => this.#shown(row)),
      cursor: this.cursors.encode(owner, next ? { ...state, after: next } : through),
      hasMore: next !== undefined || this.#feed.hasChanged(state, state.seq, this.ticks.last),
    };
  }

  /** A page of changes. */
  #changes(owner: string, state: CursorState): StoredPage {
    const { rows, seq, hasMore } = this.#feed.changes(state, state.seq, state.limit, this.ticks.last);
    return {
      entries: rows.map((row) => this.#shown(row)),
      cursor: this.cursors.encode(owner, { ...state, seq }),
      hasMore,
    };
  }

  /** The folder that is listed; `undefined` for the root. Throws when it is not one. */
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
