import { Condition } from '../../util/wait.ts';

/**
 * The buffers of upload parts, reused from part to part. All uploads share one budget, but each may always have one
 * buffer, so that no upload waits for the slow sender of another.
 */
export class PartBuffers {
  readonly #idle: Buffer[] = [];
  readonly #returned = new Condition();
  #lentCount = 0;

  constructor(
    readonly bufferBytes: number,
    private readonly countMax: number,
  ) {}

  /** Takes a buffer for an upload that has `ownCount` of them, once there is one. Rejects with the signal's reason. */
  async take(ownCount: () => number, signal: AbortSignal): Promise<Buffer> {
    while (ownCount() > 0 && this.#lentCount >= this.countMax) await this.#returned.wait(signal);
    signal.throwIfAborted();
    this.#lentCount++;
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(this.bufferBytes);
  }

  /** Returns a buffer that nobody reads any more. */
  giveBack(buffer: Buffer): void {
    if (this.#idle.length < this.countMax) this.#idle.push(buffer);
    this.drop();
  }

  /** Drops a buffer that an aborted call may still read. */
  drop(): void {
    this.#lentCount--;
    // Without uploads no memory is kept for them.
    if (this.#lentCount === 0) this.#idle.length = 0;
    this.#returned.notify();
  }
}
