import { GuessCounter, type GuessStore, memoryStore } from '../../http/guess-counter.ts';
import { PasswordGate } from '../../http/password-gate.ts';
import type { Clock } from '../../util/clock.ts';
import { isOutOfSpace } from '../storage/errors.ts';

/** Longest delay after wrong passwords of one account or link, in ms. */
const LONGEST_WAIT_MS = 15 * 60_000;

/** How long an answer may be delayed, in ms; a browser shows that the page is loading. */
const HELD_MS_MAX = 10_000;

export interface PasswordGateDeps {
  /** Where wrong passwords are counted for all processes. */
  readonly guesses: GuessStore;
  readonly clock: Clock;
  /** Aborted when the service ends. */
  readonly closing: AbortSignal;
}

/** Returns the password gate of accounts, or of links. */
export function passwordGate(
  what: 'account' | 'link',
  { guesses, clock, closing }: PasswordGateDeps,
): PasswordGate {
  const counter = new GuessCounter({
    store: evenOnFullDisk(guesses),
    nowMs: () => clock.now(),
    longestWaitMs: LONGEST_WAIT_MS,
    what,
  });
  return new PasswordGate({ clock, guesses: counter, delayMsMax: HELD_MS_MAX, closing });
}

/** Counts in memory what a full disk has no room for: it must not lock out everybody. */
function evenOnFullDisk(store: GuessStore): GuessStore {
  const memory = memoryStore();
  return {
    ...store,
    update: async (keys, change) => {
      try {
        return await store.update(keys, change);
      } catch (error) {
        if (!isOutOfSpace(error)) throw error;
        return await memory.update(keys, change);
      }
    },
  };
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
