import type { Pool, PoolClient } from 'pg';
import { onAbort } from '../../../util/abort.ts';
import type { Clock } from '../../../util/clock.ts';
import type { Log } from '../../../util/log.ts';
import type { Namespaces } from './namespaces.ts';

/** How often the versions of watched namespaces are asked for, in ms: a notification can be lost. */
export const ASK_MS = 4500;

/** Pause before the next attempt to listen, in ms. */
const RETRY_MS = 1000;

/**
 * Learns of commits of other processes while calls wait for changes: from notifications, and by asking from time to time.
 * Runs until `closing` is aborted.
 */
export async function followOthers(
  namespaces: Namespaces,
  { pool, channel, clock, log }: { pool: Pool; channel: string; clock: Clock; log: Log },
  closing: AbortSignal,
): Promise<void> {
  const tell = (ns: number) => {
    namespaces.changed(ns).catch((error: unknown) => {
      log.warn('a change of another process could not be read', { namespace: ns, error: String(error) });
    });
  };
  const asking = untilClosed(closing, async () => {
    await clock.sleep(ASK_MS, closing);
    for (const ns of namespaces.watched) tell(ns);
  });
  const listening = untilClosed(closing, async () => {
    await listen(pool, channel, tell, closing).catch((error: unknown) => {
      if (!closing.aborted) log.warn('the database does not tell of changes', { error: String(error) });
    });
    await clock.sleep(RETRY_MS, closing);
    // What was told meanwhile is lost.
    for (const ns of namespaces.watched) tell(ns);
  });
  await Promise.all([asking, listening]);
}

async function untilClosed(closing: AbortSignal, step: () => Promise<void>): Promise<void> {
  while (!closing.aborted) await step().catch(() => undefined);
}

/** Calls `tell` with the number of each changed namespace, until the connection fails or `closing` is aborted. */
async function listen(
  pool: Pool,
  channel: string,
  tell: (ns: number) => void,
  closing: AbortSignal,
): Promise<void> {
  const client = await pool.connect();
  const over = ended(client, closing);
  try {
    client.on('notification', ({ payload }) => tell(Number(payload)));
    await client.query(`LISTEN ${channel}`);
    await over;
  } finally {
    // It may fail during LISTEN too.
    over.catch(() => undefined);
    client.release(true);
  }
}

/** Resolves when the connection or the storage closes; rejects when the connection fails. */
function ended(client: PoolClient, closing: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const removeListener = onAbort(closing, () => resolve());
    client.once('end', () => {
      removeListener();
      resolve();
    });
    client.on('error', reject);
  });
}

/**
 * Returns a function that tells other processes of a commit to a namespace. Not in the transaction itself: there PostgreSQL
 * would let one commit of all wait for the other.
 */
export function tellOthers(pool: Pool, channel: string, log: Log): (ns: number) => void {
  let changed = new Set<number>();
  let isTelling = false;
  async function tell(): Promise<void> {
    isTelling = true;
    try {
      while (changed.size > 0) {
        const told = [...changed];
        changed = new Set();
        await pool.query('SELECT pg_notify($1, ns::text) FROM unnest($2::bigint[]) AS ns', [channel, told]);
      }
    } catch (error) {
      // They ask from time to time.
      log.warn('other services were not told of a commit', { error: String(error) });
    } finally {
      isTelling = false;
    }
  }
  return (ns) => {
    changed.add(ns);
    if (!isTelling) void tell();
  };
}
