import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { App } from '../../accounts/apps.ts';
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
import type { GrantRows } from './grants.ts';

interface Row {
  readonly code_hash: Buffer;
  readonly account_id: string;
  readonly app_key: string;
  readonly scopes: string;
  readonly redirect_uri: string | null;
  readonly challenge: string | null;
  readonly challenge_method: 'S256' | 'plain' | null;
  readonly is_offline: number;
  readonly expires_ms: number;
  readonly grant_id: number | null;
}

/** Returns the codes in a database. */
export function codesIn(database: SqliteDatabase, grants: GrantRows): Codes {
  const insert = database.prepare<[Row]>(
    `INSERT INTO codes VALUES (@code_hash, @account_id, @app_key, @scopes, @redirect_uri, @challenge,
       @challenge_method, @is_offline, @expires_ms, @grant_id)`,
  );
  const select = database.prepare<[Uint8Array, string], Row>(
    'SELECT * FROM codes WHERE code_hash = ? AND app_key = ?',
  );
  const namespaceOf = database
    .prepare<[string], string>('SELECT namespace FROM accounts WHERE account_id = ?')
    .pluck();
  const markUsed = database.prepare<[number, Uint8Array]>(
    'UPDATE codes SET grant_id = ? WHERE code_hash = ?',
  );
  const forgetOld = database.prepare<[number]>('DELETE FROM codes WHERE expires_ms < ?');

  function turnedInto(nowMs: number, row: Row, isPublic: boolean): Exchanged {
    const { account_id: accountId, app_key: appKey, is_offline: isOffline } = row;
    const scopes = parseScopes(row.scopes);
    const consent = { accountId, appKey, scopes, isPublic };
    const { number, refreshToken } = isOffline
      ? grants.addRefreshable(nowMs, consent)
      : { number: grants.add(nowMs, consent) };
    markUsed.run(number, row.code_hash);
    const token = grants.issue(number, scopes, expiryOf(nowMs));
    const namespace = namespaceOf.get(accountId) ?? '';
    return { accountId, namespace, scopes, token, ...(refreshToken !== undefined && { refreshToken }) };
  }

  const issue = database.transaction((nowMs: number, app: App, request: CodeRequest) => {
    if (!grants.mayLink(nowMs, app, request.accountId)) return 'full';
    forgetOld.run(nowMs - USED_KEPT_MS);
    const code = newSecret();
    insert.run(rowOf(hashOfSecret(code), nowMs, request));
    return code;
  });
  const exchange = database.transaction((nowMs: number, request: Exchange) => {
    const row = select.get(hashOfSecret(request.code), request.appKey);
    if (!row) return 'code';
    if (row.grant_id !== null) {
      if (isByClient(codeOf(row), request)) grants.revoke(row.grant_id);
      return 'code';
    }
    return exchangeProblem(codeOf(row), request, nowMs) ?? turnedInto(nowMs, row, !request.hasSecret);
  });

  return {
    issue: async (nowMs, app, request) => issue.immediate(nowMs, app, request),
    exchange: async (nowMs, request) => exchange.immediate(nowMs, request),
  };
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

function rowOf(hash: Buffer, nowMs: number, request: CodeRequest): Row {
  return {
    code_hash: hash,
    account_id: request.accountId,
    app_key: request.appKey,
    scopes: request.scopes.join(' '),
    redirect_uri: request.redirectUri ?? null,
    challenge: request.challenge?.value ?? null,
    challenge_method: request.challenge?.method ?? null,
    is_offline: request.isOffline ? 1 : 0,
    expires_ms: nowMs + CODE_LIFETIME_MS,
    grant_id: null,
  };
}
