import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { TreeRemovals } from '../tree/tree-removals.ts';
import {
  below,
  type DeletionRow,
  type EntryRow,
  keyOf,
  notStaged,
  SELECT_DELETION,
  SELECT_ENTRY,
} from '../tree/tree-rows.ts';
import type { CursorState } from './cursors.ts';

/** A row of a listing: an entry or a deletion. */
export type FeedRow = EntryRow | DeletionRow;

export function isDeletion(row: FeedRow): row is DeletionRow {
  return 'deletedMs' in row;
}

type Position = NonNullable<CursorState['after']>;

/** The part of a cursor that says which entries it covers. */
export type FeedScope = Pick<CursorState, 'ns' | 'key' | 'recursive' | 'includeDeleted'>;

/** Rows of other folders that one page examines before it is returned, possibly empty. */
const SCAN_MAX = 10_000;

/** Pieces of a listing with nothing but removed rows after which an empty page is returned. */
const EMPTY_PIECES_MAX = 5;

/** Rows fetched at once during a scan. */
const CHUNK = 500;

/**
 * Reads the tree for listings and changes. Every step reads one index range, whatever the folder's size. The deletion
 * of a folder is one change that includes everything below it (service-api.md §9.4). When a folder exists where
 * something was deleted before, that deletion precedes the folder: a client that missed the deletion would keep the
 * former children. So deletions of entries that were deleted with their folder (`implied`) are needed only by clients
 * that list the children of one folder and get no change for that folder itself.
 */
export class Feed {
  readonly #sql: ReturnType<typeof statements>;

  constructor(
    database: SqliteDatabase,
    private readonly removals: TreeRemovals,
  ) {
    this.#sql = statements(database);
  }

  /**
   * Returns up to `limit` entries of a listing after a position, ordered by key, and the next position if there are
   * more. There may be fewer, because rows of removed entries are skipped.
   */
  entries(
    scope: FeedScope,
    after: Position,
    limit: number,
  ): { readonly rows: FeedRow[]; readonly next?: Position } {
    let from: Position = after;
    for (let pieces = 1; ; pieces++) {
      const found = this.#entriesAfter(scope, from, limit + 1);
      const looked = found.slice(0, limit);
      const rows = looked.flatMap((row) => this.#shown(scope, row));
      const last = looked.at(-1);
      if (found.length <= limit || !last) return { rows };
      from = { parent: last.parent, nameKey: last.nameKey };
      if (rows.length > 0 || pieces >= EMPTY_PIECES_MAX) return { rows, next: from };
    }
  }

  #entriesAfter(scope: FeedScope, after: Position, limit: number): FeedRow[] {
    const { ns, key, recursive, includeDeleted } = scope;
    const { from, to } = below(ns, key);
    // A second lower bound would keep SQLite from starting at the position.
    const position = after.parent === '' ? { parent: from, nameKey: after.nameKey } : after;
    const arguments_ = { ns, from, to, ...position, limit };
    const entries = recursive ? this.#sql.tree.all(arguments_) : this.#sql.children.all(arguments_);
    if (!includeDeleted) return entries;
    const deletions = recursive
      ? this.#sql.treeDeletions.all(arguments_)
      : this.#sql.childDeletions.all(arguments_);
    return [...entries, ...deletions].sort(byKey).slice(0, limit);
  }

