import { type Clock, elapsedMs, type Instant } from '../util/clock.ts';

/** Both count from the last byte of the request that went out. */
export interface AnswerLimits {
  /** Until the head of the answer. */
  readonly headMs: number;
  /** Until the end of an answer that is read whole; at least `headMs`. */
  readonly wholeMs: number;
}

/** Aborts its signal when an answer does not come in time, however steadily it drips. */
export class AnswerDeadline {
  readonly #late = new AbortController();
  readonly #over = new AbortController();
  #sentAt: Instant;
  #limitMs: number;

  /** `reason`: of the abort. */
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

  /** A part of the request went out. */
  sent(): void {
    this.#sentAt = this.clock.instant();
  }

  /** The head of the answer is there. */
  headCame(): void {
    this.#limitMs = this.limits.wholeMs;
  }

  /** From now on nothing is late. */
  release(): void {
    this.#over.abort();
  }

  async #watch(reason: (limitMs: number) => Error): Promise<void> {
    for (let leftMs = this.#limitMs; leftMs > 0; leftMs = this.#limitMs - elapsedMs(this.clock, this.#sentAt))
      await this.clock.sleep(leftMs, this.#over.signal);
    this.#late.abort(reason(this.#limitMs));
  }
}
