import { setTimeout } from 'node:timers/promises';
import { LEASE_RENEWAL_MS } from '../../src/service/directory/nodes.ts';
import { ASK_MS } from '../../src/service/storage/postgres/notifications.ts';
import { type Clock, type Instant, instantAt } from '../../src/util/clock.ts';

/** Sleeps of at least this are housekeeping, in ms. */
const HOUSEKEEPING_MS = 60 * 60 * 1000;

/** How often the service renews leases and asks for commits of others while time advances, whatever the span. */
const ROUNDS = 20_000;

/** Returns whether the service sleeps until it renews a lease or asks for commits of others: every few seconds. */
function isFrequent(sleepMs: number): boolean {
  return sleepMs === LEASE_RENEWAL_MS || sleepMs === ASK_MS;
}

/** Returns whether no request waits for a sleep. */
function isBackground({ sleepMs }: { readonly sleepMs: number }): boolean {
  return sleepMs >= HOUSEKEEPING_MS || isFrequent(sleepMs);
}

/** A `Clock` that a test controls. Time passes only in `advance`, and wall time jumps in `stepWall`. */
export class ManualClock implements Clock {
  /** Time since the clock was made, in ms. */
  #elapsedMs = 0;
  #wallStartMs: number;
  #sleepers: { readonly dueMs: number; readonly sleepMs: number; readonly wake: () => void }[] = [];
  #watchers: (() => void)[] = [];
  /** The least time until a frequent sleep ends: a year has seven million of them. */
  #roundMs = 0;

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#wallStartMs = startMs;
  }

  now(): number {
    return this.#wallStartMs + this.#elapsedMs;
  }

  instant(): Instant {
    return instantAt(this.#elapsedMs);
  }

  /** Moves wall time without waking sleepers: back as when a user sets the clock, forward as after a suspend. */
  stepWall(ms: number): void {
    this.#wallStartMs += ms;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      if (ms <= 0) return resolve();
      const sleeper = {
        dueMs: this.#elapsedMs + (isFrequent(ms) ? Math.max(ms, this.#roundMs) : ms),
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

  /** Advances by `ms` milliseconds and wakes the sleepers that are due, in order. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#elapsedMs + ms;
    this.#roundMs = ms / ROUNDS;
    for (let next = this.#next(endMs); next; next = this.#next(endMs)) {
      this.#elapsedMs = Math.max(this.#elapsedMs, next.dueMs);
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      next.wake();
      // Work that was woken may sleep again within the same span.
      await settle();
    }
    this.#elapsedMs = endMs;
    this.#roundMs = 0;
  }

  /** Advances to the next sleeper, repeatedly, until `work` is done. */
  async during<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const end = () => {
      done = true;
      this.#notify();
    };
    work.then(end, end);
    // Work that was woken runs before more time passes.
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

  /** Number of waiting calls of `sleep`, without those in the background. */
  get sleeping(): number {
    return this.#sleepers.filter((sleeper) => !isBackground(sleeper)).length;
  }

  /** Time until the first of them is due, in ms; `undefined` if there is none. */
  get nextMs(): number | undefined {
    const next = this.#next(Number.POSITIVE_INFINITY, (sleeper) => !isBackground(sleeper));
    return next && next.dueMs - this.#elapsedMs;
  }

  /** Resolves when `count` calls of `sleep` are waiting. */
  async untilSleeping(count = 1): Promise<void> {
    await this.#until(() => this.sleeping >= count);
  }

  /** Resolves when `count` calls of `sleep(ms)` are waiting, in the background or not. */
  async untilSleepingFor(ms: number, count: number): Promise<void> {
    await this.#until(() => this.#sleepers.filter(({ sleepMs }) => sleepMs === ms).length >= count);
  }

  async #until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#watchers.push(resolve));
  }

  #notify(): void {
    for (const notify of this.#watchers.splice(0)) notify();
  }

  #next(endMs: number, counts: (sleeper: { readonly sleepMs: number }) => boolean = () => true) {
    return this.#sleepers
      .filter((sleeper) => sleeper.dueMs <= endMs && counts(sleeper))
      .sort((one, other) => one.dueMs - other.dueMs)[0];
  }
}

function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
