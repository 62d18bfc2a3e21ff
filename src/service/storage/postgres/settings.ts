import type { Pool } from 'pg';
import type { Log } from '../../../util/log.ts';
import { databaseName } from '../../postgres/connect.ts';
import { expectNoCopy, LOCK } from '../../postgres/migrate.ts';
import { findRow, type Queries } from '../../postgres/queries.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { keptMsOf } from './collector.ts';

/**
 * Returns a setting that all processes share; the first one makes it. Throws `PostgresError` if a copy of a service into the
 * database has begun: the copy brings its own settings, and ends only in a database without any.
 */
export async function settingOf(pool: Pool, name: string, make: () => Buffer): Promise<Buffer> {
  const stored = await storedSetting(pool, name);
  if (stored) return stored;
  await inTransaction(pool, async (on) => {
    await on.query('SELECT pg_advisory_xact_lock($1)', [LOCK]);
    await expectNoCopy(on, databaseName(pool));
    await on.query('INSERT INTO davgate.setting (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
      name,
      make(),
    ]);
  });
  const value = await storedSetting(pool, name);
  if (!value) throw new Error(`the database has lost its setting ${name}`);
  return value;
}

async function storedSetting(on: Queries, name: string): Promise<Buffer | undefined> {
  const row = await findRow<{ value: Buffer }>(on, 'SELECT value FROM davgate.setting WHERE name = $1', name);
  return row?.value;
}

/** The setting with the longest time for which any process was told to keep deleted blocks: the ms in decimal digits. */
const KEPT = 'keep-deleted-blocks';

const DAY_MS = 24 * 60 * 60 * 1000;

/** Stores how long this process was told to keep deleted blocks, unless another one was told to keep them longer. */
export async function noteKept(on: Queries, askedMs: number, log: Log): Promise<void> {
  await on.query(
    `INSERT INTO davgate.setting (name, value) VALUES ($1, convert_to($2, 'UTF8'))
     ON CONFLICT (name) DO UPDATE SET value = excluded.value
       WHERE convert_from(setting.value, 'UTF8')::bigint < convert_from(excluded.value, 'UTF8')::bigint`,
    [KEPT, String(askedMs)],
  );
  const storedMs = await storedKeptMs(on);
  if (storedMs > askedMs)
    log.warn('deleted blocks are kept longer than asked, because a service was once told to', {
      keptDays: storedMs / DAY_MS,
      askedDays: askedMs / DAY_MS,
    });
}

/**
 * Returns how long a block is kept to which nothing refers, in ms. Processes agree on the longest time that any of them was
 * told: a backup of the database that one of them keeps blocks for must not lose them to another one.
 */
export async function keptMsIn(on: Queries, askedMs = 0, uploadMsMax?: number): Promise<number> {
  return keptMsOf(Math.max(askedMs, await storedKeptMs(on)), uploadMsMax);
}

async function storedKeptMs(on: Queries): Promise<number> {
  return Number((await storedSetting(on, KEPT)) ?? 0);
}
