import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { type App, LINKED_USERS_MAX } from '../../accounts/apps.ts';
import type { Consent, Grant, Grants } from '../../accounts/grants.ts';
import { parseScopes, type Scope } from '../../accounts/scopes.ts';
import { hashOfSecret, newSecret } from '../../accounts/secrets.ts';

/** The changes of consents that are parts of the transactions on codes and tokens. */
export interface GrantRows {
  add(nowMs: number, consent: Consent): number;
  /** Adds a consent with a refresh token, which is valid as long as the consent. */
  addRefreshable(nowMs: number, consent: Consent): { readonly number: number; readonly refreshToken: string };
  /** Issues an access token; without `expiresMs` it is valid as long as the consent. */
  issue(grant: number, scopes: readonly Scope[], expiresMs?: number): string;
  linkedUsers(nowMs: number, appKey: string): number;
  mayLink(nowMs: number, app: App, accountId: string): boolean;
  revoke(number: number): boolean;
}

interface Row {
  readonly grant_id: number;
  readonly account_id: string;
  readonly app_key: string;
  readonly scopes: string;
  readonly is_public: number;
  readonly created_ms: number | null;
  readonly has_refresh: number;
  readonly tokens: number;
  readonly endless: number;
  readonly expires_ms: number | null;
}

/** Accounts that have linked an app, or have a valid code for it. */
const LINKED = `
  SELECT account_id FROM grants WHERE app_key = @app
  UNION SELECT account_id FROM codes WHERE app_key = @app AND expires_ms > @now AND grant_id IS NULL`;

export function grantRowsIn(database: SqliteDatabase): GrantRows {
  const insert = database.prepare<[string, string, string, Uint8Array | null, number, number]>(
    `INSERT INTO grants (account_id, app_key, scopes, refresh_hash, created_ms, is_public)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  // A consent for four hours is kept until the next one, because it links the user until then.
  const forgetSpent = database.prepare<[string, string]>(
    `DELETE FROM grants WHERE account_id = ? AND app_key = ? AND refresh_hash IS NULL
     AND NOT EXISTS (SELECT 1 FROM access_tokens WHERE access_tokens.grant_id = grants.grant_id)`,
  );
  const insertToken = database.prepare<[Uint8Array, number, string, number | null]>(
    'INSERT INTO access_tokens VALUES (?, ?, ?, ?)',
  );
  const countLinked = database
    .prepare<[{ app: string; now: number }], number>(`SELECT COUNT(*) FROM (${LINKED})`)
    .pluck();
  const isLinked = database
    .prepare<[{ app: string; now: number; account: string }], number>(
      `SELECT EXISTS (SELECT 1 FROM (${LINKED}) WHERE account_id = @account)`,
    )
    .pluck();
  const remove = database.prepare<[number]>('DELETE FROM grants WHERE grant_id = ?');

  const add = database.transaction((nowMs: number, consent: Consent, refreshHash: Uint8Array | null) => {
    const { accountId, appKey, scopes, isPublic = false } = consent;
    forgetSpent.run(accountId, appKey);
    const words = scopes.join(' ');
    return Number(insert.run(accountId, appKey, words, refreshHash, nowMs, isPublic ? 1 : 0).lastInsertRowid);
  });

  const linkedUsers = (nowMs: number, appKey: string) => countLinked.get({ app: appKey, now: nowMs }) ?? 0;

  return {
    add: (nowMs, consent) => add(nowMs, consent, null),
    addRefreshable(nowMs, consent) {
      const refreshToken = newSecret();
      return { number: add(nowMs, consent, hashOfSecret(refreshToken)), refreshToken };
    },
    issue(grant, scopes, expiresMs) {
      const token = `sl.${newSecret()}`;
      insertToken.run(hashOfSecret(token), grant, scopes.join(' '), expiresMs ?? null);
      return token;
    },
    linkedUsers,
    mayLink(nowMs, { key, status }, accountId) {
      if (isLinked.get({ app: key, now: nowMs, account: accountId }) === 1) return true;
      return linkedUsers(nowMs, key) < LINKED_USERS_MAX[status];
    },
    revoke: (number) => remove.run(number).changes > 0,
  };
}

/** Returns the consents in a database. */
export function grantsIn(database: SqliteDatabase, rows: GrantRows): Grants {
  const ofBoth = database.prepare<[string, string], { scopes: string; has_refresh: number }>(
    'SELECT scopes, refresh_hash IS NOT NULL AS has_refresh FROM grants WHERE account_id = ? AND app_key = ?',
  );
  const every = database.prepare<[], Row>(
    `SELECT grants.grant_id, account_id, app_key, grants.scopes, is_public, created_ms,
       refresh_hash IS NOT NULL AS has_refresh, COUNT(token_hash) AS tokens,
       COUNT(token_hash) > COUNT(expires_ms) AS endless, MAX(expires_ms) AS expires_ms
     FROM grants LEFT JOIN access_tokens USING (grant_id)
     GROUP BY grants.grant_id ORDER BY grants.grant_id DESC`,
  );

  return {
    async isGiven({ accountId, appKey, scopes }, isLasting) {
      return ofBoth.all(accountId, appKey).some((row) => {
        const allowed = parseScopes(row.scopes);
        return (!isLasting || row.has_refresh === 1) && scopes.every((scope) => allowed.includes(scope));
      });
    },
    linkedUsers: async (nowMs, appKey) => rows.linkedUsers(nowMs, appKey),
    mayLink: async (nowMs, app, accountId) => rows.mayLink(nowMs, app, accountId),
    all: async () => every.all().map(grantOf),
    revoke: async (number) => rows.revoke(number),
  };
}

function grantOf(row: Row): Grant {
  return {
    number: row.grant_id,
    accountId: row.account_id,
    appKey: row.app_key,
    scopes: parseScopes(row.scopes),
    isPublic: row.is_public === 1,
    createdMs: row.created_ms ?? undefined,
    hasRefreshToken: row.has_refresh === 1,
    tokens: row.tokens,
    expiresMs: row.endless === 1 ? undefined : (row.expires_ms ?? undefined),
  };
}
