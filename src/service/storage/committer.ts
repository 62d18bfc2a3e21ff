import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import { commitGroup, inSavepoint } from '../../util/sqlite/group-commit.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { asRefusal, codeOf } from './errors.ts';
import type { Ticks } from './feed/ticks.ts';
import { type Outcome, StorageError } from './storage.ts';

/** What an operation may change besides the database. Takes effect once the transaction is durable. */
export interface Transaction {
  readonly nowMs: number;
  readonly ticks: Ticks;
  /** Returns whether the transaction has done enough work; the rest moves to later ones, so that other calls get a turn. */
  readonly isFull: () => boolean;
  /** Rows of removed trees that the transaction may still clear away; the others wait for later transactions. */
  readonly room: { rows: number };
  /** Changed paths, for the calls that wait for changes. */
  readonly changes: Change[];
  /** Hex hashes of block files that the database no longer references. */
  readonly orphans: string[];
}

export interface Change {
  readonly ns: number;
  readonly key: string;
  /** Whether everything below it changed too. */
  readonly tree: boolean;
}

/** Changes only the database and the transaction, because it runs again when its batch fails. */
export type Operation<T> = (transaction: Transaction) => T;

/** How long a commit waits for earlier ones before it is refused, in ms (service-api.md §9.6). */
const WAIT_MS_MAX = 1000;

/** Maximum number of commits in one transaction. */
const BATCH_MAX = 256;

/** Changed paths at which a transaction is full: some 20 ms of work on an idle machine. */
const CHANGES_MAX = 100;

/** Work at which a transaction is full, in ms: for slow operations and slow machines. */
const WORK_MS_MAX = 30;

/** Maximum number of batch entries in one transaction: a refused entry takes time too. */
const ENTRIES_MAX = 50;

/** Maximum number of rows of removed trees that one transaction clears away: some 20 ms of work. */
const REMOVED_ROWS_MAX = 200;

interface Waiting {
  readonly queued: Instant;
  readonly until: AbortSignal | undefined;
  readonly operation: Operation<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (failure: unknown) => void;
}

/**
 * The queue of all commits. Those that wait at the same moment share a transaction and its fsync; a refused one leaves
 * no trace (`commitGroup`).
 */
export class Committer {
  #queue: Waiting[] = [];
  #scheduled = false;
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(
    private readonly database: SqliteDatabase,
    private readonly ticks: Ticks,
    private readonly clock: Clock,
    private readonly committed: (transaction: Transaction) => void,
    private readonly limits: {
      readonly waitMs?: number | undefined;
      readonly removedRows?: number | undefined;
    } = {},
  ) {}

