import { createHash } from 'node:crypto';
import PQueue from 'p-queue';
import { type Clock, elapsedMs, type Instant, instantIn, remainingMs } from '../util/clock.ts';
import { createLru } from '../util/lru.ts';
import { neighborhoodOf } from '../util/networks.ts';

/** Maximum number of wrong passwords for one name without a wait: typing errors, and the tries that Windows adds. */
const FREE_TRIES = 3;

/** How long a client waits after the first wrong password beyond those, in ms. Each further one doubles the wait. */
const FIRST_WAIT_MS = 1_000;

/** Maximum number of wrong passwords of one client in a minute, for any names: more than a household mistypes. */
export const WRONG_PER_MINUTE_MAX = 30;
const MINUTE_MS = 60_000;

/** How long wrong passwords for a name are remembered after the last one, in ms. */
const MEMORY_MS = 60 * 60_000;

/** Maximum number of remembered names and clients each; beyond it the least recently seen is forgotten. */
const REMEMBERED_MAX = 10_000;

/** Wrong passwords of one client for one name. */
interface NameCount {
  readonly wrong: number;
  readonly next: Instant;
}

/** Wrong passwords of one client since `since`. */
interface ClientCount {
  readonly since: Instant;
  readonly wrong: number;
}

/**
 * Counts wrong passwords by name and client, and by client alone. A guessing client waits longer and longer, and does not
 * lock out other clients. A client is an IPv4 address, or a /64 of IPv6.
 */
export class GuessCounter {
  readonly #clock: Clock;
  readonly #longestWaitMs: number;
  readonly #names = createLru<NameCount>(REMEMBERED_MAX);
  readonly #clients = createLru<ClientCount>(REMEMBERED_MAX);

  constructor(clock: Clock, longestWaitMs: number) {
    this.#clock = clock;
    this.#longestWaitMs = longestWaitMs;
  }

