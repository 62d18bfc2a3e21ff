import type { Pool } from 'pg';
import { type App, LINKED_USERS_MAX } from '../../accounts/apps.ts';
import {
  CODE_LIFETIME_MS,
  type CodeRequest,
  type Codes,
  type Exchange,
  type Exchanged,
  exchangeProblem,
  isByClient,
  type StoredCode,
  USED_KEPT_MS,
} from '../../accounts/codes.ts';
import { parseScopes } from '../../accounts/scopes.ts';
import { hashOfSecret, newSecret } from '../../accounts/secrets.ts';
import { expiryOf } from '../../accounts/tokens.ts';
import { deleteUnlocked, findRow, type Queries } from '../../postgres/queries.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { addGrant, addRefreshableGrant, issueToken, mayLink, revoke } from './grants.ts';

interface Row {
  readonly code_hash: Buffer;
  readonly account_id: string;
  readonly app_key: string;
  readonly scopes: string;
  readonly redirect_uri: string | null;
  readonly challenge: string | null;
  readonly challenge_method: 'S256' | 'plain' | null;
  readonly is_offline: boolean;
  readonly expires_ms: number;
  readonly grant_id: number | null;
  /** The account's home. */
  readonly namespace: string;
}

/** Returns the codes in a database. */
export function codesIn(pool: Pool): Codes {
  return {
    issue: (nowMs, app, request) => inTransaction(pool, (on) => issue(on, nowMs, app, request)),
    exchange: (nowMs, request) => inTransaction(pool, (on) => exchange(on, nowMs, request)),
  };
}

async function issue(on: Queries, nowMs: number, app: App, request: CodeRequest): Promise<string | 'full'> {
  if (Number.isFinite(LINKED_USERS_MAX[app.status])) {
    // The lock lets no other process count the app's users until this one is among them.
    await on.query('SELECT FROM davgate.apps WHERE app_key = $1 FOR NO KEY UPDATE', [app.key]);
    if (!(await mayLink(on, nowMs, app, request.accountId))) return 'full';
  }
  await deleteUnlocked(on, {
    table: 'codes',
    key: 'code_hash',
    condition: 'expires_ms < $1',
    values: [nowMs - USED_KEPT_MS],
  });
  const code = newSecret();
  await on.query(
    `INSERT INTO davgate.codes (code_hash, account_id, app_key, scopes, redirect_uri, challenge,
       challenge_method, is_offline, expires_ms)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [
      hashOfSecret(code),
      request.accountId,
      request.appKey,
      request.scopes.join(' '),
      request.redirectUri ?? null,
      request.challenge?.value ?? null,
      request.challenge?.method ?? null,
      request.isOffline,
      nowMs + CODE_LIFETIME_MS,
    ],
  );
  return code;
}

async function exchange(
  on: Queries,
  nowMs: number,
  request: Exchange,
): Promise<Exchanged | 'code' | 'redirect_uri' | 'verifier'> {
  const row = await findRow<Row>(
    on,
    `SELECT codes.*, accounts.namespace
     FROM davgate.codes JOIN davgate.accounts ON accounts.account_id = codes.account_id
     WHERE code_hash = $1 AND app_key = $2 FOR NO KEY UPDATE OF codes`,
    hashOfSecret(request.code),
    request.appKey,
  );
  if (!row) return 'code';
  if (row.grant_id !== null) {
    if (isByClient(codeOf(row), request)) await revoke(on, row.grant_id);
    return 'code';
  }
  return (
    exchangeProblem(codeOf(row), request, nowMs) ?? (await turnedInto(on, nowMs, row, !request.hasSecret))
  );
}

async function turnedInto(on: Queries, nowMs: number, row: Row, isPublic: boolean): Promise<Exchanged> {
  const { account_id: accountId, namespace, is_offline: isOffline } = row;
  const scopes = parseScopes(row.scopes);
  const consent = { accountId, appKey: row.app_key, scopes, isPublic };
  const { number, refreshToken = undefined } = isOffline
    ? await addRefreshableGrant(on, nowMs, consent)
    : { number: await addGrant(on, nowMs, consent) };
  await on.query('UPDATE davgate.codes SET grant_id = $2 WHERE code_hash = $1', [row.code_hash, number]);
  const token = await issueToken(on, number, scopes, expiryOf(nowMs));
  if (token === undefined) throw new Error('a consent that was just added is not there');
  return { accountId, namespace, scopes, token, ...(refreshToken !== undefined && { refreshToken }) };
}

function codeOf({
  redirect_uri: redirectUri,
  challenge: value,
  challenge_method: method,
  expires_ms: expiresMs,
}: Row): StoredCode {
  const challenge = value === null ? null : { method: method ?? 'plain', value };
  return { redirectUri, challenge, expiresMs };
}