  /** Returns a row as a listing shows it: an entry covered by a removal is a deletion, though its row still exists. */
  #shown({ includeDeleted }: FeedScope, row: FeedRow): FeedRow[] {
    if (isDeletion(row)) return this.removals.isDeletionForgotten(row) ? [] : [row];
    if (!this.removals.ofEntry(row)) return [row];
    const deletion = includeDeleted ? this.removals.asDeletion(row) : undefined;
    return deletion ? [deletion] : [];
  }

  /** Returns at most `limit` changes after number `since`, and the number up to which they are complete. */
  changes(
    scope: FeedScope,
    since: number,
    limit: number,
    latest: number,
  ): { readonly rows: readonly FeedRow[]; readonly seq: number; readonly hasMore: boolean } {
    const rows: FeedRow[] = [];
    let seq = since;
    for (let scanned = 0; scanned < SCAN_MAX; scanned += CHUNK) {
      const chunk = this.#changesAfter(scope, seq, latest);
      for (const row of chunk) {
        if (rows.length >= limit) return { rows, seq, hasMore: true };
        seq = row.seq;
        if (isInScope(scope, row) && (isDeletion(row) || !this.removals.ofEntry(row))) rows.push(row);
      }
      if (chunk.length < CHUNK) return { rows, seq: Math.max(seq, latest), hasMore: false };
    }
    return { rows, seq, hasMore: true };
  }

  /**
   * Returns the number up to which nothing in the scope changed after number `since`, or `undefined` if something did:
   * `latest`, or less when the namespace has many changes. The caller goes on from there.
   */
  unchangedUpTo({ ns, key, recursive }: FeedScope, since: number, latest: number): number | undefined {
    const { from, to } = below(ns, key);
    if (!recursive) return this.#sql.childChanged.get({ ns, from, since, latest }) ? undefined : latest;
    const chunk = { ns, since, latest, skipped: CHUNK - 1 };
    const { chunkEnd, deletionChunkEnd } = this.#sql;
    const end = Math.min(chunkEnd.get(chunk)?.seq ?? latest, deletionChunkEnd.get(chunk)?.seq ?? latest);
    return this.#sql.treeChanged.get({ ns, from, to, since, latest: end }) ? undefined : end;
  }

  /** Returns the next changes of the namespace, or of the folder alone for a listing of its children. */
  #changesAfter({ ns, key, recursive }: FeedScope, since: number, latest: number): FeedRow[] {
    const { from } = below(ns, key);
    const rows: FeedRow[] = recursive
      ? [
          ...this.#sql.changes
            .all({ ns, since, latest, limit: CHUNK })
            .flatMap((row) => withEarlierDeletion(row, since)),
          ...this.#sql.deletionChanges.all({ ns, since, limit: CHUNK }),
        ]
      : [
          ...this.#sql.childChanges.all({ ns, from, since, latest, limit: CHUNK }),
          ...this.#sql.childDeletionChanges.all({ ns, from, since, limit: CHUNK }),
        ];
    return rows.sort((left, right) => left.seq - right.seq).slice(0, CHUNK);
  }
}

/** Returns whether a change concerns the listed folder or, if recursive, an entry below it. */
function isInScope({ key, recursive }: FeedScope, row: FeedRow): boolean {
  return !recursive || key === '' || keyOf(row) === key || row.parent.startsWith(`${key}/`);
}

/**
 * Returns the changes that a client with all changes up to number `since` gets for an entry. A folder that replaces a
 * deleted item is preceded by that deletion, half a number earlier, so that a page may end between the two.
 */
function withEarlierDeletion(row: EntryRow, since: number): FeedRow[] {
  const seq = row.seq - 0.5;
  if (!row.returned || since >= seq) return [row];
  const { ns, parent, nameKey, name, path, id } = row;
  const deletion = { wasFolder: 1, implied: 0, forgotten: 1, deletedMs: 0 };
  return [{ ns, parent, nameKey, name, path, id, seq, ...deletion }, row];
}

/** Compares in SQLite's order, the bytes of UTF-8; JavaScript's order of UTF-16 units differs for emoji. */
function byKey(left: FeedRow, right: FeedRow): number {
  return (
    Buffer.compare(Buffer.from(left.parent), Buffer.from(right.parent)) ||
    Buffer.compare(Buffer.from(left.nameKey), Buffer.from(right.nameKey))
  );
}

