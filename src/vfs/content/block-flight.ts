import type { BlockBuffers, LentBuffer } from './block-buffers.ts';
import type { BlockRun } from './block-run.ts';

/** Copied at a time: what a reader gets is its own, as the buffer of a block is used again. */
const COPY_BYTES = 64 * 1024;

/**
 * One block, or the part of it from `start` up to `end`, on its way from the service. Its bytes stay for as long
 * as somebody holds it, so that any number of readers can follow, wherever they come in.
 */
export class BlockFlight {
  readonly #buffer: LentBuffer;
  #filledBytes = 0;
  /** The network's own bytes that came last: whoever is that far gets them without a copy. */
  #latest: Uint8Array = new Uint8Array();
  #failure: { readonly reason: unknown } | undefined;
  #waiting = new Set<() => void>();
  /** Whether the block goes into the cache. */
  isWanted = false;
  /** Whether the cache's disk was too far behind to take it. */
  isRefused = false;

  /** `start`, `end`: within the block. Whoever makes it holds it. */
  constructor(
    buffers: BlockBuffers,
    readonly run: BlockRun,
    readonly index: number,
    readonly start: number,
    readonly end: number,
  ) {
    this.#buffer = buffers.lend(end - start);
  }

  get missingBytes(): number {
    return this.end - this.start - this.#filledBytes;
  }

  get buffer(): LentBuffer {
    return this.#buffer;
  }

  has(offset: number): boolean {
    return offset >= this.start && offset < this.end;
  }

  hold(): void {
    this.#buffer.hold();
  }

  release(): void {
    this.#buffer.release();
  }

  /** Adds bytes, at most the missing ones. */
  push(chunk: Uint8Array): void {
    this.#buffer.bytes.set(chunk, this.#filledBytes);
    this.#filledBytes += chunk.length;
    this.#latest = chunk;
    this.#wake();
  }

  /** The missing bytes will not come: who waits for them gets `reason`. */
  fail(reason: unknown): void {
    this.#failure ??= { reason };
    this.#wake();
  }

  /**
   * What is there of the bytes from `from` up to `to` of the block; maybe only the first of them, or nothing yet.
   * Throws what made it fail.
   */
  available(from: number, to: number): Uint8Array {
    if (this.#failure) throw this.#failure.reason;
    const first = from - this.start;
    const last = Math.min(to - this.start, this.#filledBytes);
    const latestStart = this.#filledBytes - this.#latest.length;
    if (first >= latestStart)
      return this.#latest.subarray(first - latestStart, Math.max(0, last - latestStart));
    return Buffer.from(this.#buffer.bytes.subarray(first, Math.min(last, first + COPY_BYTES)));
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
