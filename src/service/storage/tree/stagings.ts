import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Contents } from '../blocks/contents.ts';
import type { Reserve } from '../blocks/reserve.ts';
import { StepRunner } from '../blocks/step-runner.ts';
import type { Transaction } from '../committer.ts';
import type { NumberRange } from '../feed/ticks.ts';
import { notStaged } from './tree-rows.ts';

/** Rows that one step clears away: some 20 ms. */
const STEP_ROWS = 200;

interface Staging extends NumberRange {
  readonly copies: number;
  readonly published: number;
  readonly atNumber: number;
}

/**
 * Large moves and copies in progress. Their rows are created in the usual tables in many small transactions, with
 * numbers from a range above all that are issued meanwhile. Rows with such numbers are hidden (`notStaged`) until one
 * change publishes them all: it advances the last issued number to the end of the range, and readers of the feed get
 * them as the newest changes. Rows of an abandoned staging, for example after a crash, are cleared away step by step,
 * and so are the deletions at the paths of a published one. (A move could be one row only if rows referred to their
 * folder by number. Listings, changes, search and history are ranges of paths, and clients get a change for each moved
 * file, so a move has to write as many rows in any case.)
 */
export class Stagings {
  readonly #sql: ReturnType<typeof statements>;
  /** The staging that is being filled. */
  #current: NumberRange | undefined;
  /** Stagings that were filled here and not published. */
  #abandoned: NumberRange[] = [];
  readonly #runner = new StepRunner(this);

  /**
   * `abandonedUpTo` returns the number up to which hidden stagings, except the one that is being filled here, have been
   * abandoned; by default all have.
   */
  constructor(
    database: SqliteDatabase,
    private readonly contents: Contents,
    private readonly abandonedUpTo: () => number = () => Number.MAX_SAFE_INTEGER,
  ) {
    this.#sql = statements(database);
  }

  /** Number ranges of the hidden stagings; no change may take a number in them. */
  get ranges(): NumberRange[] {
    return this.#sql.hidden.all();
  }

  /** Fills a staging with `fill`. Unless `fill` publishes it, its rows are cleared away afterwards. */
  async filling<T>(range: NumberRange, fill: () => Promise<T>): Promise<T> {
    this.#current = range;
    try {
      return await fill();
    } finally {
      this.#current = undefined;
      this.#abandoned.push(range);
    }
  }

  /** Whether a staging exists. It can be taken for an abandoned one when it is filled for too long. */
  has({ ns, first }: NumberRange): boolean {
    return this.#sql.isHidden.get(ns, first) !== undefined;
  }

  /** Begins a staging. Returns `false` if another one has some of these numbers. */
  begin(range: NumberRange, copy: boolean): boolean {
    if (this.#sql.overlapping.get(range)) return false;
    this.#sql.begin.run({ ...range, copies: copy ? 1 : 0 });
    return true;
  }

  /** Changes rows of a staging, and records the bytes that this charges to the namespace. */
  charging<T>({ ns, first }: NumberRange, change: () => T): T {
    const before = this.#sql.usedBytes.get(ns)?.usedBytes ?? 0;
    const result = change();
    const after = this.#sql.usedBytes.get(ns)?.usedBytes ?? 0;
    if (after !== before) this.#sql.charge.run(after - before, ns, first);
    return result;
  }

  /** Returns the number of its rows that still exist; other changes may have replaced some. */
  count({ ns, first, last }: NumberRange): number {
    return this.#sql.count.get(ns, first, last)?.rows ?? 0;
  }

  /** Yields the keys of changes in a namespace after number `since`, up to `latest`; there may be many. */
  changes(ns: number, since: number, latest: number): IterableIterator<{ readonly key: string }> {
    return this.#sql.changes.iterate({ ns, since, latest });
  }

  publish({ ns, first }: NumberRange): void {
    this.#sql.publish.run(ns, first);
  }

  /** Whether there is nothing to clear away. */
  get isEmpty(): boolean {
    return this.#next() === undefined;
  }

  /** Clears away until nothing is left or the storage is closed; the next start continues. */
  work(reserve: Reserve): Promise<void> {
    return this.#runner.run(reserve);
  }

  /** Clears away more rows, as many as the transaction has room for. */
  step(transaction: Transaction): void {
    const { room } = transaction;
    for (let next = this.#next(); next && room.rows > 0; next = this.#next()) {
      const limit = Math.min(STEP_ROWS, room.rows);
      const rows = next.published
        ? this.#dropDeletions(next, limit)
        : this.#dropRows(transaction, next, limit);
      if (rows < limit) this.#sql.end.run(next.ns, next.first);
      room.rows -= Math.max(1, rows);
    }
  }

  #next(): Staging | undefined {
    this.#abandoned = this.#abandoned.filter((range) => this.has(range));
    const [abandoned] = this.#abandoned;
    if (abandoned) return this.#sql.at.get(abandoned.ns, abandoned.first);
    const { ns = -1, first = -1 } = this.#current ?? {};
    return this.#sql.next.get(ns, first, this.abandonedUpTo());
  }

