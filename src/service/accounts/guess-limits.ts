import { PasswordGate } from '../../http/password-gate.ts';
import type { Clock } from '../../util/clock.ts';

/** Longest delay after wrong passwords of one account or link, in ms. */
const LONGEST_WAIT_MS = 15 * 60_000;

/** How long an answer may be delayed, in ms; a browser shows that the page is loading. */
const HELD_MS_MAX = 10_000;

/** Returns the password gate of accounts, or of links. */
export function passwordGate(clock: Clock, closing: AbortSignal): PasswordGate {
  return new PasswordGate({ clock, longestWaitMs: LONGEST_WAIT_MS, delayMsMax: HELD_MS_MAX, closing });
}

/** Returns the value of `Retry-After`, in seconds. */
export function secondsOf({ retryAfterMs }: { readonly retryAfterMs: number }): number {
  return Math.ceil(retryAfterMs / 1000);
}

/** Returns the wait in words, for a person. */
export function waitInWords(wait: { readonly retryAfterMs: number }): string {
  const seconds = secondsOf(wait);
  return seconds < 60 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
}
