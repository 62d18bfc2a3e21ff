import { randomBytes } from 'node:crypto';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { parseScopes, type Scope } from './scopes.ts';
import { hashOfSecret, isSecret, newSecret } from './secrets.ts';

/**
 * Maximum number of linked users by status: in development, with production applied for, in production. The
 * specification names a freeze at 50, a maximum of 500, and no limit in production.
 */
export const LINKED_USERS_MAX = {
  development: 50,
  applied: 500,
  production: Number.POSITIVE_INFINITY,
} as const;

export type AppStatus = keyof typeof LINKED_USERS_MAX;

export interface App {
  /** Public identifier: `client_id` in OAuth. */
  readonly key: string;
  /** Name that people see. */
  readonly name: string;
  readonly status: AppStatus;
  /** Scopes that it may be granted. */
  readonly scopes: readonly Scope[];
  /** Addresses that may receive its authorization codes, compared literally. */
  readonly redirectUris: readonly string[];
}

export type NewApp = Omit<App, 'key'>;

/** Apps that may ask accounts for consent. Only hashes of their secrets are stored. */
export interface Apps {
  add(app: NewApp): { readonly app: App; readonly secret: string };
  withKey(key: string): App | undefined;
  /** Returns all apps, sorted by name. */
  all(): readonly App[];
  /** Returns whether this is the app's secret. */
  isSecret(key: string, secret: string): boolean;
  change(key: string, change: Partial<NewApp>): void;
  /** Replaces the secret. The old one is invalid at once. */
  renewSecret(key: string): string;
  /** Removes an app with all its consents and their tokens. */
  remove(key: string): void;
}

interface Row {
  readonly app_key: string;
  readonly name: string;
  readonly status: string;
  readonly scopes: string;
  /** A JSON list. */
  readonly redirect_uris: string;
}

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

  function withKey(key: string): App | undefined {
    const row = byKey.get(key);
    return row && appOf(row);
  }

  return {
    add(app) {
      const added = { ...app, key: randomBytes(8).toString('hex').slice(1) };
      const secret = newSecret();
      insert.run({ ...rowOf(added), secret_hash: hashOfSecret(secret) });
      return { app: added, secret };
    },
    withKey,
    all: () => every.all().map(appOf),
    isSecret(key, secret) {
      const row = selectSecret.get(key);
      return row !== undefined && isSecret(secret, row.secret_hash);
    },
    change: database.transaction((key: string, change: Partial<NewApp>) => {
      const app = withKey(key);
      if (app) update.run(rowOf({ ...app, ...change }));
    }).immediate,
    renewSecret(key) {
      const secret = newSecret();
      updateSecret.run(hashOfSecret(secret), key);
      return secret;
    },
    remove: database.transaction((key: string) => {
      for (const removal of removals) removal.run(key);
    }).immediate,
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

/** Maximum length of a redirect URI. */
const URI_MAX_CHARACTERS = 2000;

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** A private-use scheme has a dot or a hyphen, which no scheme has that browsers act on themselves (RFC 8252 §7.1). */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+]*[.-][a-z0-9+.-]*:$/;

/**
 * Returns the reason why codes must not be sent to this address, as the end of a sentence, or `undefined`. Allowed are
 * https, the user's own machine, and programs with a scheme of their own.
 */
export function redirectUriProblem(uri: string): string | undefined {
  if (uri.length > URI_MAX_CHARACTERS) return `is longer than ${URI_MAX_CHARACTERS} characters`;
  // The address becomes a header value unchanged.
  if (!/^[!-~]+$/.test(uri) || !URL.canParse(uri)) return 'is not an absolute URL';
  if (uri.includes('#')) return 'has a fragment (#…), to which codes cannot be sent';
  const { protocol, hostname, username, password } = new URL(uri);
  if (username !== '' || password !== '') return 'contains a user name';
  if (protocol === 'https:' || PRIVATE_SCHEME.test(protocol)) return undefined;
  if (protocol === 'http:' && LOOPBACK.has(hostname)) return undefined;
  return 'must begin with https://, with http://localhost or http://127.0.0.1, or with a scheme of the app like com.example.app:';
}
