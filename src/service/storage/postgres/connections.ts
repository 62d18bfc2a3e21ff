import type { Pool, PoolClient } from 'pg';
import { type Clock, elapsedMs } from '../../../util/clock.ts';
import { DatabaseAwayError, isConnectionLost } from '../../postgres/away.ts';

/** How long calls wait for a database that is away, in ms, and the pause between two attempts. */
const PATIENCE_MS = 10_000;
const PAUSE_MS = 200;

/** Runs `work` with a connection of its own, and rolls back when it throws. */
export async function inConnection<T>(pool: Pool, work: (client: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  client.on('error', ignore);
  let broken: unknown;
  try {
    return await work(client);
  } catch (failure) {
    broken = isConnectionLost(failure)
      ? failure
      : await client.query('ROLLBACK').then(
          () => undefined,
          (error: unknown) => error,
        );
    throw failure;
  } finally {
    client.off('error', ignore);
    client.release(broken !== undefined);
  }
}

function ignore(): void {}

/** Repeats `attempt` while connections fail. Throws `DatabaseAwayError` when the database stays away. */
export async function whileConnectionsFail<T>(clock: Clock, attempt: () => Promise<T>): Promise<T> {
  const started = clock.instant();
  for (;;) {
    try {
      return await attempt();
    } catch (failure) {
      if (!isConnectionLost(failure)) throw failure;
      if (elapsedMs(clock, started) >= PATIENCE_MS)
        throw new DatabaseAwayError('the database with the metadata is away', { cause: failure });
      await clock.sleep(PAUSE_MS);
    }
  }
}
