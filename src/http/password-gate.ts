import PQueue from 'p-queue';
import type { Clock } from '../util/clock.ts';
import { neighborhoodOf } from '../util/networks.ts';
import { Guesses } from './guesses.ts';

/** Passwords compared at a time: their hashes share the thread pool with all file access. */
const COMPARED_AT_ONCE = 2;

/** Maximum number of passwords that wait to be compared. */
const WAITING_MAX = 64;

/** Of these, for names that do not exist: a flood of made-up names leaves room for real ones. */
const WAITING_UNKNOWN_MAX = 32;

/** Tries of one client that may wait, for their turn or for the time after a wrong one. */
const WAITING_PER_CLIENT_MAX = 8;

const BUSY_RETRY_MS = 5_000;

export interface PasswordGateOptions {
  readonly clock: Clock;
  /** The longest wait after a wrong password, in ms. */
  readonly longestWaitMs: number;
  /** A try that has to wait no longer than this is answered late; one that has to wait longer is told so, in ms. */
  readonly heldMsMax: number;
  /** When it is aborted, nothing is held back any more: those that wait are told how long they would have to. */
  readonly closing: AbortSignal;
}

/** Somebody says a password. */
export interface Try {
  /** What it is the password of. */
  readonly name: string;
  readonly address: string;
  /** Whether there is such a name. */
  readonly exists: boolean;
}

/** Lets passwords be compared: late for a client that has guessed wrong, and a share of the turns for each client. */
export class PasswordGate {
  readonly #options: PasswordGateOptions;
  readonly #guesses: Guesses;
  readonly #turns = new PQueue({ concurrency: COMPARED_AT_ONCE });
  readonly #waiting = new Map<string, number>();
  #waitingUnknown = 0;

  constructor(options: PasswordGateOptions) {
    this.#options = options;
    this.#guesses = new Guesses(options.clock, options.longestWaitMs);
  }

  /** Whether the password is right by `compare`, or after how long to try again, in ms. */
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

  /** Between looking whether a try is allowed and counting it nothing waits: many at once are one after the other. */
  async #checkInTurn(
    { name, address, exists }: Try,
    compare: () => Promise<boolean>,
  ): Promise<boolean | { readonly retryAfterMs: number }> {
    const { clock, heldMsMax, closing } = this.#options;
    let heldMs = 0;
    for (let waitMs = this.#guesses.waitMs(name, address); waitMs > 0; ) {
      heldMs += waitMs;
      if (heldMs > heldMsMax || closing.aborted) return { retryAfterMs: waitMs };
      // Woken early, it has to wait still.
      await clock.sleep(waitMs, closing).catch(() => {});
      waitMs = this.#guesses.waitMs(name, address);
    }
    const isFull =
      this.#turns.size >= WAITING_MAX || (!exists && this.#waitingUnknown >= WAITING_UNKNOWN_MAX);
    if (isFull) return { retryAfterMs: BUSY_RETRY_MS };
    this.#guesses.begin(name, address);
    if (!exists) this.#waitingUnknown += 1;
    const isRight = await this.#turns.add(compare, { priority: exists ? 1 : 0 }).finally(() => {
      if (!exists) this.#waitingUnknown -= 1;
    });
    if (isRight) this.#guesses.right(name, address);
    return isRight;
  }
}
