import { type Clock, elapsedMs } from '../../util/clock.ts';

/** Downloads of one reader at a time, at most. Each holds a block in memory. */
const LANES_MAX = 4;

/** A connection that brings so many bytes in a millisecond (32 MiB/s) is fast enough alone. */
const FAST_BYTES_PER_MS = (32 * 1024 * 1024) / 1000;

/** How long a reader has waited for bytes before its waiting says something. */
const WINDOW_MS = 1_000;

/** How many blocks each download has brought by then, as the first ones come at different times. */
const BLOCKS_MIN = 2;

/** Twice the downloads must bring so much more, or they only crowd each other. */
const GAIN_MIN = 1.3;

/**
 * How many downloads a reader has at a time: one, until it is seen that the reader waits for a slow service; then
 * more for as long as more bring more. A service that limits each connection is so read at several times its
 * speed, and one whose line is full is left with a single download. Time in which the reader itself is busy
 * does not count.
 */
export class Pace {
  #lanes = 1;
  #blocks = 0;
  #bytes = 0;
  #waitedMs = 0;
  /** What half as many downloads brought, in bytes a millisecond. */
  #rateBefore = 0;
  #isSettled = false;

  constructor(private readonly clock: Clock) {}

  get lanes(): number {
    return this.#lanes;
  }

  came(sizeBytes: number): void {
    this.#bytes += sizeBytes;
  }

  async waitFor(change: Promise<void>): Promise<void> {
    const since = this.clock.instant();
    await change;
    this.#waitedMs += elapsedMs(this.clock, since);
  }

  /** Thinks anew how many there should be, between two blocks. */
  review(): void {
    if (this.#isSettled) return;
    const blocks = this.#blocks++;
    if (this.#waitedMs < WINDOW_MS || blocks < BLOCKS_MIN * this.#lanes) return;
    const rate = this.#bytes / this.#waitedMs;
    this.#blocks = 1;
    this.#bytes = 0;
    this.#waitedMs = 0;
    if (this.#lanes === 1) {
      if (rate < FAST_BYTES_PER_MS) this.#try(2, rate);
      return;
    }
    if (rate < this.#rateBefore * GAIN_MIN) {
      this.#lanes /= 2;
      this.#isSettled = true;
    } else if (this.#lanes < LANES_MAX) this.#try(this.#lanes * 2, rate);
    else this.#isSettled = true;
  }

  #try(lanes: number, rateBefore: number): void {
    this.#lanes = lanes;
    this.#rateBefore = rateBefore;
  }
}
