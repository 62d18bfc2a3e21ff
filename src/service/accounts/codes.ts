import { createHash } from 'node:crypto';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { App } from './apps.ts';
import type { Consent, Grants } from './grants.ts';
import { parseScopes } from './scopes.ts';
import { hashOfSecret, isSameSecret, newSecret } from './secrets.ts';
import { expiryOf, type IssuedToken } from './tokens.ts';

/** Lifetime of a code, in ms. RFC 6749 §4.1.2 recommends at most ten minutes. */
const CODE_LIFETIME_MS = 10 * 60 * 1000;

/** How long a used code is stored after its expiry, in ms, to detect reuse. */
const USED_KEPT_MS = 24 * 60 * 60 * 1000;

/** The PKCE challenge (RFC 7636 §4.2). The app must present its verifier when it exchanges the code. */
export interface Challenge {
  readonly method: 'S256' | 'plain';
  readonly value: string;
}

export interface CodeRequest extends Consent {
  /** Address that received the code; absent when its owner copies it by hand. */
  readonly redirectUri?: string;
  readonly challenge?: Challenge;
  /** Whether the exchange returns a refresh token. */
  readonly isOffline: boolean;
}

export interface Exchange {
  readonly code: string;
  readonly appKey: string;
  /** Whether the app has authenticated with its secret. */
  readonly hasSecret: boolean;
  readonly redirectUri?: string;
  readonly verifier?: string;
}

export interface Exchanged extends IssuedToken {
  readonly accountId: string;
  readonly refreshToken?: string;
}

/** Authorization codes: a consent until its app has exchanged it for tokens. */
export interface Codes {
  /** Issues a code that can be used once within ten minutes. `'full'`: the app may not have more users. */
  issue(nowMs: number, app: App, request: CodeRequest): string | 'full';
  /**
   * Exchanges a code for tokens. `'code'`: this app has no such code, or the code has expired or was used; if its own
   * app uses it again, the tokens issued for it are revoked. The other results name what does not match the request
   * that the code was made for.
   */
  exchange(nowMs: number, exchange: Exchange): Exchanged | 'code' | 'redirect_uri' | 'verifier';
}

interface Row {
  readonly code_hash: Buffer;
  readonly account_id: string;
  readonly app_key: string;
  readonly scopes: string;
  readonly redirect_uri: string | null;
  readonly challenge: string | null;
  readonly challenge_method: string | null;
  readonly is_offline: number;
  readonly expires_ms: number;
  readonly grant_id: number | null;
}

export function codesIn(database: SqliteDatabase, grants: Grants): Codes {
  const insert = database.prepare<[Row]>(
    `INSERT INTO codes VALUES (@code_hash, @account_id, @app_key, @scopes, @redirect_uri, @challenge,
       @challenge_method, @is_offline, @expires_ms, @grant_id)`,
  );
  const select = database.prepare<[Uint8Array, string], Row>(
    'SELECT * FROM codes WHERE code_hash = ? AND app_key = ?',
  );
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
    return { accountId, scopes, token, ...(refreshToken !== undefined && { refreshToken }) };
  }

  return {
    issue: database.transaction((nowMs: number, app: App, request: CodeRequest) => {
      if (!grants.mayLink(nowMs, app, request.accountId)) return 'full';
      forgetOld.run(nowMs - USED_KEPT_MS);
      const code = newSecret();
      insert.run(rowOf(hashOfSecret(code), nowMs, request));
      return code;
    }).immediate,
    exchange: database.transaction((nowMs: number, exchange: Exchange) => {
      const row = select.get(hashOfSecret(exchange.code), exchange.appKey);
      if (!row) return 'code';
      if (row.grant_id !== null) {
        if (isByClient(row, exchange)) grants.revoke(row.grant_id);
        return 'code';
      }
      if (row.expires_ms <= nowMs) return 'code';
      if (row.redirect_uri !== (exchange.redirectUri ?? null)) return 'redirect_uri';
      if (!isVerified(row, exchange.verifier)) return 'verifier';
      return turnedInto(nowMs, row, !exchange.hasSecret);
    }).immediate,
  };
}

/**
 * Whether the app that the code was made for has proved its identity. Somebody with a code from a browser's history
 * must not be able to revoke its tokens (RFC 6749 §4.1.2 asks for revocation when a client uses a code twice).
 */
function isByClient(row: Row, { hasSecret, verifier }: Exchange): boolean {
  return hasSecret || (row.challenge !== null && isVerified(row, verifier));
}

/** Also refuses a verifier for a code without a challenge: an attacker has removed the challenge from the request. */
function isVerified({ challenge, challenge_method: method }: Row, verifier: string | undefined): boolean {
  if (challenge === null || verifier === undefined) return challenge === null && verifier === undefined;
  const shown = method === 'S256' ? createHash('sha256').update(verifier).digest('base64url') : verifier;
  return isSameSecret(shown, challenge);
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
