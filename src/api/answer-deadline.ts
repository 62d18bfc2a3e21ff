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

/** Minimum number of bytes of a body within its limit. A slower one comes sooner over a new connection. */
const PROGRESS_BYTES_MIN = 16 * 1024;

/**
 * Yields the bytes of `body`. Throws when almost none came in `silenceMs` of waiting for them. The time in which the reader
 * does not ask for the next bytes does not count.
 */
export async function* inSteadyProgress(
  body: AsyncIterable<Uint8Array>,
  clock: Clock,
  silenceMs: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let waitedMs = 0;
  let bytes = 0;
  let since = clock.instant();
  for await (const chunk of body) {
    waitedMs += elapsedMs(clock, since);
    bytes += chunk.length;
    if (bytes >= PROGRESS_BYTES_MIN) {
      waitedMs = 0;
      bytes = 0;
    } else if (waitedMs >= silenceMs) {
      throw new Error(`only ${bytes} bytes arrived in ${Math.round(waitedMs / 1000)} s`);
    }
    yield chunk;
    since = clock.instant();
  }
}
