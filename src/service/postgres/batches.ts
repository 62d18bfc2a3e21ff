import { systemClock } from '../../util/clock.ts';

/** Time after which a batch does not hold up the next one any more, in ms. */
const SLOW_MS = 250;

/** Batches that run at the same time, if they are slow. */
const AT_ONCE_MAX = 4;

/** Gathers what comes at the same time. A batch begins when the one before it ends, or has taken a while. */
export class Batches<Item> {
  #waiting: Item[] = [];
  #running = 0;
  /** Whether a batch is about to begin, or is running and not slow yet. */
  #isBusy = false;

  /** `run` handles a batch of up to `sizeMax` items, and never rejects. */
  constructor(
    private readonly sizeMax: number,
    private readonly run: (batch: readonly Item[]) => Promise<void>,
  ) {}

  add(item: Item): void {
    this.#waiting.push(item);
    this.#start();
  }

  /** Waits one turn of the event loop: what comes together shares a batch. */
  #start(): void {
    if (this.#isBusy || this.#waiting.length === 0 || this.#running >= AT_ONCE_MAX) return;
    this.#isBusy = true;
    setImmediate(() => void this.#runNext());
  }

  async #runNext(): Promise<void> {
    const ended = new AbortController();
    let isFast = true;
    const letNext = () => {
      if (isFast) this.#isBusy = false;
      isFast = false;
      this.#start();
    };
    systemClock.sleep(SLOW_MS, ended.signal).then(letNext, () => {});
    this.#running += 1;
    await this.run(this.#waiting.splice(0, this.sizeMax));
    this.#running -= 1;
    ended.abort();
    letNext();
  }
}
