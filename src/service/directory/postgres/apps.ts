import type { Pool } from 'pg';
import { type App, type AppStatus, type Apps, type NewApp, newAppKey } from '../../accounts/apps.ts';
import { parseScopes } from '../../accounts/scopes.ts';
import { hashOfSecret, isSecret, newSecret } from '../../accounts/secrets.ts';
import { findRow, type Queries, rowsOf } from '../../postgres/queries.ts';
import { inTransaction } from '../../postgres/transaction.ts';

interface Row {
  readonly app_key: string;
  readonly name: string;
  readonly status: AppStatus;
  readonly scopes: string;
  /** A JSON list. */
  readonly redirect_uris: string;
}

const SELECT = 'SELECT app_key, name, status, scopes, redirect_uris FROM davgate.apps';

/** Returns the apps in a database. */
export function appsIn(pool: Pool): Apps {
  return {
    async add(app) {
      const added = { ...app, key: newAppKey() };
      const secret = newSecret();
      await pool.query(
        `INSERT INTO davgate.apps (app_key, name, status, scopes, redirect_uris, secret_hash)
         VALUES ($1, $2, $3, $4, $5, $6)`,
        [...columnsOf(added), hashOfSecret(secret)],
      );
      return { app: added, secret };
    },
    async withKey(key) {
      const row = await findRow<Row>(pool, `${SELECT} WHERE app_key = $1`, key);
      return row && appOf(row);
    },
    all: async () => (await rowsOf<Row>(pool, `${SELECT} ORDER BY name, app_key`)).map(appOf),
    async isSecret(key, secret) {
      const row = await findRow<{ secret_hash: Buffer }>(
        pool,
        'SELECT secret_hash FROM davgate.apps WHERE app_key = $1',
        key,
      );
      return row !== undefined && isSecret(secret, row.secret_hash);
    },
    change: (key, fields) => inTransaction(pool, (on) => change(on, key, fields)),
    async renewSecret(key) {
      const secret = newSecret();
      await pool.query('UPDATE davgate.apps SET secret_hash = $2 WHERE app_key = $1', [
        key,
        hashOfSecret(secret),
      ]);
      return secret;
    },
    remove: (key) => inTransaction(pool, (on) => remove(on, key)),
  };
}

async function change(on: Queries, key: string, fields: Partial<NewApp>): Promise<void> {
  const row = await findRow<Row>(on, `${SELECT} WHERE app_key = $1 FOR NO KEY UPDATE`, key);
  if (!row) return;
  await on.query(
    `UPDATE davgate.apps SET name = $2, status = $3, scopes = $4, redirect_uris = $5 WHERE app_key = $1`,
    columnsOf({ ...appOf(row), ...fields }),
  );
}

/** Removes an app, locked first, so that no other process adds consents to it. */
async function remove(on: Queries, key: string): Promise<void> {
  await on.query('SELECT FROM davgate.apps WHERE app_key = $1 FOR UPDATE', [key]);
  for (const table of ['codes', 'grants', 'apps'])
    await on.query(`DELETE FROM davgate.${table} WHERE app_key = $1`, [key]);
}

function appOf(row: Row): App {
  return {
    key: row.app_key,
    name: row.name,
    status: row.status,
    scopes: parseScopes(row.scopes),
    // A cast, because only `columnsOf` writes this column.
    redirectUris: JSON.parse(row.redirect_uris) as string[],
  };
}

function columnsOf({ key, name, status, scopes, redirectUris }: App): readonly unknown[] {
  return [key, name, status, scopes.join(' '), JSON.stringify(redirectUris)];
}
