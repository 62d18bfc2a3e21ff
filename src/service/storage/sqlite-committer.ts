import type { Clock } from '../../util/clock.ts';
import { errorCodeOf } from '../../util/error-code.ts';
import { type ChangeOutcome, commitGroup } from '../../util/sqlite/group-commit.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { answered, CommitQueue, type Waiting } from './commit-queue.ts';
import {
  type Committer,
  newTransaction,
  type Operation,
  type Transaction,
  withoutTrace,
} from './committer.ts';
import { asRefusal } from './errors.ts';
import type { Ticks } from './feed/ticks.ts';

/** Some 20 ms of work. */
const ENTRIES_MAX = 50;

/**
 * Commits to a database of this process alone. Operations that wait at the same moment share a transaction and its fsync
 * (`commitGroup`).
 */
export class SqliteCommitter implements Committer {
  readonly entriesMax = ENTRIES_MAX;
  readonly #queue: CommitQueue;

  constructor(
    private readonly database: SqliteDatabase,
    private readonly ticks: Ticks,
    private readonly clock: Clock,
    private readonly committed: (transaction: Transaction) => void,
    private readonly limits: {
      readonly waitMs?: number | undefined;
      readonly removedRows?: number | undefined;
    } = {},
  ) {
    this.#queue = new CommitQueue(clock, limits.waitMs, (batch) => this.#commit(batch, clock.now()));
  }

  run<T>(operation: Operation<T>, until?: AbortSignal): Promise<T> {
    return this.#queue.run(operation, until);
  }

  get isClosed(): boolean {
    return this.#queue.isClosed;
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  /**
   * Commits a batch or, when the database cannot take it as a whole, each of its operations alone. Synchronous, so that no
   * reader sees half a transaction.
   */
  #commit(batch: readonly Waiting[], nowMs: number): readonly Waiting[] {
    const transaction = newTransaction(this.ticks, this.clock, nowMs, this.limits);
    let outcomes: readonly ChangeOutcome[];
    try {
      outcomes = this.#transact(batch, transaction);
    } catch (failure) {
      // Cursors must not run ahead of the database: after a crash they would skip changes.
      this.ticks.takeBack();
      // An operation that does not fit on the disk must not fail the others.
      if (batch.length > 1) for (const waiting of batch) this.#commit([waiting], nowMs);
      else batch[0]?.reject(asRefusal(failure));
      return [];
    }
    this.committed(transaction);
    return answered(batch, outcomes);
  }

  /** Runs as many operations as fit in one transaction, at least one. */
  #transact(batch: readonly Waiting[], transaction: Transaction): readonly ChangeOutcome[] {
    return commitGroup(
      this.database,
      batch.map(
        ({ operation }) =>
          () =>
            withoutTrace(transaction, () => operation(transaction)),
      ),
      {
        isFull: transaction.isFull,
        onUndone: (error) => {
          // The whole batch fails, and each operation is tried alone.
          if (errorCodeOf(error).startsWith('SQLITE_')) throw error;
        },
        beforeCommit: () => this.ticks.store(),
      },
    );
  }
}