/** Prepared statements. Each reads along one index, in its order. */
function statements(database: SqliteDatabase) {
  type Range = { ns: number; from: string; to: string; parent: string; nameKey: string; limit: number };
  type Since = { ns: number; since: number; limit: number };
  type ChildrenSince = Since & { from: string };
  type Latest = { latest: number };
  type Chunk = { ns: number; since: number; latest: number; skipped: number };
  const children = 'parent = @from AND name_key > @nameKey';
  const tree = '(parent, name_key) > (@parent, @nameKey) AND parent < @to';
  const page = 'ORDER BY parent, name_key LIMIT @limit';
  const later = 'seq > @since ORDER BY seq LIMIT @limit';
  // Rows of a large move in progress have higher numbers: there may be thousands.
  const upToLatest = 'seq > @since AND seq <= @latest ORDER BY seq LIMIT @limit';
  return {
    children: database.prepare<[Range], EntryRow>(
      `${SELECT_ENTRY} WHERE entry.ns = @ns AND ${entryWhere(children)} ${entryWhere(page)}`,
    ),
    tree: database.prepare<[Range], EntryRow>(
      `${SELECT_ENTRY} WHERE entry.ns = @ns AND ${entryWhere(tree)} ${entryWhere(page)}`,
    ),
    childDeletions: database.prepare<[Range], DeletionRow>(
      `${SELECT_DELETION} WHERE ns = @ns AND NOT forgotten AND ${children} ${page}`,
    ),
    treeDeletions: database.prepare<[Range], DeletionRow>(
      `${SELECT_DELETION} WHERE ns = @ns AND NOT forgotten AND ${tree} ${page}`,
    ),
    changes: database.prepare<[Since & Latest], EntryRow>(
      `${SELECT_ENTRY} WHERE entry.ns = @ns AND ${upToLatest}`,
    ),
    deletionChanges: database.prepare<[Since], DeletionRow>(
      `${SELECT_DELETION} WHERE ns = @ns AND NOT implied AND ${later}`,
    ),
    childChanges: database.prepare<[ChildrenSince & Latest], EntryRow>(
      `${SELECT_ENTRY} WHERE entry.ns = @ns AND entry.parent = @from AND ${upToLatest}`,
    ),
    childDeletionChanges: database.prepare<[ChildrenSince], DeletionRow>(
      `${SELECT_DELETION} WHERE ns = @ns AND parent = @from AND ${later}`,
    ),
    childChanged: database.prepare<[{ ns: number; from: string; since: number; latest: number }]>(
      `SELECT 1 FROM entry
         WHERE ns = @ns AND parent = @from AND seq > @since AND seq <= @latest AND ${notStaged('entry.seq')}
       UNION ALL SELECT 1 FROM deletion WHERE ns = @ns AND parent = @from AND seq > @since LIMIT 1`,
    ),
    treeChanged: database.prepare<[{ ns: number; from: string; to: string; since: number; latest: number }]>(
      `SELECT 1 FROM entry INDEXED BY entry_change
         WHERE ns = @ns AND seq > @since AND seq <= @latest AND ${notStaged('entry.seq')}
           AND (parent >= @from AND parent < @to OR parent || name_key || '/' = @from)
       UNION ALL SELECT 1 FROM deletion INDEXED BY deletion_told
         WHERE ns = @ns AND NOT implied AND seq > @since AND seq <= @latest
           AND (parent >= @from AND parent < @to OR parent || name_key || '/' = @from)
       LIMIT 1`,
    ),
    chunkEnd: database.prepare<[Chunk], { seq: number }>(
      `SELECT seq FROM entry INDEXED BY entry_change
       WHERE ns = @ns AND seq > @since AND seq <= @latest ORDER BY seq LIMIT 1 OFFSET @skipped`,
    ),
    deletionChunkEnd: database.prepare<[Chunk], { seq: number }>(
      `SELECT seq FROM deletion INDEXED BY deletion_told
       WHERE ns = @ns AND NOT implied AND seq > @since AND seq <= @latest ORDER BY seq LIMIT 1 OFFSET @skipped`,
    ),
  };
}

/** Qualifies column names that the joined tables share with `entry`. */
function entryWhere(clause: string): string {
  return clause.replaceAll(/\b(parent|name_key)\b/g, 'entry.$1').replaceAll('@entry.', '@');
}
