import { type Clock, elapsedMs, type Instant } from '../util/clock.ts';

/** Both limits count from the last byte of the request. */
export interface AnswerLimits {
  /** Time until the head of the answer. */
  readonly headMs: number;
  /** Time until the end of an answer that is read whole; at least `headMs`. */
  readonly wholeMs: number;
}

/** Aborts its signal when an answer does not come in time, even if it makes slow progress. */
export class AnswerDeadline {
  readonly #late = new AbortController();
  readonly #over = new AbortController();
  #sentAt: Instant;
  #limitMs: number;

  /** `reason` returns the reason of the abort. */
  constructor(
    private readonly clock: Clock,
    private readonly limits: AnswerLimits,
    reason: (limitMs: number) => Error,
  ) {
    this.#sentAt = clock.instant();
    this.#limitMs = limits.headMs;
    this.#watch(reason).catch(() => {});
  }

  get signal(): AbortSignal {
    return this.#late.signal;
  }

  /** Notes that a part of the request was sent. */
  sent(): void {
    this.#sentAt = this.clock.instant();
  }

  /** Notes that the head of the answer has come. */
  headCame(): void {
    this.#limitMs = this.limits.wholeMs;
  }

  /** Ends the time limit. */
  release(): void {
    this.#over.abort();
  }

  async #watch(reason: (limitMs: number) => Error): Promise<void> {
    for (let leftMs = this.#limitMs; leftMs > 0; leftMs = this.#limitMs - elapsedMs(this.clock, this.#sentAt))
      await this.clock.sleep(leftMs, this.#over.signal);
    this.#late.abort(reason(this.#limitMs));
  }
}
