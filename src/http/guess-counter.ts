import { createHash } from 'node:crypto';
import type { LRUCache } from 'lru-cache';
import { type Clock, elapsedMs } from '../util/clock.ts';
import { createLru } from '../util/lru.ts';
import { neighborhoodOf } from '../util/networks.ts';
import { retryPauseMs } from '../util/wait.ts';

/** Maximum number of wrong passwords for one name without a wait: typing errors, and the tries that Windows adds. */
const FREE_TRIES = 3;

/** How long a client waits after the first wrong password beyond those, in ms. Each further one doubles the wait. */
const FIRST_WAIT_MS = 1_000;

/** Maximum number of wrong passwords of one client in a minute, for any names: more than a household mistypes. */
export const WRONG_PER_MINUTE_MAX = 30;
const MINUTE_MS = 60_000;

/** How long wrong passwords for a name are remembered once the client need no longer wait, in ms. */
const MEMORY_MS = 60 * 60_000;

/** Maximum number of remembered names and clients each; beyond it the least recently seen is forgotten. */
const REMEMBERED_MAX = 10_000;

/** Wrong passwords under one key. */
export interface Guesses {
  readonly wrong: number;
  /** When they no longer count. */
  readonly expiresMs: number;
}

/** Wrong passwords of one client: for one name, and for all names in a minute. */
export interface GuessCounts {
  readonly name: Guesses | undefined;
  readonly client: Guesses | undefined;
}

/** The keys of both; a digest each, because a guesser chooses the names. */
export type GuessKeys = Readonly<Record<keyof GuessCounts, string>>;

/** Where guesses are remembered. */
export interface GuessStore {
  find(keys: GuessKeys): Promise<GuessCounts>;
  /**
   * Replaces the counts with what `change` makes of them, and returns the ones before. No other call comes in between.
   * `change` has no effects.
   */
  update(keys: GuessKeys, change: (counts: GuessCounts) => GuessCounts): Promise<GuessCounts>;
}

interface GuessCounterOptions {
  readonly store: GuessStore;
  /** The time of the store's expiries. */
  readonly nowMs: () => number;
  /** Maximum wait after a wrong password, in ms. */
  readonly longestWaitMs: number;
  /** The kind of password. Each kind is counted by itself. */
  readonly what?: string;
}

/**
 * Counts wrong passwords by name and client, and by client alone. A guessing client waits longer and longer, and does not
 * lock out other clients. A client is an IPv4 address, or a /64 of IPv6.
 */
export class GuessCounter {
  constructor(private readonly options: GuessCounterOptions) {}

