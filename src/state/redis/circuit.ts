import { setImmediate } from 'node:timers/promises';
import { ClientOfflineError, ErrorReply } from '@redis/client';
import { type Clock, type Instant, instantIn, remainingMs } from '../../util/clock.ts';
import { Condition, waitAtMost } from '../../util/wait.ts';
import { isLoading } from './failure.ts';

/** Time between two pings, in ms. */
const PING_EVERY_MS = 500;

/** A Redis that leaves a ping unanswered for this long hangs, in ms. With the time between two pings, 2 s. */
const SILENCE_MS_MAX = 1_500;

/**
 * How long commands wait for a Redis that has just gone away, in ms: long enough for its restart. Commands that come later
 * fail at once.
 */
export const BRIDGE_MS = 1_000;

export interface CircuitDeps {
  readonly clock: Clock;
  /** Sends a ping. Rejects with `ErrorReply` where Redis answers with an error. */
  readonly ping: () => Promise<unknown>;
  /** Called when Redis goes away. */
  readonly onAway: (error: unknown) => void;
  /** Called when Redis is back. */
  readonly onBack: () => void;
}

/** Redis cannot be reached: its connection is lost, it hangs, or it is loading its data. */
interface Outage {
  /** The newest reason. */
  error: unknown;
  /** When commands stop to wait for the end of the outage. */
  readonly bridgeEnd: Instant;
}

/**
 * A circuit breaker: knows by pings whether a Redis can be reached, so that commands need not find out by waiting for their
 * deadline.
 */
export class Circuit {
  readonly #deps: CircuitDeps;
  readonly #closing = new AbortController();
  readonly #back = new Condition();
  #outage: Outage | undefined;

  constructor(deps: CircuitDeps) {
    this.#deps = deps;
  }

  /** The newest reason why Redis cannot be reached; `undefined` while it can. */
  get error(): unknown {
    return this.#outage?.error;
  }

  /** Sends pings until `close`. */
  watch(): void {
    // Rejects only when its signal aborts.
    this.#watch(this.#closing.signal).catch(() => {});
  }

  close(): void {
    this.#closing.abort();
  }

  /** Resolves when Redis can be reached; rejects with the reason if it cannot and is not back within a moment. */
  async pass(): Promise<void> {
    const outage = this.#outage;
    if (!outage) return;
    const leftMs = remainingMs(this.#deps.clock, outage.bridgeEnd);
    if (leftMs > 0) {
      const over = new AbortController();
      const back = this.#back.wait(over.signal).catch(() => {});
      await waitAtMost(this.#deps.clock, leftMs, back, () => {});
      over.abort();
    }
    this.check();
  }

  /** Throws the reason if Redis cannot be reached now. */
  check(): void {
    if (this.#outage) throw this.#outage.error;
  }

  /** Notes that Redis cannot be reached. */
  lost(error: unknown): void {
    if (this.#closing.signal.aborted) return;
    if (this.#outage) {
      this.#outage.error = error;
      return;
    }
    this.#outage = { error, bridgeEnd: instantIn(this.#deps.clock, BRIDGE_MS) };
    this.#deps.onAway(error);
  }

  /** Asks a Redis that has just accepted a connection whether it can be used. */
  async connected(): Promise<void> {
    if (this.#outage) await this.#ping();
  }

  #found(): void {
    if (!this.#outage || this.#closing.signal.aborted) return;
    this.#outage = undefined;
    this.#deps.onBack();
    this.#back.notify();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(PING_EVERY_MS, signal);
      await this.#ping();
    }
  }

  /** Resolves when a ping has been answered or its connection has been lost. */
  async #ping(): Promise<void> {
    let isAnswered = false;
    const answer = this.#deps
      .ping()
      .then(
        () => this.#found(),
        (error) => this.#refused(error),
      )
      .finally(() => {
        isAnswered = true;
      });
    await waitAtMost(this.#deps.clock, SILENCE_MS_MAX, answer, () => {});
    // After a pause of this process the timer fires before the answer is read.
    await setImmediate();
    if (!isAnswered) this.lost(new Error(`no answer to a ping within ${SILENCE_MS_MAX / 1000} s`));
    await answer;
  }

  /** Any error that Redis itself answers shows that it can be reached, except while it loads its data. */
  #refused(error: unknown): void {
    if (isLoading(error)) this.lost(error);
    else if (error instanceof ErrorReply) this.#found();
    // While the connection is being made again, its last failure says more.
    else if (!(error instanceof ClientOfflineError)) this.lost(error);
  }
}
