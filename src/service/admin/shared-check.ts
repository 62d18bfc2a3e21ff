import type { Pool } from 'pg';
import { silentLog } from '../../util/log.ts';
import { MIGRATIONS } from '../directory/postgres/migrations.ts';
import { isConnectionLost } from '../postgres/away.ts';
import { databaseName, openPool } from '../postgres/connect.ts';
import { openingFailure, sqlStateOf } from '../postgres/errors.ts';
import { rowsOf } from '../postgres/queries.ts';
import type { Damage } from '../storage/check/damage.ts';
import { type CheckedSharedStorage, checkSharedStorage } from '../storage/check/shared/shared-check.ts';
import { missingTables, NO_VERSIONS } from '../storage/check/shared/tables-check.ts';
import type { CheckProgress } from '../storage/check/storage-check.ts';

/** A service with its accounts and metadata in PostgreSQL, which is checked. */
export interface CheckedSharedService extends Omit<CheckedSharedStorage, 'pool'> {
  /** `postgres://…`. */
  readonly metadata: string;
}

/** A damage, and the address of the account of each namespace. */
interface OwnedDamage {
  readonly damage: Damage;
  readonly emails: ReadonlyMap<string, string>;
}

/** Yields the damages of a service in PostgreSQL. Throws `PostgresError`, and what `checkSharedStorage` throws. */
export async function* checkSharedService(
  { metadata, ...storage }: CheckedSharedService,
  onProgress: (progress: CheckProgress) => void,
): AsyncGenerator<OwnedDamage, void, undefined> {
  const pool = openPool(metadata, silentLog);
  try {
    const emails = await emailsIn(pool);
    for await (const damage of checkSharedStorage({ pool, ...storage }, onProgress)) yield { damage, emails };
    for (const damage of await missingTables(pool, 'directory', MIGRATIONS))
      if (damage !== NO_VERSIONS) yield { damage, emails };
  } catch (failure) {
    throw isConnectionLost(failure) || sqlStateOf(failure) !== ''
      ? openingFailure(failure, databaseName(pool))
      : failure;
  } finally {
    await pool.end();
  }
}

/** Returns whose each namespace is; nothing if the tables of accounts are missing, which the check tells. */
async function emailsIn(pool: Pool): Promise<ReadonlyMap<string, string>> {
  try {
    const rows = await rowsOf<{ namespace: string; name: string }>(
      pool,
      `SELECT namespace, email AS name FROM davgate.accounts
       UNION ALL SELECT namespace, 'team ' || name FROM davgate.teams`,
    );
    return new Map(rows.map(({ namespace, name }) => [namespace, name]));
  } catch (failure) {
    if (/^(42P01|42703|3F000)$/.test(sqlStateOf(failure))) return new Map();
    throw failure;
  }
}
