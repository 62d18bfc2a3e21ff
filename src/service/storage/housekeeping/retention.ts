import { setImmediate as otherCalls } from 'node:timers/promises';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Purge } from '../blocks/purge.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { Transaction } from '../committer.ts';
import { tickAt } from '../feed/ticks.ts';

/** How long history is kept, in ms: the longer of the two periods that the real service offers. */
export const HISTORY_LIFE_MS = 180 * 24 * 60 * 60 * 1000;

/** Revisions, or deletions without any, that one transaction ends: some 20 ms. */
const STEP_ROWS = 200;

/** Revisions and namespaces examined in a row, and how often in one round: a large history takes many rounds. */
const WINDOW_ROWS = 500;
const WINDOWS_PER_ROUND = 200;

interface RevisionKey {
  readonly ns: number;
  readonly number: number;
}

/** Before the first revision of the first namespace. */
const START: RevisionKey = { ns: 0, number: 0 };

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
  /** The last examined revision; `START` once a round has reached the end. */
  #lookedAt: RevisionKey = START;

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
      for (const { number } of revisions) this.purge.enqueue(ns, number);
      room -= Math.max(1, revisions.length);
      if (room <= 0) return;
      this.#sql.forget.run(ns, parent, nameKey);
    }
  }

  /** Ends revisions that were replaced long ago, and examines a bounded number of them. Returns whether it has reached the end. */
  async endReplaced(nowMs: number): Promise<boolean> {
    const before = oldestKept(nowMs);
    for (let windows = 0; windows < WINDOWS_PER_ROUND && !this.reserve.isClosed; windows++) {
      const { looked, last } = this.#nextRevisions(before);
      const replaced = looked.filter((revision) => this.#isReplaced(revision, before));
      for (let start = 0; start < replaced.length; start += STEP_ROWS) {
        const some = replaced.slice(start, start + STEP_ROWS);
        await this.reserve.commit(() => {
          // Checked again, because others have committed since.
          for (const { ns, number } of some)
            if (this.#isReplaced({ ns, number }, before)) this.purge.enqueue(ns, number);
        });
      }
      this.#lookedAt = last ?? START;
      if (!last) return true;
      await otherCalls();
    }
    return false;
  }

  /** Returns the next old revisions, and the one after which to continue, if there may be more. */
  #nextRevisions(before: number): { readonly looked: RevisionKey[]; readonly last: RevisionKey | undefined } {
    const looked: RevisionKey[] = [];
    let last: RevisionKey | undefined = this.#lookedAt;
    for (let room = WINDOW_ROWS; room > 0 && last; room--) {
      const rows = this.#sql.revisions.all(last.ns, last.number, before, room);
      for (const row of rows) looked.push(row);
      const isFull = rows.length === room;
      room -= rows.length;
      last = isFull ? rows.at(-1) : this.#nextNamespace(last.ns);
    }
    return { looked, last };
  }

  #nextNamespace(ns: number): RevisionKey | undefined {
    const next = this.#sql.nextNamespace.get(ns);
    return next && { ns: next.id, number: 0 };
  }

  #isReplaced({ ns, number }: RevisionKey, before: number): boolean {
    return this.#sql.isReplaced.get({ ns, number, before }) !== undefined;
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
         AND NOT EXISTS (SELECT 1 FROM entry WHERE entry.ns = revision.ns AND entry.revision = revision.number)
       ORDER BY number LIMIT ?`,
    ),
    forget: database.prepare<[ns: number, parent: string, nameKey: string]>(
      'UPDATE deletion SET forgotten = 1 WHERE ns = ? AND parent = ? AND name_key = ?',
    ),
    revisions: database.prepare<[ns: number, after: number, before: number, limit: number], RevisionKey>(
      'SELECT ns, number FROM revision WHERE ns = ? AND number > ? AND number < ? ORDER BY number LIMIT ?',
    ),
    nextNamespace: database.prepare<[after: number], { id: number }>(
      'SELECT id FROM namespace WHERE id > ? ORDER BY id LIMIT 1',
    ),
    // A later revision of the place, or a folder at it. Revisions of a deleted file expire with its deletion.
    isReplaced: database.prepare<[RevisionKey & { before: number }]>(
      `SELECT 1 FROM revision AS old WHERE old.ns = @ns AND old.number = @number AND (
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
