import type { Account } from './accounts.ts';
import type { Consent } from './grants.ts';
import type { Scope } from './scopes.ts';

/** Lifetime of an access token: four hours, as at the real service. */
export const ACCESS_TOKEN_LIFETIME_SECONDS = 14_400;

/** How long a driver keeps expired tokens, in ms, so that a client that slept gets `expired` instead of `invalid`. */
export const EXPIRED_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

/** The owner of an access token. */
interface Bearer {
  readonly account: Account;
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
  grantRefreshable(nowMs: number, consent: Consent): Promise<string>;
  /** Adds a consent with one access token that ends at `expiresMs`, or is valid until revoked. */
  grantAccess(nowMs: number, consent: Consent, expiresMs?: number): Promise<string>;
  /**
   * Issues an access token for a refresh token. `undefined`: the refresh token is not this app's, or has ended.
   * `'secret'`: the app's secret is needed. `'scope'`: more scopes were requested than granted.
   */
  refresh(nowMs: number, request: RefreshRequest): Promise<IssuedToken | 'secret' | 'scope' | undefined>;
  isRefreshToken(token: string): Promise<boolean>;
  /** Returns the owner of an access token; `undefined` for one that was never issued, or is revoked. */
  bearer(nowMs: number, token: string): Promise<Bearer | undefined>;
  /** Revokes the consent that this access token belongs to, with its refresh token and all its access tokens. */
  revoke(token: string): Promise<void>;
  /** Removes up to `limit` access tokens that expired long ago. Returns how many. */
  forgetOld(nowMs: number, limit: number): Promise<number>;
}

/** Returns when an access token that is issued now expires. */
export function expiryOf(nowMs: number): number {
  return nowMs + ACCESS_TOKEN_LIFETIME_SECONDS * 1000;
}
