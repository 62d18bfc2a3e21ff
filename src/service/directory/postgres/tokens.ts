import type { Pool } from 'pg';
import type { Consent } from '../../accounts/grants.ts';
import { parseScopes } from '../../accounts/scopes.ts';
import { hashOfSecret } from '../../accounts/secrets.ts';
import {
  EXPIRED_KEPT_MS,
  expiryOf,
  type IssuedToken,
  type RefreshRequest,
  type Tokens,
} from '../../accounts/tokens.ts';
import { isConnectionLost } from '../../postgres/away.ts';
import { deleteUnlocked, findRow, type Queries } from '../../postgres/queries.ts';
import { SharedLookup } from '../../postgres/shared-lookup.ts';
import { inTransaction, retried } from '../../postgres/transaction.ts';
import { type AccountRow, accountOf } from './accounts.ts';
import { addGrant, addRefreshableGrant, issueToken } from './grants.ts';

interface BearerRow extends AccountRow {
  readonly app_key: string;
  readonly scopes: string;
  readonly app_scopes: string;
  readonly expires_ms: number | null;
  readonly token_hash: Buffer;
}

interface GrantRow {
  readonly grant_id: number;
  readonly scopes: string;
  readonly is_public: boolean;
}

const SELECT_BEARER = `
  SELECT accounts.*, teams.name AS team_name, grants.app_key, access_tokens.scopes, apps.scopes AS app_scopes,
    access_tokens.expires_ms, access_tokens.token_hash
  FROM davgate.access_tokens
    JOIN davgate.grants ON grants.grant_id = access_tokens.grant_id
    JOIN davgate.apps ON apps.app_key = grants.app_key
    JOIN davgate.accounts ON accounts.account_id = grants.account_id
    LEFT JOIN davgate.teams ON teams.namespace = accounts.team_namespace
  WHERE token_hash = ANY($1)`;

/** How long a lookup of tokens may take, in ms, before another connection is tried. */
const LOOKUP_MS_MAX = 3000;

/** Returns the tokens in a database. */
export function tokensIn(pool: Pool): Tokens {
  // Each call of the API asks for one.
  const bearers = new SharedLookup<string, BearerRow>(async (hashes) => {
    const values = [hashes.map((hash) => Buffer.from(hash, 'hex'))];
    const query = { text: SELECT_BEARER, values, query_timeout: LOOKUP_MS_MAX };
    const ask = () => pool.query<BearerRow>(query);
    // A lost connection must not fail all calls that share it.
    const { rows } = await ask().catch((failure: unknown) => {
      if (!isConnectionLost(failure)) throw failure;
      return ask();
    });
    return new Map(rows.map((row) => [row.token_hash.toString('hex'), row]));
  });
  return {
    async grantRefreshable(nowMs, consent) {
      return (await retried(() => addRefreshableGrant(pool, nowMs, consent))).refreshToken;
    },
    grantAccess: (nowMs, consent, expiresMs) =>
      inTransaction(pool, (on) => grantAccess(on, nowMs, consent, expiresMs)),
    refresh: (nowMs, request) => refresh(pool, nowMs, request),
    async isRefreshToken(token) {
      const found = await findRow(
        pool,
        'SELECT FROM davgate.grants WHERE refresh_hash = $1',
        hashOfSecret(token),
      );
      return found !== undefined;
    },
    async bearer(nowMs, token) {
      const row = await bearers.of(hashOfSecret(token).toString('hex'));
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
      const remove = `DELETE FROM davgate.grants
        WHERE grant_id = (SELECT grant_id FROM davgate.access_tokens WHERE token_hash = $1)`;
      await retried(() => pool.query(remove, [hashOfSecret(token)]));
    },
    forgetOld: (nowMs, limit) =>
      deleteUnlocked(
        pool,
        {
          table: 'access_tokens',
          key: 'token_hash',
          condition: 'expires_ms < $1',
          values: [nowMs - EXPIRED_KEPT_MS],
        },
        limit,
      ),
  };
}

async function grantAccess(
  on: Queries,
  nowMs: number,
  consent: Consent,
  expiresMs: number | undefined,
): Promise<string> {
  const token = await issueToken(on, await addGrant(on, nowMs, consent), consent.scopes, expiresMs);
  if (token === undefined) throw new Error('a consent that was just added is not there');
  return token;
}

/** Needs no transaction: a consent that is revoked between the two statements gets no token. */
async function refresh(
  on: Queries,
  nowMs: number,
  { refreshToken, appKey, hasSecret, scopes }: RefreshRequest,
): Promise<IssuedToken | 'secret' | 'scope' | undefined> {
  const grant = await findRow<GrantRow>(
    on,
    'SELECT grant_id, scopes, is_public FROM davgate.grants WHERE refresh_hash = $1 AND app_key = $2',
    hashOfSecret(refreshToken),
    appKey,
  );
  if (!grant) return undefined;
  if (!hasSecret && !grant.is_public) return 'secret';
  const granted = parseScopes(grant.scopes);
  const asked = scopes ? granted.filter((scope) => scopes.includes(scope)) : granted;
  if (scopes && new Set(scopes).size !== asked.length) return 'scope';
  const token = await issueToken(on, grant.grant_id, asked, expiryOf(nowMs));
  return token === undefined ? undefined : { token, scopes: asked };
}
