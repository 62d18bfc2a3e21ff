import type { Clock } from '../../util/clock.ts';
import { SingleFlight } from '../../util/single-flight.ts';

/** Pause between two rounds of attempts, in ms. */
const RETRY_MS = 10_000;

interface RetryQueueOptions<Item> {
  readonly clock: Clock;
  /** Tries to finish `item`, and removes it from the queue when it is finished. */
  readonly attempt: (item: Item) => Promise<void>;
  readonly failed: (item: Item, error: unknown) => void;
}

/** Unfinished work that is attempted again and again in the background until it is done. */
export class RetryQueue<Item extends { readonly id: string }> {
  readonly #items = new Map<string, Item>();
  readonly #attempts = new SingleFlight<string, void>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(private readonly options: RetryQueueOptions<Item>) {}

  /** The items by id. */
  get items(): ReadonlyMap<string, Item> {
    return this.#items;
  }

  /** Adds `item`, or replaces the one with the same id. */
  put(item: Item): void {
    this.#items.set(item.id, item);
    this.#start();
  }

  remove(id: string): void {
    this.#items.delete(id);
  }

  /** Attempts `item` now; parallel callers wait for the same attempt. Throws its failure. */
  try(item: Item): Promise<void> {
    return this.#attempts.run(item.id, () => this.options.attempt(item));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  #start(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
      // An item may have been added after the last round.
      if (this.#items.size > 0 && !this.#stop.signal.aborted) this.#start();
    });
  }

  async #run(): Promise<void> {
    const { clock, failed } = this.options;
    while (this.#items.size > 0 && !this.#stop.signal.aborted) {
      for (const item of [...this.#items.values()])
        await this.try(item).catch((error) => failed(item, error));
      if (this.#items.size > 0) await clock.sleep(RETRY_MS, this.#stop.signal).catch(() => {});
    }
  }
}
