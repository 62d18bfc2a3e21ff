import type { App } from './apps.ts';
import type { Scope } from './scopes.ts';

/** The scopes that an account grants to an app. */
export interface Consent {
  readonly accountId: string;
  readonly appKey: string;
  readonly scopes: readonly Scope[];
  /** Whether the app used PKCE instead of its secret; it then refreshes without the secret too. */
  readonly isPublic?: boolean;
}

/** A stored consent, with its tokens. */
export interface Grant extends Consent {
  readonly number: number;
  /** `undefined` for consents older than this field. */
  readonly createdMs: number | undefined;
  readonly hasRefreshToken: boolean;
  /** Number of its access tokens. */
  readonly tokens: number;
  /** Expiry of the last access token; `undefined`: never, or there is none. */
  readonly expiresMs: number | undefined;
}

/** The consents that accounts gave to apps. An app's users are the accounts with a consent for it. */
export interface Grants {
  /** Returns whether the account has already granted these scopes to the app; `isLasting`: until revoked. */
  isGiven(consent: Consent, isLasting: boolean): Promise<boolean>;
  /** Returns the number of accounts that have linked the app, or can still do so with a valid code. */
  linkedUsers(nowMs: number, appKey: string): Promise<number>;
  /** Returns whether the account is a user of the app or may become one. */
  mayLink(nowMs: number, app: App, accountId: string): Promise<boolean>;
  /** All consents, newest first. */
  all(): Promise<readonly Grant[]>;
  /** Revokes a consent and its tokens. Returns whether it existed. */
  revoke(number: number): Promise<boolean>;
}