  /** Returns how long a client must wait before its next try for a name, in ms; 0 if it need not wait. */
  async waitMs(name: string, address: string): Promise<number> {
    const counts = await this.options.store.find(this.#keysOf(name, address));
    return this.#waitIn(counts, this.options.nowMs());
  }

  /**
   * Counts a try as wrong before its result is known, so that parallel tries gain nothing over sequential ones. Counts
   * nothing if the client must wait, and returns how long, in ms.
   */
  async begin(name: string, address: string): Promise<number> {
    const nowMs = this.options.nowMs();
    const before = await this.options.store.update(this.#keysOf(name, address), (counts) =>
      this.#waitIn(counts, nowMs) > 0 ? counts : this.#withTry(counts, nowMs),
    );
    return this.#waitIn(before, nowMs);
  }

  /** Takes back the count of a try whose password was right, and forgets the earlier ones for its name. */
  async forgive(name: string, address: string): Promise<void> {
    await this.options.store.update(this.#keysOf(name, address), ({ client }) => ({
      name: undefined,
      client: oneLess(client),
    }));
  }

  /** Takes back the count of a try whose result stays unknown. */
  async takeBack(name: string, address: string): Promise<void> {
    const expiresMs = this.options.nowMs() + MEMORY_MS;
    await this.options.store.update(this.#keysOf(name, address), (counts) => {
      const ofName = oneLess(counts.name);
      return { name: ofName && { ...ofName, expiresMs }, client: oneLess(counts.client) };
    });
  }

  #waitIn(counts: GuessCounts, nowMs: number): number {
    const { longestWaitMs } = this.options;
    const ofName = this.#ofName(counts, nowMs);
    const nameMs = ofName ? Math.min(ofName.expiresMs - MEMORY_MS - nowMs, longestWaitMs) : 0;
    const client = ofClient(counts, nowMs);
    const isBlocked = client !== undefined && client.wrong >= WRONG_PER_MINUTE_MAX;
    const clientMs = isBlocked ? Math.min(client.expiresMs - nowMs, MINUTE_MS) : 0;
    return Math.max(0, nameMs, clientMs);
  }

  #withTry(counts: GuessCounts, nowMs: number): GuessCounts {
    const wrong = (this.#ofName(counts, nowMs)?.wrong ?? 0) + 1;
    const client = ofClient(counts, nowMs) ?? { wrong: 0, expiresMs: nowMs + MINUTE_MS };
    return {
      name: { wrong, expiresMs: nowMs + this.#waitAfter(wrong) + MEMORY_MS },
      client: { ...client, wrong: client.wrong + 1 },
    };
  }

  #waitAfter(wrong: number): number {
    if (wrong <= FREE_TRIES) return 0;
    const { longestWaitMs: maxMs } = this.options;
    return retryPauseMs({ firstMs: FIRST_WAIT_MS, maxMs }, wrong - FREE_TRIES);
  }

  #ofName({ name }: GuessCounts, nowMs: number): Guesses | undefined {
    return counting(name, nowMs, this.options.longestWaitMs + MEMORY_MS);
  }

  #keysOf(name: string, address: string): GuessKeys {
    const { what = '' } = this.options;
    const client = neighborhoodOf(address);
    return { name: digestOf([what, client, name]), client: digestOf([what, client]) };
  }
}

/** Returns a counter that remembers guesses in this process alone, and measures time by the monotonic clock. */
export function guessesInMemory(clock: Clock, longestWaitMs: number): GuessCounter {
  const start = clock.instant();
  return new GuessCounter({ store: memoryStore(), nowMs: () => elapsedMs(clock, start), longestWaitMs });
}

/** Returns a store in memory. */
export function memoryStore(): GuessStore {
  const names = createLru<Guesses>(REMEMBERED_MAX);
  const clients = createLru<Guesses>(REMEMBERED_MAX);
  const find = (keys: GuessKeys) => ({ name: names.get(keys.name), client: clients.get(keys.client) });
  return {
    find: async (keys) => find(keys),
    async update(keys, change) {
      const before = find(keys);
      const { name, client } = change(before);
      replace(names, keys.name, name);
      replace(clients, keys.client, client);
      return before;
    },
  };
}

function replace(lru: LRUCache<string, Guesses>, key: string, guesses: Guesses | undefined): void {
  if (guesses) lru.set(key, guesses);
  else lru.delete(key);
}

function ofClient({ client }: GuessCounts, nowMs: number): Guesses | undefined {
  return counting(client, nowMs, MINUTE_MS);
}

/**
 * Returns the guesses if they still count. An expiry more than two lives away shows that the clock was set back; the clocks of
 * two processes differ by less.
 */
function counting(guesses: Guesses | undefined, nowMs: number, lifeMs: number): Guesses | undefined {
  const leftMs = guesses ? guesses.expiresMs - nowMs : 0;
  return leftMs > 0 && leftMs <= 2 * lifeMs ? guesses : undefined;
}

function oneLess(guesses: Guesses | undefined): Guesses | undefined {
  return guesses && guesses.wrong > 1 ? { ...guesses, wrong: guesses.wrong - 1 } : undefined;
}

function digestOf(words: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(words)).digest('base64');
}
