import type { Pool, PoolClient } from 'pg';
import { type Clock, elapsedMs } from '../../../util/clock.ts';
import { DatabaseAwayError, isConnectionLost } from '../../postgres/away.ts';

/** How long calls wait for a database that is away, in ms, and the pause between two attempts. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 200;

/** Runs `work` with a connection of its own, and rolls back when it throws. */
export async function inConnection<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  let broken: unknown;
  try {
    return await work(client);
  } catch (failure) {
    broken = isUnusable(failure)
      ? failure
      : await client.query('ROLLBACK').then(
          () => undefined,
          (error: unknown) => error,
        );
    throw failure;
  } finally {
    client.release(broken !== undefined);
  }
}

/** Whether a connection cannot run another statement: it failed, or still waits for the answer to the last one. */
function isUnusable(failure: unknown): boolean {
  return isConnectionLost(failure) || (failure instanceof Error && isConnectionLost(failure.cause));
}

/**
 * Repeats `attempt` while connections fail, or another failure is passing. Throws `DatabaseAwayError` when that does not
 * end, which is not repeated by an outer call.
 */
export async function whileConnectionsFail<T>(
  clock: Clock,
  attempt: () => Promise<T>,
  isPassing: (failure: unknown) => boolean = isConnectionLost,
): Promise<T> {
  const started = clock.instant();
  for (;;) {
    try {
      return await attempt();
    } catch (failure) {
      if (failure instanceof DatabaseAwayError || !isPassing(failure)) throw failure;
      if (elapsedMs(clock, started) >= PATIENCE_MS)
        throw new DatabaseAwayError('the database with the metadata is away', { cause: failure });
      await clock.sleep(PAUSE_MS);
    }
  }
}
