import { LRUCache } from 'lru-cache';
import { type Clock, elapsedMs, type Instant } from '../util/clock.ts';

/** Different wrong passwords that one client may try for one user in a window: enough for a person's slips. */
export const ATTEMPTS_MAX = 10;

export const ATTEMPTS_WINDOW_MS = 60_000;

/** Pairs of user and client that are remembered; with more, the one not heard of for longest is forgotten. */
const PAIRS_MAX = 10_000;

interface Attempts {
  readonly since: Instant;
  readonly count: number;
}

/** Slows down the guessing of passwords. */
export class Throttle {
  readonly #clock: Clock;
  readonly #attempts = new LRUCache<string, Attempts>({ max: PAIRS_MAX });

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts an attempt before it is checked; how long to wait if it is one too many, else 0. */
  attempt(user: string, address: string): number {
    const pair = pairOf(user, address);
    const known = this.#attempts.get(pair);
    const leftMs = known ? ATTEMPTS_WINDOW_MS - elapsedMs(this.#clock, known.since) : 0;
    const { since, count } = known && leftMs > 0 ? known : { since: this.#clock.instant(), count: 0 };
    if (count >= ATTEMPTS_MAX) return leftMs;
    this.#attempts.set(pair, { since, count: count + 1 });
    return 0;
  }

  /** The attempt was right. */
  forgive(user: string, address: string): void {
    this.#attempts.delete(pairOf(user, address));
  }
}

function pairOf(user: string, address: string): string {
  return JSON.stringify([user, address]);
}
