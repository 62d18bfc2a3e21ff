import { randomBytes } from 'node:crypto';
import type { Scope } from './scopes.ts';

/**
 * Maximum number of linked users by status: in development, with production applied for, in production. The
 * specification names a freeze at 50, a maximum of 500, and no limit in production.
 */
export const LINKED_USERS_MAX = {
  development: 50,
  applied: 500,
  production: Number.POSITIVE_INFINITY,
} as const;

export type AppStatus = keyof typeof LINKED_USERS_MAX;

export interface App {
  /** Public identifier: `client_id` in OAuth. */
  readonly key: string;
  /** Name that people see. */
  readonly name: string;
  readonly status: AppStatus;
  /** Scopes that it may be granted. */
  readonly scopes: readonly Scope[];
  /** Addresses that may receive its authorization codes, compared literally. */
  readonly redirectUris: readonly string[];
}

export type NewApp = Omit<App, 'key'>;

/** Apps that may ask accounts for consent. Only hashes of their secrets are stored. */
export interface Apps {
  add(app: NewApp): Promise<{ readonly app: App; readonly secret: string }>;
  withKey(key: string): Promise<App | undefined>;
  /** Returns all apps, sorted by name. */
  all(): Promise<readonly App[]>;
  /** Returns whether this is the app's secret. */
  isSecret(key: string, secret: string): Promise<boolean>;
  change(key: string, change: Partial<NewApp>): Promise<void>;
  /** Replaces the secret. The old one is invalid at once. */
  renewSecret(key: string): Promise<string>;
  /** Removes an app with all its consents and their tokens. */
  remove(key: string): Promise<void>;
}

/** Returns a random key for a new app, 15 hex digits like the real service's. */
export function newAppKey(): string {
  return randomBytes(8).toString('hex').slice(1);
}

/** Maximum length of a redirect URI. */
const URI_CHARACTERS_MAX = 2000;

const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/** A private-use scheme has a dot or a hyphen, which no scheme has that browsers act on themselves (RFC 8252 §7.1). */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+]*[.-][a-z0-9+.-]*:$/;

/**
 * Returns the reason why codes must not be sent to this address, as the end of a sentence, or `undefined`. Allowed are
 * https, the user's own machine, and programs with a scheme of their own.
 */
export function redirectUriProblem(uri: string): string | undefined {
  if (uri.length > URI_CHARACTERS_MAX) return `is longer than ${URI_CHARACTERS_MAX} characters`;
  // The address becomes a header value unchanged.
  if (!/^[!-~]+$/.test(uri) || !URL.canParse(uri)) return 'is not an absolute URL';
  if (uri.includes('#')) return 'has a fragment (#…), to which codes cannot be sent';
  const { protocol, hostname, username, password } = new URL(uri);
  if (username !== '' || password !== '') return 'contains a user name';
  if (protocol === 'https:' || PRIVATE_SCHEME.test(protocol)) return undefined;
  if (protocol === 'http:' && LOOPBACK.has(hostname)) return undefined;
  return 'must begin with https://, with http://localhost or http://127.0.0.1, or with a scheme of the app like com.example.app:';
}
