import { createHash } from 'node:crypto';
import type { App } from './apps.ts';
import type { Consent } from './grants.ts';
import { isSameSecret } from './secrets.ts';
import type { IssuedToken } from './tokens.ts';

/** Lifetime of a code, in ms. RFC 6749 §4.1.2 recommends at most ten minutes. */
export const CODE_LIFETIME_MS = 10 * 60 * 1000;

/** How long a used code is stored after its expiry, in ms, to detect reuse. */
export const USED_KEPT_MS = 24 * 60 * 60 * 1000;

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
  /** The account's home. */
  readonly namespace: string;
  readonly refreshToken?: string;
}

/** Authorization codes: a consent until its app has exchanged it for tokens. */
export interface Codes {
  /** Issues a code that can be used once within ten minutes. `'full'`: the app may not have more users. */
  issue(nowMs: number, app: App, request: CodeRequest): Promise<string | 'full'>;
  /**
   * Exchanges a code for tokens. `'code'`: this app has no such code, or the code has expired or was used; if its own
   * app uses it again, the tokens issued for it are revoked. The other results name what does not match the request
   * that the code was made for.
   */
  exchange(nowMs: number, exchange: Exchange): Promise<Exchanged | 'code' | 'redirect_uri' | 'verifier'>;
}

/** The part of a stored code that an exchange must match. */
export interface StoredCode {
  readonly redirectUri: string | null;
  readonly challenge: Challenge | null;
  readonly expiresMs: number;
}

/** Returns why an exchange of an unused code is refused, or `undefined`. */
export function exchangeProblem(
  { redirectUri, challenge, expiresMs }: StoredCode,
  exchange: Exchange,
  nowMs: number,
): 'code' | 'redirect_uri' | 'verifier' | undefined {
  if (expiresMs <= nowMs) return 'code';
  if (redirectUri !== (exchange.redirectUri ?? null)) return 'redirect_uri';
  return isVerified(challenge, exchange.verifier) ? undefined : 'verifier';
}

/**
 * Whether the app that the code was made for has proved its identity. Somebody with a code from a browser's history
 * must not be able to revoke its tokens (RFC 6749 §4.1.2 asks for revocation when a client uses a code twice).
 */
export function isByClient({ challenge }: StoredCode, { hasSecret, verifier }: Exchange): boolean {
  return hasSecret || (challenge !== null && isVerified(challenge, verifier));
}

/** Also refuses a verifier for a code without a challenge: an attacker has removed the challenge from the request. */
function isVerified(challenge: Challenge | null, verifier: string | undefined): boolean {
  if (challenge === null || verifier === undefined) return challenge === null && verifier === undefined;
  const { method, value } = challenge;
  const shown = method === 'S256' ? createHash('sha256').update(verifier).digest('base64url') : verifier;
  return isSameSecret(shown, value);
}
