import type { Pool } from 'pg';
import { type App, LINKED_USERS_MAX } from '../../accounts/apps.ts';
import type { Consent, Grant, Grants } from '../../accounts/grants.ts';
import { parseScopes, type Scope } from '../../accounts/scopes.ts';
import { hashOfSecret, newSecret } from '../../accounts/secrets.ts';
import { changesOf, findRow, type Queries, rowsOf } from '../../postgres/queries.ts';
import { retried } from '../../postgres/transaction.ts';

interface Row {
  readonly grant_id: number;
  readonly account_id: string;
  readonly app_key: string;
  readonly scopes: string;
  readonly is_public: boolean;
  readonly created_ms: number;
  readonly has_refresh: boolean;
  readonly tokens: number;
  readonly is_endless: boolean;
  readonly expires_ms: number | null;
}

/** Returns the consents in a database. */
export function grantsIn(pool: Pool): Grants {
  return {
    async isGiven({ accountId, appKey, scopes }, isLasting) {
      const rows = await rowsOf<{ scopes: string; has_refresh: boolean }>(
        pool,
        `SELECT scopes, refresh_hash IS NOT NULL AS has_refresh FROM davgate.grants
         WHERE account_id = $1 AND app_key = $2`,
        accountId,
        appKey,
      );
      return rows.some((row) => {
        const allowed = parseScopes(row.scopes);
        return (!isLasting || row.has_refresh) && scopes.every((scope) => allowed.includes(scope));
      });
    },
    linkedUsers: async (nowMs, appKey) => (await linked(pool, nowMs, appKey)).users,
    mayLink: (nowMs, app, accountId) => mayLink(pool, nowMs, app, accountId),
    async all() {
      const rows = await rowsOf<Row>(
        pool,
        `SELECT grants.grant_id, account_id, app_key, grants.scopes, is_public, created_ms,
           refresh_hash IS NOT NULL AS has_refresh, count(token_hash) AS tokens,
           count(token_hash) > count(expires_ms) AS is_endless, max(expires_ms) AS expires_ms
         FROM davgate.grants LEFT JOIN davgate.access_tokens USING (grant_id)
         GROUP BY grants.grant_id ORDER BY grants.grant_id DESC`,
      );
      return rows.map(grantOf);
    },
    revoke: (number) => retried(() => revoke(pool, number)),
  };
}

/** Adds a consent. Returns its number. */
export async function addGrant(
  on: Queries,
  nowMs: number,
  { accountId, appKey, scopes, isPublic = false }: Consent,
  refreshHash: Uint8Array | null = null,
): Promise<number> {
  // A consent for four hours is kept until the next one, because it links the user until then.
  const [row] = await rowsOf<{ grant_id: number }>(
    on,
    `WITH spent AS (
       DELETE FROM davgate.grants WHERE account_id = $1 AND app_key = $2 AND refresh_hash IS NULL
         AND NOT EXISTS (SELECT FROM davgate.access_tokens WHERE access_tokens.grant_id = grants.grant_id))
     INSERT INTO davgate.grants (account_id, app_key, scopes, refresh_hash, created_ms, is_public)
     VALUES ($1, $2, $3, $4, $5, $6) RETURNING grant_id`,
    accountId,
    appKey,
    scopes.join(' '),
    refreshHash,
    nowMs,
    isPublic,
  );
  if (!row) throw new Error('PostgreSQL answered an INSERT … RETURNING with no row');
  return row.grant_id;
}

/** Adds a consent with a refresh token, which is valid as long as the consent. */
export async function addRefreshableGrant(
  on: Queries,
  nowMs: number,
  consent: Consent,
): Promise<{ readonly number: number; readonly refreshToken: string }> {
  const refreshToken = newSecret();
  return { number: await addGrant(on, nowMs, consent, hashOfSecret(refreshToken)), refreshToken };
}

/**
 * Issues an access token; without `expiresMs` it is valid as long as the consent. Returns `undefined` for a consent that
 * is revoked, or that another process is revoking.
 */
export async function issueToken(
  on: Queries,
  grant: number,
  scopes: readonly Scope[],
  expiresMs: number | null = null,
): Promise<string | undefined> {
  const token = `sl.${newSecret()}`;
  const added = await changesOf(
    on,
    `INSERT INTO davgate.access_tokens (token_hash, grant_id, scopes, expires_ms)
     SELECT $2::bytea, grant_id, $3::text, $4::bigint FROM davgate.grants WHERE grant_id = $1 FOR KEY SHARE`,
    grant,
    hashOfSecret(token),
    scopes.join(' '),
    expiresMs,
  );
  return added === 1 ? token : undefined;
}

/** Revokes a consent and its tokens. Returns whether it existed. */
export async function revoke(on: Queries, grant: number): Promise<boolean> {
  return (await changesOf(on, 'DELETE FROM davgate.grants WHERE grant_id = $1', grant)) > 0;
}

/** Returns whether the account is a user of the app or may become one. */
export async function mayLink(
  on: Queries,
  nowMs: number,
  { key, status }: App,
  accountId: string,
): Promise<boolean> {
  const { users, isUser } = await linked(on, nowMs, key, accountId);
  return isUser || users < LINKED_USERS_MAX[status];
}

/** Returns how many accounts have linked an app or have a valid code for it, and whether one of them is `accountId`. */
async function linked(
  on: Queries,
  nowMs: number,
  appKey: string,
  accountId: string | null = null,
): Promise<{ readonly users: number; readonly isUser: boolean }> {
  const row = await findRow<{ users: number; isUser: boolean }>(
    on,
    `SELECT count(*) AS users, coalesce(bool_or(account_id = $3::text), false) AS "isUser" FROM (
       SELECT account_id FROM davgate.grants WHERE app_key = $1
       UNION
       SELECT account_id FROM davgate.codes WHERE app_key = $1 AND expires_ms > $2 AND grant_id IS NULL) AS linked`,
    appKey,
    nowMs,
    accountId,
  );
  return row ?? { users: 0, isUser: false };
}

function grantOf(row: Row): Grant {
  return {
    number: row.grant_id,
    accountId: row.account_id,
    appKey: row.app_key,
    scopes: parseScopes(row.scopes),
    isPublic: row.is_public,
    createdMs: row.created_ms,
    hasRefreshToken: row.has_refresh,
    tokens: row.tokens,
    expiresMs: row.is_endless ? undefined : (row.expires_ms ?? undefined),
  };
}
