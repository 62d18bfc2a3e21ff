import { setImmediate as otherCalls } from 'node:timers/promises';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { Transaction } from '../committer.ts';
import { tickAt } from '../feed/ticks.ts';

/**
 * How long what was deleted or overwritten can be brought back, ms: the longer of the two times that the real
 * service keeps history for.
 */
const HISTORY_LIFE_MS = 180 * 24 * 60 * 60 * 1000;

/** Revisions, or deletions without any, that one transaction lets go of: some 20 ms. */
const STEP_ROWS = 200;

/** Revisions looked at in a row, and how often in one round: a large history is gone through over many rounds. */
const WINDOW_REVISIONS = 500;
const WINDOWS_PER_ROUND = 200;

interface DeletionKey {
  readonly ns: number;
  readonly parent: string;
  readonly nameKey: string;
}

/**
 * Ends the history that is too old: deletions made before the retention, and revisions that another one had
 * replaced by then. What is live is never touched, however old. The contents go the way of all that is removed for
 * ever (`graveyard.ts`).
 */
export class Retention {
  readonly #sql: ReturnType<typeof statements>;
  /** The last revision that was looked at; the round after the last one begins anew. */
  #lookedAt = 0;

  constructor(
    database: SqliteDatabase,
    private readonly reserve: Reserve,
  ) {
    this.#sql = statements(database);
  }

  /** Whether some deletion is past its time. */
  hasOldDeletions(nowMs: number): boolean {
    return this.#sql.oldDeletions.get(oldestKept(nowMs), 1) !== undefined;
  }

  /** Ends some old deletions, each once its revisions are gone. */
  endDeletions(transaction: Transaction): void {
    let room = STEP_ROWS;
    for (const deletion of this.#sql.oldDeletions.all(oldestKept(transaction.nowMs), STEP_ROWS)) {
      const { ns, parent, nameKey } = deletion;
      const revisions = this.#sql.revisionsAt.all(ns, parent, nameKey, room);
      for (const { number } of revisions) this.#doom(number);
      room -= Math.max(1, revisions.length);
      if (room <= 0) return;
      this.#sql.forget.run(ns, parent, nameKey);
    }
  }

  /** Lets go of revisions that were replaced long ago, up to a bounded number looked at. */
  async endReplaced(nowMs: number): Promise<void> {
    const before = oldestKept(nowMs);
    for (let windows = 0; windows < WINDOWS_PER_ROUND && !this.reserve.isClosed; windows++) {
      const looked = this.#sql.revisions.all(this.#lookedAt, before, WINDOW_REVISIONS);
      const replaced = looked.filter(({ number }) => this.#isReplaced(number, before));
      for (let start = 0; start < replaced.length; start += STEP_ROWS) {
        const some = replaced.slice(start, start + STEP_ROWS);
        await this.reserve.commit(() => {
          // Asked again: others have committed since.
          for (const { number } of some) if (this.#isReplaced(number, before)) this.#doom(number);
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

  #doom(number: number): void {
    this.#sql.doom.run(number);
    this.#sql.drop.run(number);
  }
}

/** The first number whose change is young enough to be kept. */
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
      // A large move or copy may have put a file there, and not have cleared the deletion away.
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
    // A later revision of the place, or a folder in it. What was deleted from it ends with its deletion.
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
    doom: database.prepare<[number]>(
      'INSERT INTO doomed SELECT number, ns, content FROM revision WHERE number = ?',
    ),
    drop: database.prepare<[number]>('DELETE FROM revision WHERE number = ?'),
  };
}