  /** Returns how long a client must wait before its next try for a name, in ms; 0 if it need not wait. */
  waitMs(name: string, address: string): number {
    const ofName = this.#names.get(keyOf(name, address));
    const nameMs = ofName ? remainingMs(this.#clock, ofName.next) : 0;
    const client = this.#client(address);
    const clientMs =
      client.wrong < WRONG_PER_MINUTE_MAX ? 0 : MINUTE_MS - elapsedMs(this.#clock, client.since);
    return Math.max(0, nameMs, clientMs);
  }

  /** Counts a try as wrong before its result is known, so that parallel tries gain nothing over sequential ones. */
  countWrong(name: string, address: string): void {
    const key = keyOf(name, address);
    const ofName = this.#names.get(key);
    const isForgotten = ofName && elapsedMs(this.#clock, ofName.next) > MEMORY_MS;
    const wrong = (isForgotten ? 0 : (ofName?.wrong ?? 0)) + 1;
    this.#names.set(key, { wrong, next: instantIn(this.#clock, this.#waitAfter(wrong)) });
    const client = this.#client(address);
    this.#clients.set(neighborhoodOf(address), { ...client, wrong: client.wrong + 1 });
  }

  /** Takes back the count of a try whose password was right, and forgets the earlier ones for its name. */
  forgive(name: string, address: string): void {
    this.#names.delete(keyOf(name, address));
    const client = this.#client(address);
    this.#clients.set(neighborhoodOf(address), { ...client, wrong: Math.max(0, client.wrong - 1) });
  }

  /** Takes back the count of a try whose result stays unknown. */
  takeBack(name: string, address: string): void {
    const key = keyOf(name, address);
    const wrong = (this.#names.get(key)?.wrong ?? 1) - 1;
    if (wrong > 0) this.#names.set(key, { wrong, next: this.#clock.instant() });
    else this.#names.delete(key);
    const client = this.#client(address);
    this.#clients.set(neighborhoodOf(address), { ...client, wrong: Math.max(0, client.wrong - 1) });
  }

  #waitAfter(wrong: number): number {
    if (wrong <= FREE_TRIES) return 0;
    return Math.min(this.#longestWaitMs, FIRST_WAIT_MS * 2 ** (wrong - FREE_TRIES - 1));
  }

  #client(address: string): ClientCount {
    const client = this.#clients.get(neighborhoodOf(address));
    if (client && elapsedMs(this.#clock, client.since) < MINUTE_MS) return client;
    return { since: this.#clock.instant(), wrong: 0 };
  }
}

/** Hashes name and client: the guesser chooses the names, and ten thousand long ones must not fill the memory. */
function keyOf(name: string, address: string): string {
  return createHash('sha256')
    .update(`${neighborhoodOf(address)} ${name}`)
    .digest('base64');
}

/** Maximum number of parallel comparisons: password hashes share the thread pool with all file access. */
const COMPARED_AT_ONCE = 2;

/** Maximum number of tries that wait for a comparison. */
const WAITING_MAX = 64;

/** Maximum number of these for unknown names, so that a flood of made-up names leaves room for real ones. */
const WAITING_UNKNOWN_MAX = 32;

/** Maximum number of waiting tries of one client. */
const WAITING_PER_CLIENT_MAX = 8;

/** Time after which a client that was turned away may try again, in ms. */
const BUSY_RETRY_MS = 5_000;

export interface PasswordGateOptions {
  readonly clock: Clock;
  /** Maximum wait after a wrong password, in ms. */
  readonly longestWaitMs: number;
  /** Maximum delay of an answer, in ms. A try that has to wait longer is refused at once with the time to wait. */
  readonly delayMsMax: number;
  /** A counter that other gates use too. */
  readonly guesses?: GuessCounter;
  /** Maximum number of parallel comparisons, if they do not use the thread pool. */
  readonly comparedAtOnce?: number;
  /** Aborts delayed tries at shutdown: they are refused at once. */
  readonly closing: AbortSignal;
}

/** An attempt to give a password. */
export interface Try {
  /** The account, user or link that the password is for. */
  readonly name: string;
  readonly address: string;
  /** Whether the name exists. */
  readonly exists: boolean;
  /** A shorter maximum delay, in ms. */
  readonly delayMsMax?: number | undefined;
}

/** Compares passwords: delays clients that have guessed wrong, and gives each client its share of the comparisons. */
export class PasswordGate {
  readonly #options: PasswordGateOptions;
  readonly #guesses: GuessCounter;
  readonly #turns: PQueue;
  readonly #waiting = new Map<string, number>();
  #waitingUnknown = 0;

  constructor(options: PasswordGateOptions) {
    this.#options = options;
    this.#guesses = options.guesses ?? new GuessCounter(options.clock, options.longestWaitMs);
    this.#turns = new PQueue({ concurrency: options.comparedAtOnce ?? COMPARED_AT_ONCE });
  }

  /**
   * Returns whether `compare` accepts the password, or after how long the client may try again. A try whose `compare` throws
   * does not count.
   */
  async check(
    attempt: Try,
    compare: () => Promise<boolean>,
  ): Promise<boolean | { readonly retryAfterMs: number }> {
    const client = neighborhoodOf(attempt.address);
    const mine = this.#waiting.get(client) ?? 0;
    if (mine >= WAITING_PER_CLIENT_MAX) return { retryAfterMs: BUSY_RETRY_MS };
    this.#waiting.set(client, mine + 1);
    try {
      return await this.#checkInTurn(attempt, compare);
    } finally {
      const left = (this.#waiting.get(client) ?? 1) - 1;
      if (left > 0) this.#waiting.set(client, left);
      else this.#waiting.delete(client);
    }
  }

  /** Never waits between checking whether a try is allowed and counting it, so that parallel tries queue up. */
  async #checkInTurn(
    { name, address, exists, delayMsMax = this.#options.delayMsMax }: Try,
    compare: () => Promise<boolean>,
  ): Promise<boolean | { readonly retryAfterMs: number }> {
    const { clock, closing } = this.#options;
    let delayMs = 0;
    for (let waitMs = this.#guesses.waitMs(name, address); waitMs > 0; ) {
      delayMs += waitMs;
      if (delayMs > delayMsMax || closing.aborted) return { retryAfterMs: waitMs };
      await clock.sleep(waitMs, closing).catch(() => {});
      waitMs = this.#guesses.waitMs(name, address);
    }
    const isFull =
      this.#turns.size >= WAITING_MAX || (!exists && this.#waitingUnknown >= WAITING_UNKNOWN_MAX);
    if (isFull) return { retryAfterMs: BUSY_RETRY_MS };
    this.#guesses.countWrong(name, address);
    if (!exists) this.#waitingUnknown += 1;
    try {
      const isRight = await this.#turns.add(compare, { priority: exists ? 1 : 0 });
      if (isRight) this.#guesses.forgive(name, address);
      return isRight;
    } catch (error) {
      this.#guesses.takeBack(name, address);
      throw error;
    } finally {
      if (!exists) this.#waitingUnknown -= 1;
    }
  }
}
