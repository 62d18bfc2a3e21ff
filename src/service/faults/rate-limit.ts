import { type Clock, type Instant, msBetween } from '../../util/clock.ts';

interface Bucket {
  calls: number;
  at: Instant;
}

/** A bucket of calls for each caller, refilled at a steady rate. A call that is refused takes nothing out. */
export class RateLimit {
  readonly #buckets = new Map<string, Bucket>();

  constructor(
    private readonly perSecond: number,
    private readonly burst: number,
    private readonly clock: Clock,
  ) {}

  /** Takes a call out: 0, or the whole seconds after which there is one again. */
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
