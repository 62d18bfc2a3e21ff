import type { Pool, PoolClient } from 'pg';
import { sqlStateOf } from './errors.ts';
import type { Queries } from './queries.ts';

/** How often a transaction is tried that fails because of concurrent ones. */
const ATTEMPTS_MAX = 5;

/** Failures of a transaction that may succeed when it is repeated: serialization_failure and deadlock_detected. */
const RETRYABLE = new Set(['40001', '40P01']);

/**
 * Longest statement of a transaction, and longest pause between two, in ms. A process that hangs, or whose network is
 * cut, holds its locks no longer than that.
 */
const LIMIT_MS = 30_000;

export interface TransactionOptions {
  /** Whether a commit waits until it survives a power cut; by default it does. */
  readonly isDurable?: boolean;
}

/**
 * Runs `work` in a transaction of isolation level read committed, in which each statement sees all earlier commits.
 * Rolls back when `work` throws. Repeats `work` after a deadlock, so that it must have no effects elsewhere.
 */
export function inTransaction<T>(
  pool: Pool,
  work: (on: Queries) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const begin = beginWith(options);
  return retried(() => tryOnce(pool, begin, work));
}

/** Runs a transaction or a single statement, and repeats it if it fails because of concurrent ones. */
export async function retried<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (error) {
      if (attempt === ATTEMPTS_MAX || !RETRYABLE.has(sqlStateOf(error))) throw error;
    }
  }
}

/** Several statements in one round trip. They end with the transaction, as a pooler of connections demands. */
function beginWith({ isDurable = true }: TransactionOptions): string {
  return [
    'BEGIN ISOLATION LEVEL READ COMMITTED',
    `SET LOCAL statement_timeout = ${LIMIT_MS}`,
    `SET LOCAL idle_in_transaction_session_timeout = ${LIMIT_MS}`,
    ...(isDurable ? [] : ['SET LOCAL synchronous_commit = off']),
  ].join('; ');
}

async function tryOnce<T>(pool: Pool, begin: string, work: (on: Queries) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let failure: Error | undefined;
  try {
    await client.query(begin);
    const result = await work(client);
    await commit(client);
    return result;
  } catch (error) {
    failure = await rollBack(client, error);
    throw error;
  } finally {
    client.release(failure);
  }
}

/** Commits. Throws if the transaction has failed: PostgreSQL then rolls back, without an error. */
async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query('COMMIT');
  if (command !== 'COMMIT')
    throw new Error('a statement of the transaction failed, and its error was ignored');
}

/** Rolls back after `error`. Returns why the connection cannot be used again, or `undefined`. */
async function rollBack(client: PoolClient, error: unknown): Promise<Error | undefined> {
  // The statement without an answer still runs, and a ROLLBACK would wait for it.
  if (error instanceof Error && error.message === 'Query read timeout') return error;
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (broken) {
    return broken instanceof Error ? broken : new Error(String(broken));
  }
}
