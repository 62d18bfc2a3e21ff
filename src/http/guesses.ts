import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Clock, elapsedMs, type Instant, instantIn, remainingMs } from '../util/clock.ts';
import { neighborhoodOf } from '../util/networks.ts';

/** Wrong passwords for one name that cost no wait: a person's slips, and what Windows tries by itself. */
const SLIPS_MAX = 3;

/** How long to wait after the first wrong password beyond those, in ms. It doubles with each that follows. */
const FIRST_WAIT_MS = 1_000;

/** Wrong passwords of one client in a minute, whatever the names; more than a household mistypes. */
export const WRONG_PER_MINUTE_MAX = 30;
const MINUTE_MS = 60_000;

/** Wrong passwords for a name are forgotten when none has followed for this long. */
const FORGOTTEN_MS = 60 * 60_000;

/** Maximum number of names and clients to remember; with more, the one not heard of for longest is forgotten. */
const REMEMBERED_MAX = 10_000;

interface Pair {
  readonly wrong: number;
  readonly next: Instant;
}

interface Client {
  readonly since: Instant;
  readonly wrong: number;
}

/**
 * Counts wrong passwords by name and client, and by client alone: one who guesses must wait longer and longer, and keeps
 * nobody out who asks from elsewhere. A client is an IPv4 address, or a /64 of IPv6.
 */
export class Guesses {
  readonly #clock: Clock;
  readonly #longestWaitMs: number;
  readonly #pairs = new LRUCache<string, Pair>({ max: REMEMBERED_MAX });
  readonly #clients = new LRUCache<string, Client>({ max: REMEMBERED_MAX });

  constructor(clock: Clock, longestWaitMs: number) {
    this.#clock = clock;
    this.#longestWaitMs = longestWaitMs;
  }

  /** How long a client must wait before its next try at a name, in ms; 0 when it need not. */
  waitMs(name: string, address: string): number {
    const pair = this.#pairs.get(keyOf(name, address));
    const pairMs = pair ? remainingMs(this.#clock, pair.next) : 0;
    const client = this.#client(address);
    const clientMs =
      client.wrong < WRONG_PER_MINUTE_MAX ? 0 : MINUTE_MS - elapsedMs(this.#clock, client.since);
    return Math.max(0, pairMs, clientMs);
  }

  /** Counts a try as wrong, before it is known: many at once must not be more than one after the other. */
  begin(name: string, address: string): void {
    const key = keyOf(name, address);
    const pair = this.#pairs.get(key);
    const isForgotten = pair && elapsedMs(this.#clock, pair.next) > FORGOTTEN_MS;
    const wrong = (isForgotten ? 0 : (pair?.wrong ?? 0)) + 1;
    this.#pairs.set(key, { wrong, next: instantIn(this.#clock, this.#waitAfter(wrong)) });
    const client = this.#client(address);
    this.#clients.set(neighborhoodOf(address), { ...client, wrong: client.wrong + 1 });
  }

  /** The try was right: the name's count is forgotten. */
  right(name: string, address: string): void {
    this.#pairs.delete(keyOf(name, address));
    const client = this.#client(address);
    this.#clients.set(neighborhoodOf(address), { ...client, wrong: Math.max(0, client.wrong - 1) });
  }

  #waitAfter(wrong: number): number {
    if (wrong <= SLIPS_MAX) return 0;
    return Math.min(this.#longestWaitMs, FIRST_WAIT_MS * 2 ** (wrong - SLIPS_MAX - 1));
  }

  #client(address: string): Client {
    const client = this.#clients.get(neighborhoodOf(address));
    if (client && elapsedMs(this.#clock, client.since) < MINUTE_MS) return client;
    return { since: this.#clock.instant(), wrong: 0 };
  }
}

/** A guesser chooses the names, and so how long they are: ten thousand of them must not fill the memory. */
function keyOf(name: string, address: string): string {
  return createHash('sha256')
    .update(`${neighborhoodOf(address)} ${name}`)
    .digest('base64');
}
