import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Transaction } from '../committer.ts';
import { tickAt } from '../feed/ticks.ts';
import type { Contents } from './contents.ts';
import type { Reserve } from './reserve.ts';
import { StepRunner } from './step-runner.ts';

/** Revisions that one transaction purges: some 20 ms, so that other calls get their turn. */
const STEP_REVISIONS = 200;

/** Blocks of purged contents after which one transaction purges no further revision: some 20 ms. */
const STEP_BLOCKS = 500;

/** How long a tombstone is kept, in ms. Older cursors start over. */
const TOMBSTONE_LIFE_MS = 30 * 24 * 60 * 60 * 1000;

/** Tombstones that one transaction drops: some 20 ms. */
const TOMBSTONES_MAX = 1000;

/**
 * The queue of permanently removed revisions (table `doomed`). Releases their contents step by step, also after a
 * restart. Tombstones are the deletions that remain of them (`deletion.forgotten`), which only cursors still need.
 */
export class Purge {
  readonly #sql: ReturnType<typeof statements>;
  readonly #runner = new StepRunner(this);

  constructor(
    database: SqliteDatabase,
    private readonly contents: Contents,
  ) {
    this.#sql = statements(database);
  }

  /** Takes a revision out of the history and queues it. */
  enqueue(ns: number, number: number): void {
    this.#sql.enqueue.run(ns, number);
    this.#sql.dropRevision.run(ns, number);
  }

  /** Purges the next revisions, at least one if there is any. */
  step(transaction: Transaction): void {
    let blocks = 0;
    for (const { number, ns, content } of this.#sql.some.all(STEP_REVISIONS)) {
      this.#sql.done.run(ns, number);
      blocks += this.contents.dropRevision(transaction, ns, content);
      if (blocks >= STEP_BLOCKS || transaction.isFull()) return;
    }
  }

  /** Returns whether some tombstone is older than any cursor that may need it. */
  hasStaleTombstones(nowMs: number): boolean {
    return this.#sql.outdated.get(tickAt(nowMs - TOMBSTONE_LIFE_MS)) !== undefined;
  }

  /** Drops some stale tombstones of one namespace; cursors from before them start over. */
  dropStaleTombstones({ nowMs }: Transaction): void {
    const before = tickAt(nowMs - TOMBSTONE_LIFE_MS);
    const ns = this.#sql.outdated.get(before)?.id;
    if (ns === undefined) return;
    this.#sql.pruneHorizon.run({ ns, before, limit: TOMBSTONES_MAX });
    this.#sql.prune.run({ ns });
  }

  /** Whether the queue is empty. */
  get isEmpty(): boolean {
    return this.#sql.some.get(1) === undefined;
  }

  /** Purges until the queue is empty or the storage is closed; the next start continues. */
  work(reserve: Reserve): Promise<void> {
    return this.#runner.run(reserve);
  }
}

/** Prepared statements over the queue and the tombstones. */
function statements(database: SqliteDatabase) {
  return {
    outdated: database.prepare<[before: number], { id: number }>(
      `SELECT id FROM namespace
       WHERE EXISTS (SELECT 1 FROM deletion WHERE ns = namespace.id AND forgotten AND seq < ?) LIMIT 1`,
    ),
    pruneHorizon: database.prepare<[{ ns: number; before: number; limit: number }]>(
      `UPDATE namespace SET horizon = max(horizon, coalesce((
         SELECT max(seq) FROM (
           SELECT seq FROM deletion WHERE ns = @ns AND forgotten AND seq < @before ORDER BY seq LIMIT @limit)), 0))
       WHERE id = @ns`,
    ),
    prune: database.prepare<[{ ns: number }]>(
      `DELETE FROM deletion WHERE ns = @ns AND forgotten
         AND seq <= (SELECT horizon FROM namespace WHERE id = @ns)`,
    ),
    some: database.prepare<[limit: number], { number: number; ns: number; content: number }>(
      'SELECT number, ns, content FROM doomed LIMIT ?',
    ),
    enqueue: database.prepare<[ns: number, number: number]>(
      'INSERT OR IGNORE INTO doomed SELECT ns, number, content FROM revision WHERE ns = ? AND number = ?',
    ),
    dropRevision: database.prepare<[ns: number, number: number]>(
      'DELETE FROM revision WHERE ns = ? AND number = ?',
    ),
    done: database.prepare<[ns: number, number: number]>('DELETE FROM doomed WHERE ns = ? AND number = ?'),
  };
}