  /**
   * Resolves once the effect is durable. Throws what `operation` throws, and `too_many_write_operations` when its turn
   * comes too late. With `until` it waits for its turn until that signal aborts, and then throws the signal's reason.
   */
  run<T>(operation: Operation<T>, until?: AbortSignal): Promise<T> {
    if (this.#closed) return Promise.reject(new Error('the storage is closed'));
    return new Promise((resolve, reject) => {
      this.#queue.push({
        queued: this.clock.instant(),
        until,
        operation,
        // The queue does not know the operations' types; the result is this operation's own.
        resolve: (result) => resolve(result as T),
        reject,
      });
      this.#schedule();
    });
  }

  /** Whether `run` refuses new operations. */
  get isClosed(): boolean {
    return this.#closed;
  }

  /** Refuses new operations, and resolves when all accepted ones are done. */
  async close(): Promise<void> {
    this.#closed = true;
    if (this.#scheduled) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Waits one turn of the event loop: operations that arrive together share a batch, and reads run between batches. */
  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#flush());
  }

  /** Commits the next batch. Synchronous, so that no reader sees half a transaction. */
  #flush(): void {
    const nowMs = this.clock.now();
    const batch: Waiting[] = [];
    for (const waiting of this.#queue.splice(0, BATCH_MAX)) {
      if (!this.#isTooLate(waiting)) batch.push(waiting);
      else if (waiting.until) waiting.reject(waiting.until.reason);
      else waiting.reject(new StorageError({ kind: 'write', tag: 'too_many_write_operations' }));
    }
    if (batch.length > 0) this.#commit(batch, nowMs);
    this.#scheduled = false;
    if (this.#queue.length > 0) this.#schedule();
    else for (const resolve of this.#idle.splice(0)) resolve();
  }

  #isTooLate({ queued, until }: Waiting): boolean {
    if (until) return until.aborted;
    return elapsedMs(this.clock, queued) > (this.limits.waitMs ?? WAIT_MS_MAX);
  }

  /** Commits a batch or, when the database cannot take it as a whole, each of its operations alone. */
  #commit(batch: readonly Waiting[], nowMs: number): void {
    const started = this.clock.instant();
    const changes: Change[] = [];
    const transaction: Transaction = {
      nowMs,
      ticks: this.ticks,
      isFull: () => changes.length >= CHANGES_MAX || elapsedMs(this.clock, started) >= WORK_MS_MAX,
      room: { rows: this.limits.removedRows ?? REMOVED_ROWS_MAX },
      changes,
      orphans: [],
    };
    let answers: (() => void)[];
    try {
      answers = this.#transact(batch, transaction);
    } catch (failure) {
      // Cursors must not run ahead of the database: after a crash they would skip changes.
      this.ticks.takeBack();
      // An operation that does not fit on the disk must not fail the others.
      if (batch.length > 1) for (const waiting of batch) this.#commit([waiting], nowMs);
      else batch[0]?.reject(asRefusal(failure));
      return;
    }
    // Operations that did not fit come first in the next batch.
    this.#queue = batch.slice(answers.length).concat(this.#queue);
    this.committed(transaction);
    for (const answer of answers) answer();
  }

  /** Runs as many operations as fit in one transaction, at least one. Returns the answers to their callers. */
  #transact(batch: readonly Waiting[], transaction: Transaction): (() => void)[] {
    const outcomes = commitGroup(
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
          if (codeOf(error).startsWith('SQLITE_')) throw error;
        },
        beforeCommit: () => this.ticks.store(),
      },
    );
    return batch.slice(0, outcomes.length).map(({ resolve, reject }, index) => {
      const outcome = outcomes[index];
      return outcome && 'value' in outcome ? () => resolve(outcome.value) : () => reject(outcome?.error);
    });
  }
}

/**
 * Works through `entries` in several steps: `step` gets the next entries and returns the outcomes of those it has done,
 * at least one. When a later step is refused as a whole, its refusal is the outcome of all remaining entries; a refusal
 * of the first step is thrown.
 */
export async function inSteps<E, T>(
  entries: readonly E[],
  step: (next: readonly E[]) => Promise<readonly Outcome<T>[]>,
): Promise<Outcome<T>[]> {
  const outcomes: Outcome<T>[] = [];
  try {
    while (outcomes.length < entries.length) {
      const next = entries.slice(outcomes.length, outcomes.length + ENTRIES_MAX);
      for (const outcome of await step(next)) outcomes.push(outcome);
    }
    return outcomes;
  } catch (failure) {
    if (!(failure instanceof StorageError) || outcomes.length === 0) throw failure;
    return entries.map((_, index) => outcomes[index] ?? failure);
  }
}

/**
 * Runs `operation` for each entry until the transaction is full. A refused entry leaves no trace, and the next one runs.
 * Returns the outcomes of the entries it reached, at least one. Stops before an entry that is too large for the
 * transaction, for which `operation` returns `undefined`.
 */
export function eachInSavepoint<E, T>(
  database: SqliteDatabase,
  transaction: Transaction,
  entries: readonly E[],
  operation: (entry: E) => T | undefined,
): Outcome<T>[] {
  const outcomes: Outcome<T>[] = [];
  for (const entry of entries) {
    if (outcomes.length > 0 && transaction.isFull()) break;
    try {
      const outcome = inSavepoint(database, () => withoutTrace(transaction, () => operation(entry)));
      if (outcome === undefined) break;
      outcomes.push(outcome);
    } catch (failure) {
      if (!(failure instanceof StorageError)) throw failure;
      outcomes.push(failure);
    }
  }
  return outcomes;
}

/** Runs `operation` so that its failure leaves no trace beside the database. */
function withoutTrace<T>(transaction: Transaction, operation: () => T): T {
  const changes = transaction.changes.length;
  const orphans = transaction.orphans.length;
  try {
    return operation();
  } catch (failure) {
    transaction.changes.length = changes;
    transaction.orphans.length = orphans;
    throw failure;
  }
}
