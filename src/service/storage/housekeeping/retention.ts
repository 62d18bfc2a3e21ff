import { setImmediate as otherCalls } from 'node:timers/promises';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Purge } from '../blocks/purge.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { Transaction } from '../committer.ts';
import { tickAt } from '../feed/ticks.ts';

/** How long history is kept, in ms: the longer of the two periods that the real service offers. */
const HISTORY_LIFE_MS = 180 * 24 * 60 * 60 * 1000;

/** Revisions, or deletions without any, that one transaction ends: some 20 ms. */
const STEP_ROWS = 200;

/** Revisions examined in a row, and how often in one round: a large history takes many rounds. */
const WINDOW_REVISIONS = 500;
const WINDOWS_PER_ROUND = 200;

interface DeletionKey {
  readonly ns: number;
  readonly parent: string;
  readonly nameKey: string;
}

/**
 * Ends history past its retention: old deletions, and revisions that were replaced long ago. Live entries are never
 * touched, however old. Ended revisions are purged (`purge.ts`).
 */
export class Retention {
  readonly #sql: ReturnType<typeof statements>;
  /** The last examined revision; 0 once a round has reached the end. */
  #lookedAt = 0;

  constructor(
    database: SqliteDatabase,
    private readonly reserve: Reserve,
    private readonly purge: Purge,
  ) {
    this.#sql = statements(database);
  }

  /** Returns whether some deletion is past its retention. */
  hasOldDeletions(nowMs: number): boolean {
    return this.#sql.oldDeletions.get(oldestKept(nowMs), 1) !== undefined;
  }

  /** Ends some old deletions, each after its revisions. */
  endDeletions(transaction: Transaction): void {
    let room = STEP_ROWS;
    for (const deletion of this.#sql.oldDeletions.all(oldestKept(transaction.nowMs), STEP_ROWS)) {
      const { ns, parent, nameKey } = deletion;
      const revisions = this.#sql.revisionsAt.all(ns, parent, nameKey, room);
      for (const { number } of revisions) this.purge.enqueue(number);
      room -= Math.max(1, revisions.length);
      if (room <= 0) return;
      this.#sql.forget.run(ns, parent, nameKey);
    }
  }

  /** Ends revisions that were replaced long ago, and examines a bounded number of them. */
  async endReplaced(nowMs: number): Promise<void> {
    const before = oldestKept(nowMs);
    for (let windows = 0; windows < WINDOWS_PER_ROUND && !this.reserve.isClosed; windows++) {
      const looked = this.#sql.revisions.all(this.#lookedAt, before, WINDOW_REVISIONS);
      const replaced = looked.filter(({ number }) => this.#isReplaced(number, before));
      for (let start = 0; start < replaced.length; start += STEP_ROWS) {
        const some = replaced.slice(start, start + STEP_ROWS);
        await this.reserve.commit(() => {
          // Checked again, because others have committed since.
          for (const { number } of some) if (this.#isReplaced(number, before)) this.purge.enqueue(number);
        });
      }
      const isThrough = looked.length < WINDOW_REVISIONS;
      this.#lookedAt = isThrough ? 0 : (looked.at(-1)?.number ?? 0);
      if (isThrough) break;
      await otherCalls();
    }
  }

  #isReplaced(number: number, before: number): boolean {
    return this.#sql.isReplaced.get({ number, before }) !== undefined;
  }
}

/** Returns the first change number that is within the retention. */
function oldestKept(nowMs: number): number {
  return tickAt(nowMs - HISTORY_LIFE_MS);
}

function statements(database: SqliteDatabase) {
  return {
    oldDeletions: database.prepare<[before: number, limit: number], DeletionKey>(
      `SELECT ns, parent, name_key AS nameKey FROM deletion INDEXED BY deletion_kept
       WHERE NOT forgotten AND seq < ? ORDER BY seq LIMIT ?`,
    ),
    revisionsAt: database.prepare<
      [ns: number, parent: string, nameKey: string, limit: number],
      { number: number }
    >(
      // A large move or copy may have put a file there without having cleared the deletion away.
      `SELECT number FROM revision WHERE ns = ? AND parent = ? AND name_key = ?
         AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.revision = revision.number)
       ORDER BY number LIMIT ?`,
    ),
    forget: database.prepare<[ns: number, parent: string, nameKey: string]>(
      'UPDATE deletion SET forgotten = 1 WHERE ns = ? AND parent = ? AND name_key = ?',
    ),
    revisions: database.prepare<[after: number, before: number, limit: number], { number: number }>(
      'SELECT number FROM revision WHERE number > ? AND number < ? ORDER BY number LIMIT ?',
    ),
    // A later revision of the place, or a folder at it. Revisions of a deleted file expire with its deletion.
    isReplaced: database.prepare<[{ number: number; before: number }]>(
      `SELECT 1 FROM revision AS old WHERE old.number = @number AND (
         EXISTS (
           SELECT 1 FROM revision AS next
           WHERE next.ns = old.ns AND next.parent = old.parent AND next.name_key = old.name_key
             AND next.number > old.number AND next.number < @before)
         OR EXISTS (
           SELECT 1 FROM entry
           WHERE entry.ns = old.ns AND entry.parent = old.parent AND entry.name_key = old.name_key
             AND entry.revision IS NULL AND entry.seq < @before))`,
    ),
  };
}