  /** Drops deletions at the paths of a published staging. */
  #dropDeletions({ ns, first, last, atNumber }: Staging, limit: number): number {
    const rows = this.#sql.arrived.all({ ns, first: Math.max(first, atNumber + 1), last, limit });
    for (const row of rows) this.#sql.dropDeletion.run(row);
    const end = rows.at(-1);
    if (end) this.#sql.goOn.run(end.seq, ns, first);
    return rows.length;
  }

  /** Drops rows of an abandoned staging: entries first, because they refer to revisions. */
  #dropRows(transaction: Transaction, staging: Staging, limit: number): number {
    const { ns, first, last, copies } = staging;
    const entries = this.#sql.arrived.all({ ns, first, last, limit });
    for (const row of entries) this.#sql.dropEntry.run(row);
    const revisions = this.#sql.revisions.all(ns, first, last, limit - entries.length);
    this.charging(staging, () => {
      for (const { number, content } of revisions) {
        this.#sql.dropRevision.run(ns, number);
        if (copies) this.contents.dropFile(ns, content);
        this.contents.dropRevision(transaction, ns, content);
      }
    });
    return entries.length + revisions.length;
  }
}

interface Placed {
  readonly ns: number;
  readonly parent: string;
  readonly nameKey: string;
}

/** Prepared statements over stagings and their rows. */
function statements(database: SqliteDatabase) {
  const at = 'ns = @ns AND parent = @parent AND name_key = @nameKey';
  return {
    begin: database.prepare<[NumberRange & { copies: number }]>(
      'INSERT INTO staging (first, last, ns, copies) VALUES (@first, @last, @ns, @copies)',
    ),
    publish: database.prepare<[ns: number, first: number]>(
      'UPDATE staging SET published = 1, charged_bytes = 0 WHERE ns = ? AND first = ?',
    ),
    charge: database.prepare<[bytes: number, ns: number, first: number]>(
      'UPDATE staging SET charged_bytes = charged_bytes + ? WHERE ns = ? AND first = ?',
    ),
    goOn: database.prepare<[number: number, ns: number, first: number]>(
      'UPDATE staging SET at_number = ? WHERE ns = ? AND first = ?',
    ),
    end: database.prepare<[ns: number, first: number]>('DELETE FROM staging WHERE ns = ? AND first = ?'),
    hidden: database.prepare<[], NumberRange>(
      'SELECT ns, first, last FROM staging WHERE NOT published ORDER BY first',
    ),
    overlapping: database.prepare<[NumberRange]>(
      'SELECT 1 FROM staging WHERE ns = @ns AND first <= @last AND last >= @first LIMIT 1',
    ),
    isHidden: database.prepare<[ns: number, first: number]>(
      'SELECT 1 FROM staging WHERE ns = ? AND first = ? AND NOT published',
    ),
    at: database.prepare<[ns: number, first: number], Staging>(
      `SELECT first, last, ns, copies, published, at_number AS atNumber FROM staging WHERE ns = ? AND first = ?`,
    ),
    next: database.prepare<[exceptNs: number, exceptFirst: number, abandonedUpTo: number], Staging>(
      `SELECT first, last, ns, copies, published, at_number AS atNumber FROM staging
       WHERE NOT (ns = ? AND first = ?) AND (published OR first <= ?) ORDER BY first LIMIT 1`,
    ),
    usedBytes: database.prepare<[number], { usedBytes: number }>(
      'SELECT used_bytes AS usedBytes FROM namespace WHERE id = ?',
    ),
    count: database.prepare<[ns: number, first: number, last: number], { rows: number }>(
      'SELECT count(*) AS rows FROM entry INDEXED BY entry_change WHERE ns = ? AND seq BETWEEN ? AND ?',
    ),
    arrived: database.prepare<
      [{ ns: number; first: number; last: number; limit: number }],
      Placed & { readonly seq: number }
    >(
      `SELECT ns, parent, name_key AS nameKey, seq FROM entry INDEXED BY entry_change
       WHERE ns = @ns AND seq BETWEEN @first AND @last ORDER BY seq LIMIT @limit`,
    ),
    revisions: database.prepare<
      [ns: number, first: number, last: number, limit: number],
      { number: number; content: number }
    >('SELECT number, content FROM revision WHERE ns = ? AND number BETWEEN ? AND ? ORDER BY number LIMIT ?'),
    changes: database.prepare<[{ ns: number; since: number; latest: number }], { readonly key: string }>(
      `SELECT parent || name_key AS key FROM entry INDEXED BY entry_change
         WHERE ns = @ns AND seq > @since AND seq <= @latest AND ${notStaged('entry.seq')}
       UNION ALL SELECT parent || name_key FROM deletion INDEXED BY deletion_told
         WHERE ns = @ns AND NOT implied AND seq > @since AND seq <= @latest`,
    ),
    dropEntry: database.prepare<[Placed]>(`DELETE FROM entry WHERE ${at}`),
    dropDeletion: database.prepare<[Placed]>(`DELETE FROM deletion WHERE ${at}`),
    dropRevision: database.prepare<[ns: number, number: number]>(
      'DELETE FROM revision WHERE ns = ? AND number = ?',
    ),
  };
}
