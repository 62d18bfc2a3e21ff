import type { Lock } from '../../src/state/locks.ts';
import { path } from './paths.ts';

/** The time at which `lockOn` makes locks, in ms since 1970. */
export const NOW_MS = Date.UTC(2026, 0, 1);
export const HOUR_MS = 3_600_000;

let taken = 0;

/** Returns a lock with a token of its own, which lasts for an hour from `NOW_MS`. */
export function lockOn(root: string, fields: Partial<Lock> = {}): Lock {
  taken += 1;
  return {
    token: `urn:uuid:${taken}`,
    root: path(root),
    scope: 'exclusive',
    depth: 'infinity',
    ownerXml: '<D:href xmlns:D="DAV:">Ann &amp; Ömer</D:href>',
    principal: 'ann',
    timeoutSeconds: 3600,
    expiresMs: NOW_MS + HOUR_MS,
    ...fields,
  };
}

/** Returns the tokens of locks in their order as texts. */
export function tokensOf(locks: readonly Lock[]): string[] {
  return locks.map((lock) => lock.token).sort();
}

/** How a store whose locks end by a clock of its own is tested. */
export interface OwnClock {
  /** Makes that clock advance by `ms`. */
  pass(ms: number): Promise<void>;
  /** Returns what an expectation compares a lock from the store with. */
  seen(lock: Lock): Lock;
}
