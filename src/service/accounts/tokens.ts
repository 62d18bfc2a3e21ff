import { randomBytes } from 'node:crypto';
import type { Database } from 'better-sqlite3';
import { parseScopes, type Scope } from './scopes.ts';
import { hashOfSecret, isSecret, newSecret } from './secrets.ts';

/** The real service's four hours. */
export const ACCESS_TOKEN_LIFETIME_SECONDS = 14_400;

/** Old tokens are kept so long that a client that slept still hears `expired` rather than `invalid`. */
const EXPIRED_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

interface Bearer {
  readonly accountId: string;
  readonly appKey: string;
  readonly scopes: readonly Scope[];
  readonly expired: boolean;
}

interface IssuedToken {
  readonly token: string;
  readonly scopes: readonly Scope[];
}

/** Apps, the consents that accounts gave them, and their tokens; of each secret only a hash is kept. */
export interface Tokens {
  addApp(): { readonly appKey: string; readonly appSecret: string };
  isApp(appKey: string, appSecret: string): boolean;
  /** A consent with a refresh token; it and what it refreshes live until revoked. */
  grantRefreshable(accountId: string, appKey: string, scopes: readonly Scope[]): string;
  /** A consent with one access token that ends at `expiresMs`, or lives until revoked. */
  grantAccess(accountId: string, appKey: string, scopes: readonly Scope[], expiresMs?: number): string;
  /**
   * A new access token for a refresh token. `undefined`: it is not this app's, or not alive any more.
   * `'scope'`: more was asked for than was granted.
   */
  refresh(
    nowMs: number,
    request: { readonly refreshToken: string; readonly appKey: string; readonly scopes?: readonly string[] },
  ): IssuedToken | 'scope' | undefined;
  isRefreshToken(token: string): boolean;
  /** Who sent this access token. `undefined`: no one; it was never issued, or was revoked. */
  bearer(nowMs: number, token: string): Bearer | undefined;
  /** Ends the consent this access token came from: it, its refresh token and their siblings. */
  revoke(token: string): void;
}

interface BearerRow {
  readonly account_id: string;
  readonly app_key: string;
  readonly scopes: string;
  readonly expires_ms: number | null;
}

interface GrantRow {
  readonly grant_id: number;
  readonly scopes: string;
}

export function tokensIn(database: Database): Tokens {
  const insertApp = database.prepare<[string, Uint8Array]>('INSERT INTO apps VALUES (?, ?)');
  const selectApp = database.prepare<[string], { secret_hash: Buffer }>(
    'SELECT secret_hash FROM apps WHERE app_key = ?',
  );
  const insertGrant = database.prepare<[string, string, string, Uint8Array | null]>(
    'INSERT INTO grants (account_id, app_key, scopes, refresh_hash) VALUES (?, ?, ?, ?)',
  );
  const selectGrant = database.prepare<[Uint8Array, string], GrantRow>(
    'SELECT grant_id, scopes FROM grants WHERE refresh_hash = ? AND app_key = ?',
  );
  const selectRefresh = database.prepare<[Uint8Array]>('SELECT 1 FROM grants WHERE refresh_hash = ?');
  const insertToken = database.prepare<[Uint8Array, number | bigint, string, number | null]>(
    'INSERT INTO access_tokens VALUES (?, ?, ?, ?)',
  );
  const selectBearer = database.prepare<[Uint8Array], BearerRow>(
    `SELECT account_id, app_key, access_tokens.scopes, expires_ms
     FROM access_tokens JOIN grants USING (grant_id) WHERE token_hash = ?`,
  );
  const forgetExpired = database.prepare<[number]>('DELETE FROM access_tokens WHERE expires_ms < ?');
  const deleteGrant = database.prepare<[Uint8Array]>(
    'DELETE FROM grants WHERE grant_id = (SELECT grant_id FROM access_tokens WHERE token_hash = ?)',
  );

  function issue(grant: number | bigint, scopes: string, expiresMs: number | null): string {
    const token = `sl.${newSecret()}`;
    insertToken.run(hashOfSecret(token), grant, scopes, expiresMs);
    return token;
  }

  const grantAccess = database.transaction(
    (accountId: string, appKey: string, scopes: readonly Scope[], expiresMs?: number) => {
      const words = scopes.join(' ');
      const { lastInsertRowid } = insertGrant.run(accountId, appKey, words, null);
      return issue(lastInsertRowid, words, expiresMs ?? null);
    },
  );

  return {
    addApp() {
      const app = { appKey: randomBytes(8).toString('hex').slice(1), appSecret: newSecret() };
      insertApp.run(app.appKey, hashOfSecret(app.appSecret));
      return app;
    },
    isApp(appKey, appSecret) {
      const row = selectApp.get(appKey);
      return row !== undefined && isSecret(appSecret, row.secret_hash);
    },
    grantRefreshable(accountId, appKey, scopes) {
      const token = newSecret();
      insertGrant.run(accountId, appKey, scopes.join(' '), hashOfSecret(token));
      return token;
    },
    grantAccess,
    refresh(nowMs, { refreshToken, appKey, scopes }) {
      const grant = selectGrant.get(hashOfSecret(refreshToken), appKey);
      if (!grant) return undefined;
      const granted = parseScopes(grant.scopes);
      const asked = scopes ? granted.filter((scope) => scopes.includes(scope)) : granted;
      if (scopes && new Set(scopes).size !== asked.length) return 'scope';
      forgetExpired.run(nowMs - EXPIRED_KEPT_MS);
      const expiresMs = nowMs + ACCESS_TOKEN_LIFETIME_SECONDS * 1000;
      return { token: issue(grant.grant_id, asked.join(' '), expiresMs), scopes: asked };
    },
    isRefreshToken: (token) => selectRefresh.get(hashOfSecret(token)) !== undefined,
    bearer(nowMs, token) {
      const row = selectBearer.get(hashOfSecret(token));
      if (!row) return undefined;
      const expired = row.expires_ms !== null && row.expires_ms <= nowMs;
      return { accountId: row.account_id, appKey: row.app_key, scopes: parseScopes(row.scopes), expired };
    },
    revoke(token) {
      deleteGrant.run(hashOfSecret(token));
    },
  };
}
