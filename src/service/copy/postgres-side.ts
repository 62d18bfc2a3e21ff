import type { Pool, PoolClient } from 'pg';
import { elapsedMs, systemClock } from '../../util/clock.ts';
import { silentLog } from '../../util/log.ts';
import { MIGRATIONS as DIRECTORY_MIGRATIONS } from '../directory/postgres/migrations.ts';
import { isConnectionLost } from '../postgres/away.ts';
import { databaseName, openPool, SERVICE_NAME } from '../postgres/connect.ts';
import { openingFailure, sqlStateOf } from '../postgres/errors.ts';
import { versionOf } from '../postgres/migrate.ts';
import { findRow } from '../postgres/queries.ts';
import { MIGRATIONS as STORAGE_MIGRATIONS } from '../storage/postgres/migrations.ts';
import type { Value } from '../storage/postgres/tables.ts';
import { CopyError } from './copy-error.ts';
import type { Rows } from './sides.ts';

/** The parts of a service's tables, and their steps. */
export const PARTS = [
  { part: 'storage', steps: STORAGE_MIGRATIONS },
  { part: 'directory', steps: DIRECTORY_MIGRATIONS },
] as const;

/** Opens connections for a copy, which are told from those of services. */
export function openCopyPool(url: string): Pool {
  return openPool(url, silentLog, { applicationName: 'davgate-copy' });
}

/** Runs `work`, and explains failures of the database to the operator. */
export async function explaining<T>(pool: Pool, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (failure) {
    const isOfDatabase = sqlStateOf(failure) !== '' || isConnectionLost(failure);
    throw isOfDatabase ? openingFailure(failure, databaseName(pool)) : failure;
  }
}

/** How long the connections of a service or copy that has just ended may stay, in ms, and the pause between two looks. */
export const LEAVING_MS = 5000;
const PAUSE_MS = 200;

/** Throws `CopyError` while a service or a command has connections to the database. */
export async function expectUnused(pool: Pool): Promise<void> {
  const started = systemClock.instant();
  while (await isUsed(pool)) {
    if (elapsedMs(systemClock, started) >= LEAVING_MS)
      throw new CopyError(
        `${databaseName(pool)} is used by a service that runs: stop all its services first, and start them when the copy has ended`,
      );
    await systemClock.sleep(PAUSE_MS);
  }
}

async function isUsed(pool: Pool): Promise<boolean> {
  const row = await findRow(
    pool,
    `SELECT 1 AS one FROM pg_catalog.pg_stat_activity
     WHERE datname = current_database() AND application_name = $1 LIMIT 1`,
    SERVICE_NAME,
  );
  return row !== undefined;
}

/** Throws `CopyError` unless the tables are those of this davgate. */
export async function expectCurrent(pool: Pool, whenOther: string): Promise<void> {
  for (const { part, steps } of PARTS)
    if ((await versionOf(pool, part)) !== steps.length)
      throw new CopyError(`${databaseName(pool)} ${whenOther}`);
}

/** Returns the rows that a transaction sees. One query is read at a time. */
export function postgresRows(client: PoolClient): Rows {
  return {
    dialect: 'postgres',
    async *read(query, atOnce) {
      await client.query(`DECLARE copied NO SCROLL CURSOR FOR ${query}`);
      for (;;) {
        const { rows } = await client.query<Value[]>({
          text: `FETCH ${atOnce} FROM copied`,
          rowMode: 'array',
        });
        if (rows.length > 0) yield rows;
        if (rows.length < atOnce) break;
      }
      await client.query('CLOSE copied');
    },
  };
}
