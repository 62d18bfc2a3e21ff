import { PasswordGate } from '../../http/password-gate.ts';
import type { Clock } from '../../util/clock.ts';

/** The longest wait after a wrong password of an account or a link, in ms. */
const LONGEST_WAIT_MS = 15 * 60_000;

/** How long an answer may be held back, in ms: a browser shows that it is loading. */
const HELD_MS_MAX = 10_000;

/** The gate for passwords of accounts, or of links. */
export function passwordGate(clock: Clock, closing: AbortSignal): PasswordGate {
  return new PasswordGate({ clock, longestWaitMs: LONGEST_WAIT_MS, delayMsMax: HELD_MS_MAX, closing });
}

/** For a `Retry-After`. */
export function secondsOf({ retryAfterMs }: { readonly retryAfterMs: number }): number {
  return Math.ceil(retryAfterMs / 1000);
}

/** For a person. */
export function waitInWords(wait: { readonly retryAfterMs: number }): string {
  const seconds = secondsOf(wait);
  return seconds < 60 ? `${seconds} seconds` : `${Math.ceil(seconds / 60)} minutes`;
}
