import { setTimeout } from 'node:timers/promises';
import { type Clock, type Instant, instantAt } from '../../src/util/clock.ts';

/** No request sleeps so long: who does looks after the house from time to time, and holds nobody up. */
const HOUSEKEEPING_MS = 60 * 60 * 1000;

/** A `Clock` that a test turns by hand: no time passes but by `advance`, and wall time jumps by `stepWall`. */
export class ManualClock implements Clock {
  /** Since the clock was made. */
  #elapsedMs = 0;
  #wallStartMs: number;
  #sleepers: { readonly dueMs: number; readonly sleepMs: number; readonly wake: () => void }[] = [];
  #watchers: (() => void)[] = [];

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#wallStartMs = startMs;
  }

  now(): number {
    return this.#wallStartMs + this.#elapsedMs;
  }

  instant(): Instant {
    return instantAt(this.#elapsedMs);
  }

  /**
   * Moves wall time alone: back as when somebody sets the computer's clock, forward as when the machine was suspended.
   * Nobody wakes.
   */
  stepWall(ms: number): void {
    this.#wallStartMs += ms;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (ms <= 0) return resolve();
      const sleeper = {
        dueMs: this.#elapsedMs + ms,
        sleepMs: ms,
        wake: () => {
          signal?.removeEventListener('abort', stop);
          resolve();
        },
      };
      const stop = () => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        reject(signal?.reason);
      };
      signal?.addEventListener('abort', stop, { once: true });
      this.#sleepers.push(sleeper);
      this.#notify();
    });
  }

  /** Lets `ms` milliseconds pass: wakes, in order of time, all that sleep no longer than that. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#elapsedMs + ms;
    for (let next = this.#next(endMs); next; next = this.#next(endMs)) {
      this.#elapsedMs = Math.max(this.#elapsedMs, next.dueMs);
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      next.wake();
      // What woke may go back to sleep within the same span: let it run first.
      await settle();
    }
    this.#elapsedMs = endMs;
  }

  /** Lets time pass, as much as anyone sleeps, until `work` is done. */
  async during<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const end = () => {
      done = true;
      this.#notify();
    };
    work.then(end, end);
    // What the last step set in motion comes to its end before more time passes.
    for (await settle(); !done; await settle()) {
      if (this.nextMs === undefined) await new Promise<void>((resolve) => this.#watchers.push(resolve));
      else await this.advance(this.nextMs);
    }
    return work;
  }

  /**
   * Returns the result of `work`, and lets time pass meanwhile at a fifth of its pace: a slow machine does not reach a
   * limit before the program that `work` waits for answers.
   */
  async duringSlowly<T>(work: Promise<T>): Promise<T> {
    let hasEnded = false;
    const end = () => {
      hasEnded = true;
    };
    work.then(end, end);
    for (; !hasEnded; await setTimeout(5)) await this.advance(1);
    return work;
  }

  /** How many calls of `sleep` are waiting; housekeeping between its rounds does not count. */
  get sleeping(): number {
    return this.#sleepers.filter(({ sleepMs }) => sleepMs < HOUSEKEEPING_MS).length;
  }

  /** Milliseconds until the first of those is due; `undefined` when none sleeps. */
  get nextMs(): number | undefined {
    const next = this.#next(Number.POSITIVE_INFINITY, HOUSEKEEPING_MS);
    return next && next.dueMs - this.#elapsedMs;
  }

  /** Resolves as soon as `count` of those are waiting: a test may then advance. */
  async untilSleeping(count = 1): Promise<void> {
    while (this.sleeping < count) {
      await new Promise<void>((resolve) => this.#watchers.push(resolve));
    }
  }

  #notify(): void {
    for (const notify of this.#watchers.splice(0)) notify();
  }

  #next(endMs: number, sleepMsBelow = Number.POSITIVE_INFINITY) {
    return this.#sleepers
      .filter(({ dueMs, sleepMs }) => dueMs <= endMs && sleepMs < sleepMsBelow)
      .sort((one, other) => one.dueMs - other.dueMs)[0];
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
