import PQueue from 'p-queue';
import type { Clock } from '../util/clock.ts';
import { neighborhoodOf } from '../util/networks.ts';
import type { GuessCounter } from './guess-counter.ts';

/** Maximum number of parallel comparisons: password hashes share the thread pool with all file access. */
const COMPARED_AT_ONCE = 2;

/** Maximum number of tries that wait for a comparison. */
const WAITING_MAX = 64;

/** Maximum number of these for unknown names, so that a flood of made-up names leaves room for real ones. */
const WAITING_UNKNOWN_MAX = 32;

/** Maximum number of tries of one client among these, so that one client does not take the turns of all. */
const AT_ONCE_PER_CLIENT = 8;

/** Maximum number of open tries of one client, delayed ones included: all people of an office have one address. */
export const OPEN_PER_CLIENT_MAX = 64;

/** Time after which a client that was turned away may try again, in ms. */
const BUSY_RETRY_MS = 5_000;

export interface PasswordGateOptions {
  readonly clock: Clock;
  /** Counts wrong passwords, perhaps for other gates too. */
  readonly guesses: GuessCounter;
  /** Maximum delay of an answer, in ms. A try that has to wait longer is refused at once with the time to wait. */
  readonly delayMsMax: number;
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

/** The result of a try: whether the password is right, or after how long the client may try again. */
type Outcome = boolean | { readonly retryAfterMs: number };

/** The client must wait longer, because of guesses that came before. */
interface NotYet {
  readonly waitMs: number;
}

/** The open tries of one client. */
interface OpenTries {
  count: number;
  readonly slots: PQueue;
}

/** Compares passwords: delays clients that have guessed wrong, and gives each client its share of the comparisons. */
export class PasswordGate {
  readonly #options: PasswordGateOptions;
  readonly #turns: PQueue;
  readonly #open = new Map<string, OpenTries>();
  /** Number of tries that wait for their comparison or are compared, and of those for unknown names. */
  readonly #taken = { all: 0, unknown: 0 };

  constructor(options: PasswordGateOptions) {
    this.#options = options;
    this.#turns = new PQueue({ concurrency: options.comparedAtOnce ?? COMPARED_AT_ONCE });
  }

  /**
   * Returns whether `compare` accepts the password, or after how long the client may try again. A try whose `compare` throws
   * does not count.
   */
  async check(attempt: Try, compare: () => Promise<boolean>): Promise<Outcome> {
    const client = neighborhoodOf(attempt.address);
    const open = this.#open.get(client) ?? {
      count: 0,
      slots: new PQueue({ concurrency: AT_ONCE_PER_CLIENT }),
    };
    if (open.count >= OPEN_PER_CLIENT_MAX) return { retryAfterMs: BUSY_RETRY_MS };
    this.#open.set(client, open);
    open.count += 1;
    try {
      return await this.#checkDelayed(attempt, () => open.slots.add(() => this.#checkNow(attempt, compare)));
    } finally {
      open.count -= 1;
      if (open.count === 0) this.#open.delete(client);
    }
  }

  /** Calls `checkNow` when the try is allowed. A delayed try holds no slot, so that guesses do not hold up right passwords. */
  async #checkDelayed(
    { name, address, delayMsMax = this.#options.delayMsMax }: Try,
    checkNow: () => Promise<Outcome | NotYet>,
  ): Promise<Outcome> {
    const { clock, closing, guesses } = this.#options;
    for (let delayMs = 0; ; ) {
      let waitMs = await guesses.waitMs(name, address);
      if (waitMs === 0) {
        const outcome = await checkNow();
        if (typeof outcome === 'boolean' || 'retryAfterMs' in outcome) return outcome;
        waitMs = outcome.waitMs;
      }
      delayMs += waitMs;
      if (delayMs > delayMsMax || closing.aborted) return { retryAfterMs: waitMs };
      await clock.sleep(waitMs, closing).catch(() => {});
    }
  }

  /** Counts the try and compares the password. */
  async #checkNow(
    { name, address, exists }: Try,
    compare: () => Promise<boolean>,
  ): Promise<Outcome | NotYet> {
    if (this.#isFull(exists)) return { retryAfterMs: BUSY_RETRY_MS };
    this.#count(exists, 1);
    try {
      const waitMs = await this.#options.guesses.begin(name, address);
      return waitMs > 0 ? { waitMs } : await this.#compare({ name, address, exists }, compare);
    } finally {
      this.#count(exists, -1);
    }
  }

  async #compare({ name, address, exists }: Try, compare: () => Promise<boolean>): Promise<boolean> {
    const { guesses } = this.#options;
    let isRight: boolean;
    try {
      isRight = await this.#turns.add(compare, { priority: exists ? 1 : 0 });
    } catch (error) {
      await guesses.takeBack(name, address);
      throw error;
    }
    if (isRight) await guesses.forgive(name, address);
    return isRight;
  }

  #isFull(exists: boolean): boolean {
    const { all, unknown } = this.#taken;
    return all >= WAITING_MAX + this.#turns.concurrency || (!exists && unknown >= WAITING_UNKNOWN_MAX);
  }

  #count(exists: boolean, tries: 1 | -1): void {
    this.#taken.all += tries;
    if (!exists) this.#taken.unknown += tries;
  }
}
