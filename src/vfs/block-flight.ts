import type { BlockRun } from './block-run.ts';

/**
 * One block on its way from the service. Its bytes are held from the first to the last, so that any number
 * of readers can follow, wherever they come in.
 */
export class BlockFlight {
  readonly chunks: Uint8Array[] = [];
  #filledBytes = 0;
  #failure: { readonly reason: unknown } | undefined;
  #waiting = new Set<() => void>();

  constructor(
    readonly run: BlockRun,
    readonly index: number,
    readonly sizeBytes: number,
  ) {}

  get missingBytes(): number {
    return this.sizeBytes - this.#filledBytes;
  }

  /** Adds bytes, at most the missing ones. */
  push(chunk: Uint8Array): void {
    this.chunks.push(chunk);
    this.#filledBytes += chunk.length;
    this.#wake();
  }

  /** The missing bytes will not come: who waits for them gets `reason`. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#wake();
  }

  throwIfFailed(): void {
    if (this.#failure) throw this.#failure.reason;
  }

  /** Resolves when there are more bytes, or none will come; rejects with the signal's reason. */
  change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const wake = () => {
        signal.removeEventListener('abort', stop);
        resolve();
      };
      const stop = () => {
        this.#waiting.delete(wake);
        reject(signal.reason);
      };
      signal.addEventListener('abort', stop, { once: true });
      this.#waiting.add(wake);
    });
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }
}

/** A reader's place in a flight: the bytes from `position` up to `end` of the block. */
export class FlightCursor {
  #next = 0;
  /** Where the chunk `#next` begins in the block. */
  #nextAt = 0;

  constructor(
    private readonly flight: BlockFlight,
    private position: number,
    private readonly end: number,
  ) {}

  get isDone(): boolean {
    return this.position >= this.end;
  }

  /** The next bytes, if they are there. Throws what made the flight fail. */
  take(): Uint8Array | undefined {
    this.flight.throwIfFailed();
    for (;;) {
      const chunk = this.flight.chunks[this.#next];
      if (!chunk || this.isDone) return undefined;
      const from = this.position - this.#nextAt;
      const to = Math.min(chunk.length, this.end - this.#nextAt);
      this.#next++;
      this.#nextAt += chunk.length;
      if (from >= to) continue;
      this.position += to - from;
      return from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to);
    }
  }
}
