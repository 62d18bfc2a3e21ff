import { type Clock, elapsedMs } from '../../util/clock.ts';

/** Maximum number of downloads of one reader at a time. Each keeps a block in memory. */
const DOWNLOADS_MAX = 4;

/** Speed from which on one connection is enough, in bytes a millisecond (32 MiB/s). */
const FAST_BYTES_PER_MS = (32 * 1024 * 1024) / 1000;

/** How long a reader has to wait for bytes before its speed is measured, in ms. */
const WINDOW_MS = 1_000;

/** Blocks that each download brings within a measurement: the first blocks of new downloads come at different times. */
const BLOCKS_MIN = 2;

/** Gain that twice the downloads must bring; below it they only compete with each other. */
const GAIN_MIN = 1.3;

/**
 * How many downloads a reader has at a time: one until the reader has to wait for a slow service, then twice as many
 * for as long as that brings more. A service that limits each connection is read at several times that limit; a service
 * whose line is full gets a single download. Time in which the reader itself is busy does not count.
 */
export class Parallelism {
  #downloads = 1;
  #blocks = 0;
  #bytes = 0;
  #waitedMs = 0;
  /** Speed with half as many downloads, in bytes a millisecond. */
  #speedBefore = 0;
  #isSettled = false;

  constructor(private readonly clock: Clock) {}

  get downloads(): number {
    return this.#downloads;
  }

  /** Counts bytes that the reader got. */
  received(sizeBytes: number): void {
    this.#bytes += sizeBytes;
  }

  /** Waits for `change`, and counts the time that it takes. */
  async waitFor(change: Promise<void>): Promise<void> {
    const start = this.clock.instant();
    await change;
    this.#waitedMs += elapsedMs(this.clock, start);
  }

  /** Adjusts the number of downloads. To be called between two blocks. */
  adjust(): void {
    if (this.#isSettled) return;
    const blocks = this.#blocks++;
    if (this.#waitedMs < WINDOW_MS || blocks < BLOCKS_MIN * this.#downloads) return;
    const speed = this.#bytes / this.#waitedMs;
    this.#blocks = 1;
    this.#bytes = 0;
    this.#waitedMs = 0;
    if (this.#downloads === 1) {
      if (speed < FAST_BYTES_PER_MS) this.#try(2, speed);
      return;
    }
    if (speed < this.#speedBefore * GAIN_MIN) {
      this.#downloads /= 2;
      this.#isSettled = true;
    } else if (this.#downloads < DOWNLOADS_MAX) this.#try(this.#downloads * 2, speed);
    else this.#isSettled = true;
  }

  #try(downloads: number, speedBefore: number): void {
    this.#downloads = downloads;
    this.#speedBefore = speedBefore;
  }
}
