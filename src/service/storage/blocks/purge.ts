import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Transaction } from '../committer.ts';
import { tickAt } from '../feed/ticks.ts';
import type { Contents } from './contents.ts';
import type { Reserve } from './reserve.ts';

/** Revisions taken apart at once: some 20 ms, so that a large tree's end holds nobody up. */
const STEP_REVISIONS = 200;

/** How long a deletion that is told only to cursors is kept, ms; older cursors start over. */
const FORGOTTEN_LIFE_MS = 30 * 24 * 60 * 60 * 1000;

/** Old deletions that one transaction clears away: some 20 ms. */
const PRUNED_MAX = 1000;

/**
 * Revisions that are removed for ever: their contents are counted down step by step, also after a restart.
 */
export class Graveyard {
  readonly #sql: ReturnType<typeof statements>;
  #working: Promise<void> | undefined;

  constructor(
    database: SqliteDatabase,
    private readonly contents: Contents,
  ) {
    this.#sql = statements(database);
  }

  /** Takes some more apart. */
  step(transaction: Transaction): void {
    for (const { number, ns, content } of this.#sql.some.all(STEP_REVISIONS)) {
      this.#sql.done.run(number);
      this.contents.letGo(transaction, ns, content);
    }
  }

  /** Whether deletions are still told to cursors that are too old for it. */
  hasOldWords(nowMs: number): boolean {
    return this.#sql.outdated.get(tickAt(nowMs - FORGOTTEN_LIFE_MS)) !== undefined;
  }

  /** Clears some of them away, in one namespace; cursors from before them start over. */
  forgetOldWords({ nowMs }: Transaction): void {
    const before = tickAt(nowMs - FORGOTTEN_LIFE_MS);
    const ns = this.#sql.outdated.get(before)?.id;
    if (ns === undefined) return;
    this.#sql.pruneHorizon.run({ ns, before, limit: PRUNED_MAX });
    this.#sql.prune.run({ ns });
  }

  /** Whether all that was removed is taken apart. */
  get isEmpty(): boolean {
    return this.#sql.some.get(1) === undefined;
  }

  /** Works until nothing is left or the storage is closed; the next start goes on. */
  work(reserve: Reserve): Promise<void> {
    this.#working ??= this.#work(reserve).finally(() => {
      this.#working = undefined;
    });
    return this.#working;
  }

  async #work(reserve: Reserve): Promise<void> {
    while (!reserve.isClosed && !this.isEmpty) await reserve.commit((transaction) => this.step(transaction));
  }
}

/** Prepared statements over what is removed for ever. */
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
    done: database.prepare<[number]>('DELETE FROM doomed WHERE number = ?'),
  };
}
