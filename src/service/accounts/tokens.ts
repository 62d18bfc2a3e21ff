import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { Consent, Grants } from './grants.ts';
import { parseScopes, type Scope } from './scopes.ts';
import { hashOfSecret } from './secrets.ts';

/** Lifetime of an access token: four hours, as at the real service. */
export const ACCESS_TOKEN_LIFETIME_SECONDS = 14_400;

/** How long expired tokens are kept, in ms, so that a client that slept gets `expired` instead of `invalid`. */
const EXPIRED_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

interface Bearer {
  readonly accountId: string;
  readonly appKey: string;
  /** Scopes of the token. */
  readonly scopes: readonly Scope[];
  /** Scopes that its app may have now. */
  readonly appScopes: readonly Scope[];
  readonly expired: boolean;
}

export interface IssuedToken {
  readonly token: string;
  readonly scopes: readonly Scope[];
}

export interface RefreshRequest {
  readonly refreshToken: string;
  readonly appKey: string;
  /** Whether the app has authenticated with its secret. */
  readonly hasSecret: boolean;
  /** All granted scopes by default. */
  readonly scopes?: readonly string[];
}

/** The tokens that apps have for accounts. Only their hashes are stored. */
export interface Tokens {
  /** Adds a consent with a refresh token; both, and the access tokens it refreshes, are valid until revoked. */
  grantRefreshable(nowMs: number, consent: Consent): string;
  /** Adds a consent with one access token that ends at `expiresMs`, or is valid until revoked. */
  grantAccess(nowMs: number, consent: Consent, expiresMs?: number): string;
  /**
   * Issues an access token for a refresh token. `undefined`: the refresh token is not this app's, or has ended.
   * `'secret'`: the app's secret is needed. `'scope'`: more scopes were requested than granted.
   */
  refresh(nowMs: number, request: RefreshRequest): IssuedToken | 'secret' | 'scope' | undefined;
  isRefreshToken(token: string): boolean;
  /** Returns the owner of an access token; `undefined` for one that was never issued or is revoked. */
  bearer(nowMs: number, token: string): Bearer | undefined;
  /** Revokes the consent that this access token belongs to, with its refresh token and all its access tokens. */
  revoke(token: string): void;
  /** Removes up to `limit` access tokens that expired long ago. Returns how many. */
  forgetOld(nowMs: number, limit: number): number;
}

interface BearerRow {
  readonly account_id: string;
  readonly app_key: string;
  readonly scopes: string;
  readonly app_scopes: string;
  readonly expires_ms: number | null;
}

interface GrantRow {
  readonly grant_id: number;
  readonly scopes: string;
  readonly is_public: number;
}

export function tokensIn(database: SqliteDatabase, grants: Grants): Tokens {
  const selectGrant = database.prepare<[Uint8Array, string], GrantRow>(
    'SELECT grant_id, scopes, is_public FROM grants WHERE refresh_hash = ? AND app_key = ?',
  );
  const selectRefresh = database.prepare<[Uint8Array]>('SELECT 1 FROM grants WHERE refresh_hash = ?');
  const selectBearer = database.prepare<[Uint8Array], BearerRow>(
    `SELECT account_id, app_key, access_tokens.scopes, apps.scopes AS app_scopes, expires_ms
     FROM access_tokens JOIN grants USING (grant_id) JOIN apps USING (app_key) WHERE token_hash = ?`,
  );
  const forgetExpired = database.prepare<[before: number, limit: number]>(
    `DELETE FROM access_tokens WHERE token_hash IN (
       SELECT token_hash FROM access_tokens WHERE expires_ms < ? LIMIT ?)`,
  );
  const deleteGrant = database.prepare<[Uint8Array]>(
    'DELETE FROM grants WHERE grant_id = (SELECT grant_id FROM access_tokens WHERE token_hash = ?)',
  );

  return {
    grantRefreshable: (nowMs, consent) => grants.addRefreshable(nowMs, consent).refreshToken,
    grantAccess: database.transaction((nowMs: number, consent: Consent, expiresMs?: number) =>
      grants.issue(grants.add(nowMs, consent), consent.scopes, expiresMs),
    ).immediate,
    refresh(nowMs, { refreshToken, appKey, hasSecret, scopes }) {
      const grant = selectGrant.get(hashOfSecret(refreshToken), appKey);
      if (!grant) return undefined;
      if (!hasSecret && grant.is_public === 0) return 'secret';
      const granted = parseScopes(grant.scopes);
      const asked = scopes ? granted.filter((scope) => scopes.includes(scope)) : granted;
      if (scopes && new Set(scopes).size !== asked.length) return 'scope';
      return { token: grants.issue(grant.grant_id, asked, expiryOf(nowMs)), scopes: asked };
    },
    isRefreshToken: (token) => selectRefresh.get(hashOfSecret(token)) !== undefined,
    bearer(nowMs, token) {
      const row = selectBearer.get(hashOfSecret(token));
      if (!row) return undefined;
      return {
        accountId: row.account_id,
        appKey: row.app_key,
        scopes: parseScopes(row.scopes),
        appScopes: parseScopes(row.app_scopes),
        expired: row.expires_ms !== null && row.expires_ms <= nowMs,
      };
    },
    revoke(token) {
      deleteGrant.run(hashOfSecret(token));
    },
    forgetOld: (nowMs, limit) => forgetExpired.run(nowMs - EXPIRED_KEPT_MS, limit).changes,
  };
}

/** Returns when an access token that is issued now expires. */
export function expiryOf(nowMs: number): number {
  return nowMs + ACCESS_TOKEN_LIFETIME_SECONDS * 1000;
}
