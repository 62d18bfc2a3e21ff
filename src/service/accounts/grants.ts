import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { type App, LINKED_USERS_MAX } from './apps.ts';
import { parseScopes, type Scope } from './scopes.ts';
import { hashOfSecret, newSecret } from './secrets.ts';

/** What an account allows an app. */
export interface Consent {
  readonly accountId: string;
  readonly appKey: string;
  readonly scopes: readonly Scope[];
  /** Given to an app that proved itself by PKCE and not by its secret: it refreshes without one too. */
  readonly isPublic?: boolean;
}

/** A consent on record, with what it was turned into. */
export interface Grant extends Consent {
  readonly number: number;
  /** `undefined`: made before the time was kept. */
  readonly createdMs: number | undefined;
  readonly hasRefreshToken: boolean;
  /** Of its access tokens; none where none is left. */
  readonly tokens: number;
  /** When the last of its access tokens ends; `undefined`: never, or there is none. */
  readonly expiresMs: number | undefined;
}

/** The consents that accounts gave to apps. An app is linked by those who have one with it. */
export interface Grants {
  add(nowMs: number, consent: Consent): number;
  /** Likewise, with a refresh token, which lives as long as the consent. */
  addRefreshable(nowMs: number, consent: Consent): { readonly number: number; readonly refreshToken: string };
  /** A new access token; without `expiresMs` it lives as long as the consent. */
  issue(grant: number, scopes: readonly Scope[], expiresMs?: number): string;
  /** Whether the account has allowed the app as much as this already; `isLasting`: and until it is revoked. */
  isGiven(consent: Consent, isLasting: boolean): boolean;
  /** So many accounts have linked the app, or are about to with a code that can still be exchanged. */
  linkedUsers(nowMs: number, appKey: string): number;
  /** Whether the app may have this account among its users: it is one already, or there is room for one more. */
  mayLink(nowMs: number, app: App, accountId: string): boolean;
  /** Newest first. */
  all(): readonly Grant[];
  /** With its tokens. Returns whether there was one. */
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

/** Accounts that have linked an app, or hold a code for it. */
const LINKED = `
  SELECT account_id FROM grants WHERE app_key = @app
  UNION SELECT account_id FROM codes WHERE app_key = @app AND expires_ms > @now AND grant_id IS NULL`;

export function grantsIn(database: SqliteDatabase): Grants {
  const insert = database.prepare<[string, string, string, Uint8Array | null, number, number]>(
    `INSERT INTO grants (account_id, app_key, scopes, refresh_hash, created_ms, is_public)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  // A consent that was only for four hours is kept until the next one: until then it is what links the user.
  const forgetSpent = database.prepare<[string, string]>(
    `DELETE FROM grants WHERE account_id = ? AND app_key = ? AND refresh_hash IS NULL
     AND NOT EXISTS (SELECT 1 FROM access_tokens WHERE access_tokens.grant_id = grants.grant_id)`,
  );
  const insertToken = database.prepare<[Uint8Array, number, string, number | null]>(
    'INSERT INTO access_tokens VALUES (?, ?, ?, ?)',
  );
  const ofBoth = database.prepare<[string, string], { scopes: string; has_refresh: number }>(
    'SELECT scopes, refresh_hash IS NOT NULL AS has_refresh FROM grants WHERE account_id = ? AND app_key = ?',
  );
  const countLinked = database
    .prepare<[{ app: string; now: number }], number>(`SELECT COUNT(*) FROM (${LINKED})`)
    .pluck();
  const isLinked = database
    .prepare<[{ app: string; now: number; account: string }], number>(
      `SELECT EXISTS (SELECT 1 FROM (${LINKED}) WHERE account_id = @account)`,
    )
    .pluck();
  const every = database.prepare<[], Row>(
    `SELECT grants.grant_id, account_id, app_key, grants.scopes, is_public, created_ms,
       refresh_hash IS NOT NULL AS has_refresh, COUNT(token_hash) AS tokens,
       COUNT(token_hash) > COUNT(expires_ms) AS endless, MAX(expires_ms) AS expires_ms
     FROM grants LEFT JOIN access_tokens USING (grant_id)
     GROUP BY grants.grant_id ORDER BY grants.grant_id DESC`,
  );
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
    isGiven({ accountId, appKey, scopes }, isLasting) {
      return ofBoth.all(accountId, appKey).some((row) => {
        const allowed = parseScopes(row.scopes);
        return (!isLasting || row.has_refresh === 1) && scopes.every((scope) => allowed.includes(scope));
      });
    },
    linkedUsers,
    mayLink(nowMs, { key, status }, accountId) {
      if (isLinked.get({ app: key, now: nowMs, account: accountId }) === 1) return true;
      return linkedUsers(nowMs, key) < LINKED_USERS_MAX[status];
    },
    all: () => every.all().map(grantOf),
    revoke: (number) => remove.run(number).changes > 0,
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
