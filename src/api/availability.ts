import { type Clock, type Instant, instantIn, LONG_AGO } from '../util/clock.ts';
import { ApiError, isOutage } from './errors.ts';
import type { Availability } from './remote.ts';

/** Minimum time between two calls of the listeners, in ms: a service may answer some calls and refuse others. */
const BACK_EVERY_MS = 10_000;

/** Learns from the end of each call whether the service answers. */
export class CallAvailability implements Availability {
  readonly #listeners = new Set<() => void>();
  awaySince: Instant | undefined;
  /** Whether the service was away since the listeners were last called. */
  #isReturnUnreported = false;
  #nextReport: Instant = LONG_AGO;

  constructor(private readonly clock: Clock) {}

  onBack(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Must be called when a call has its result. */
  succeeded(): void {
    this.awaySince = undefined;
    if (!this.#isReturnUnreported || this.#nextReport > this.clock.instant()) return;
    this.#isReturnUnreported = false;
    this.#nextReport = instantIn(this.clock, BACK_EVERY_MS);
    for (const listener of [...this.#listeners]) listener();
  }

  /** Must be called when a call has failed, after all retries. A refusal is an answer too. */
  failed(error: unknown): void {
    if (isOutage(error)) {
      this.awaySince ??= this.clock.instant();
      this.#isReturnUnreported = true;
    } else if (error instanceof ApiError) this.succeeded();
  }
}
