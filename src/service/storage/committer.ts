import { type Clock, elapsedMs } from '../../util/clock.ts';
import { inSavepoint } from '../../util/sqlite/group-commit.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
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
  /** Names in the block store of blocks that the database no longer references. */
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

/** Commits operations, several in one transaction; a refused one leaves no trace. */
export interface Committer {
  /**
   * Resolves once the effect is durable. Throws what `operation` throws, and `too_many_write_operations` when its turn
   * comes too late. With `until` it waits for its turn until that signal aborts, and then throws the signal's reason.
   */
  run<T>(operation: Operation<T>, until?: AbortSignal): Promise<T>;
  /** Whether `run` refuses new operations. */
  readonly isClosed: boolean;
  /** Batch entries that one transaction takes: a refused entry takes time too. */
  readonly entriesMax: number;
  /** Refuses new operations, and resolves when all accepted ones are done. */
  close(): Promise<void>;
}

/** Changed paths at which a transaction is full: some 20 ms of work on an idle machine. */
const CHANGES_MAX = 100;

/** Work at which a transaction is full, in ms: for slow operations and slow machines. */
const WORK_MS_MAX = 30;

/** Maximum number of rows of removed trees that one transaction clears away: some 20 ms of work. */
const REMOVED_ROWS_MAX = 200;

/** What a transaction does at most. */
export interface TransactionLimits {
  /** Rows of removed trees that it clears away. */
  readonly removedRows?: number | undefined;
  /** Changed paths at which it is full. */
  readonly changes?: number;
}

/** Returns a transaction that begins now. */
export function newTransaction(
  ticks: Ticks,
  clock: Clock,
  nowMs: number,
  { removedRows = REMOVED_ROWS_MAX, changes: changesMax = CHANGES_MAX }: TransactionLimits,
): Transaction {
  const started = clock.instant();
  const changes: Change[] = [];
  return {
    nowMs,
    ticks,
    isFull: () => changes.length >= changesMax || elapsedMs(clock, started) >= WORK_MS_MAX,
    room: { rows: removedRows },
    changes,
    orphans: [],
  };
}

/**
 * Works through `entries` in several steps of at most `entriesMax`: `step` gets the next entries and returns the outcomes of
 * those it has done, at least one. When a later step is refused as a whole, its refusal is the outcome of all remaining
 * entries; a refusal of the first step is thrown.
 */
export async function inSteps<E, T>(
  entries: readonly E[],
  entriesMax: number,
  step: (next: readonly E[]) => Promise<readonly Outcome<T>[]>,
): Promise<Outcome<T>[]> {
  const outcomes: Outcome<T>[] = [];
  try {
    while (outcomes.length < entries.length) {
      const next = entries.slice(outcomes.length, outcomes.length + entriesMax);
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
export function withoutTrace<T>(transaction: Transaction, operation: () => T): T {
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
