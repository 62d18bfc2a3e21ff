import { type Clock, type Instant, msBetween } from '../../util/clock.ts';
import { checkFaults, type FaultSettings, type FaultSwitch } from './switches.ts';

/** The faults that a running service injects now. */
export class Faults {
  #settings: FaultSettings = {};
  #random = seededRandom(0);
  #rateLimit: RateLimit | undefined;
  readonly #leftInBurst = new Map<FaultSwitch, number>();

  /** Throws `FaultSettingError`. */
  constructor(
    settings: FaultSettings,
    readonly clock: Clock,
  ) {
    this.set(settings);
  }

  /** Replaces all faults and restarts the random numbers. Throws `FaultSettingError`. */
  set(settings: FaultSettings): void {
    checkFaults(settings);
    this.#settings = { ...settings };
    this.#random = seededRandom(this.value('seed'));
    this.#leftInBurst.clear();
    const perSecond = this.value('rate-per-second');
    const burst = this.value('rate-burst') || Math.max(1, perSecond);
    this.#rateLimit = perSecond > 0 ? new RateLimit(perSecond, burst, this.clock) : undefined;
  }

  /** Returns the value of a fault; 0 when it is off. */
  value(name: FaultSwitch): number {
    return this.#settings[name] ?? 0;
  }

  /** Returns whether a fault with a share happens this time. A fault that is off uses no random number. */
  happens(name: FaultSwitch): boolean {
    const share = this.value(name);
    return share > 0 && this.#random() < share;
  }

  /** Like `happens`; a fault that has happened goes on for a burst. */
  happensInBursts(name: FaultSwitch): boolean {
    const left = this.#leftInBurst.get(name) ?? 0;
    if (left === 0 && !this.happens(name)) return false;
    this.#leftInBurst.set(name, left === 0 ? Math.max(0, this.value('error-burst') - 1) : left - 1);
    return true;
  }

  /** Returns an integer from 0 to below `end`. */
  random(end: number): number {
    return Math.floor(this.#random() * end);
  }

  /** Returns how many seconds a call of `caller` must wait. 0: it may go on, and is counted. */
  secondsOverRate(caller: string): number {
    return this.#rateLimit?.take(caller) ?? 0;
  }

  get isRateLimited(): boolean {
    return this.#rateLimit !== undefined;
  }
}

/** Returns pseudo-random numbers in [0, 1), the same for the same seed (mulberry32). */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Bucket {
  calls: number;
  at: Instant;
}

/** A token bucket for each caller, refilled at a steady rate. A refused call takes no token. */
class RateLimit {
  readonly #buckets = new Map<string, Bucket>();

  constructor(
    private readonly perSecond: number,
    private readonly burst: number,
    private readonly clock: Clock,
  ) {}

  /** Takes a token. Returns 0, or after how many whole seconds there is one. */
  take(caller: string): number {
    const now = this.clock.instant();
    const bucket = this.#buckets.get(caller) ?? { calls: this.burst, at: now };
    this.#buckets.set(caller, bucket);
    bucket.calls = Math.min(this.burst, bucket.calls + (msBetween(bucket.at, now) / 1000) * this.perSecond);
    bucket.at = now;
    if (bucket.calls < 1) return Math.max(1, Math.ceil((1 - bucket.calls) / this.perSecond));
    bucket.calls -= 1;
    return 0;
  }
}
