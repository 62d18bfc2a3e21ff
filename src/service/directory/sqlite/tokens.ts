import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { Consent } from '../../accounts/grants.ts';
import { parseScopes } from '../../accounts/scopes.ts';
import { hashOfSecret } from '../../accounts/secrets.ts';
import { EXPIRED_KEPT_MS, expiryOf, type Tokens } from '../../accounts/tokens.ts';
import { accountOf, type FoundRow } from './accounts.ts';
import type { GrantRows } from './grants.ts';

interface BearerRow extends FoundRow {
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

/** Returns the tokens in a database. */
export function tokensIn(database: SqliteDatabase, grants: GrantRows): Tokens {
  const selectGrant = database.prepare<[Uint8Array, string], GrantRow>(
    'SELECT grant_id, scopes, is_public FROM grants WHERE refresh_hash = ? AND app_key = ?',
  );
  const selectRefresh = database.prepare<[Uint8Array]>('SELECT 1 FROM grants WHERE refresh_hash = ?');
  const selectBearer = database.prepare<[Uint8Array], BearerRow>(
    `SELECT accounts.*, teams.name AS team_name, app_key, access_tokens.scopes, apps.scopes AS app_scopes, expires_ms
     FROM access_tokens JOIN grants USING (grant_id) JOIN apps USING (app_key)
       JOIN accounts ON accounts.account_id = grants.account_id
       LEFT JOIN teams ON teams.namespace = accounts.team_namespace
     WHERE token_hash = ?`,
  );
  const forgetExpired = database.prepare<[before: number, limit: number]>(
    `DELETE FROM access_tokens WHERE token_hash IN (
       SELECT token_hash FROM access_tokens WHERE expires_ms < ? LIMIT ?)`,
  );
  const deleteGrant = database.prepare<[Uint8Array]>(
    'DELETE FROM grants WHERE grant_id = (SELECT grant_id FROM access_tokens WHERE token_hash = ?)',
  );

  const grantAccess = database.transaction((nowMs: number, consent: Consent, expiresMs?: number) =>
    grants.issue(grants.add(nowMs, consent), consent.scopes, expiresMs),
  );

  return {
    grantRefreshable: async (nowMs, consent) => grants.addRefreshable(nowMs, consent).refreshToken,
    grantAccess: async (nowMs, consent, expiresMs) => grantAccess.immediate(nowMs, consent, expiresMs),
    async refresh(nowMs, { refreshToken, appKey, hasSecret, scopes }) {
      const grant = selectGrant.get(hashOfSecret(refreshToken), appKey);
      if (!grant) return undefined;
      if (!hasSecret && grant.is_public === 0) return 'secret';
      const granted = parseScopes(grant.scopes);
      const asked = scopes ? granted.filter((scope) => scopes.includes(scope)) : granted;
      if (scopes && new Set(scopes).size !== asked.length) return 'scope';
      return { token: grants.issue(grant.grant_id, asked, expiryOf(nowMs)), scopes: asked };
    },
    isRefreshToken: async (token) => selectRefresh.get(hashOfSecret(token)) !== undefined,
    async bearer(nowMs, token) {
      const row = selectBearer.get(hashOfSecret(token));
      if (!row) return undefined;
      return {
        account: accountOf(row),
        appKey: row.app_key,
        scopes: parseScopes(row.scopes),
        appScopes: parseScopes(row.app_scopes),
        expired: row.expires_ms !== null && row.expires_ms <= nowMs,
      };
    },
    async revoke(token) {
      deleteGrant.run(hashOfSecret(token));
    },
    forgetOld: async (nowMs, limit) => forgetExpired.run(nowMs - EXPIRED_KEPT_MS, limit).changes,
  };
}
