import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { type App, type AppStatus, type Apps, type NewApp, newAppKey } from '../../accounts/apps.ts';
import { parseScopes } from '../../accounts/scopes.ts';
import { hashOfSecret, isSecret, newSecret } from '../../accounts/secrets.ts';

interface Row {
  readonly app_key: string;
  readonly name: string;
  readonly status: string;
  readonly scopes: string;
  /** A JSON list. */
  readonly redirect_uris: string;
}

/** Returns the apps in a database. */
export function appsIn(database: SqliteDatabase): Apps {
  const byKey = database.prepare<[string], Row>('SELECT * FROM apps WHERE app_key = ?');
  const every = database.prepare<[], Row>('SELECT * FROM apps ORDER BY name, app_key');
  const selectSecret = database.prepare<[string], { secret_hash: Buffer }>(
    'SELECT secret_hash FROM apps WHERE app_key = ?',
  );
  const insert = database.prepare<[Row & { secret_hash: Buffer }]>(
    `INSERT INTO apps (app_key, secret_hash, name, status, scopes, redirect_uris)
     VALUES (@app_key, @secret_hash, @name, @status, @scopes, @redirect_uris)`,
  );
  const update = database.prepare<[Row]>(
    `UPDATE apps SET name = @name, status = @status, scopes = @scopes, redirect_uris = @redirect_uris
     WHERE app_key = @app_key`,
  );
  const updateSecret = database.prepare<[Buffer, string]>(
    'UPDATE apps SET secret_hash = ? WHERE app_key = ?',
  );
  const removals = ['codes', 'grants', 'apps'].map((table) =>
    database.prepare<[string]>(`DELETE FROM ${table} WHERE app_key = ?`),
  );

  const change = database.transaction((key: string, fields: Partial<NewApp>) => {
    const row = byKey.get(key);
    if (row) update.run(rowOf({ ...appOf(row), ...fields }));
  });
  const remove = database.transaction((key: string) => {
    for (const removal of removals) removal.run(key);
  });

  return {
    async add(app) {
      const added = { ...app, key: newAppKey() };
      const secret = newSecret();
      insert.run({ ...rowOf(added), secret_hash: hashOfSecret(secret) });
      return { app: added, secret };
    },
    async withKey(key) {
      const row = byKey.get(key);
      return row && appOf(row);
    },
    all: async () => every.all().map(appOf),
    async isSecret(key, secret) {
      const row = selectSecret.get(key);
      return row !== undefined && isSecret(secret, row.secret_hash);
    },
    async change(key, fields) {
      change.immediate(key, fields);
    },
    async renewSecret(key) {
      const secret = newSecret();
      updateSecret.run(hashOfSecret(secret), key);
      return secret;
    },
    async remove(key) {
      remove.immediate(key);
    },
  };
}

function appOf(row: Row): App {
  return {
    key: row.app_key,
    name: row.name,
    // Only written by `rowOf`, and by the schema's own default.
    status: row.status as AppStatus,
    scopes: parseScopes(row.scopes),
    redirectUris: JSON.parse(row.redirect_uris) as string[],
  };
}

function rowOf(app: App): Row {
  return {
    app_key: app.key,
    name: app.name,
    status: app.status,
    scopes: app.scopes.join(' '),
    redirect_uris: JSON.stringify(app.redirectUris),
  };
}
