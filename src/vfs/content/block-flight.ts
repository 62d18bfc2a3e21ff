import type { BlockRun } from './block-run.ts';

/**
 * One block on its way from the service. Its bytes are held from the first to the last, so that any number
 * of readers can follow, wherever they come in.
 */
export class BlockFlight {
  readonly bytes: Buffer;
  #filledBytes = 0;
  #failure: { readonly reason: unknown } | undefined;
  #waiting = new Set<() => void>();

  constructor(
    readonly run: BlockRun,
    readonly index: number,
    sizeBytes: number,
  ) {
    // One buffer: keeping the network's many small ones for as long as a block lives costs more than the copy.
    this.bytes = Buffer.allocUnsafeSlow(sizeBytes);
  }

  get missingBytes(): number {
    return this.bytes.length - this.#filledBytes;
  }

  /** Adds bytes, at most the missing ones. */
  push(chunk: Uint8Array): void {
    this.bytes.set(chunk, this.#filledBytes);
    this.#filledBytes += chunk.length;
    this.#wake();
  }

  /** The missing bytes will not come: who waits for them gets `reason`. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#wake();
  }

  /** What is there of the bytes from `start` up to `end` of the block; maybe nothing yet. Throws what made it fail. */
  available(start: number, end: number): Uint8Array {
    if (this.#failure) throw this.#failure.reason;
    return this.bytes.subarray(start, Math.max(start, Math.min(end, this.#filledBytes)));
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
