/**
 * The buffers of upload parts, reused from part to part. All uploads share one budget, but each may always
 * have one buffer: so none waits for another one's slow sender.
 */
export class PartBuffers {
  readonly #idle: Buffer[] = [];
  readonly #waiting: (() => void)[] = [];
  #lentCount = 0;

  constructor(
    readonly bufferBytes: number,
    private readonly countMax: number,
  ) {}

  /** A buffer for an upload that has `heldCount` of them, once there is one. Rejects with the signal's reason. */
  async take(heldCount: () => number, signal: AbortSignal): Promise<Buffer> {
    while (heldCount() > 0 && this.#lentCount >= this.countMax) await this.#change(signal);
    signal.throwIfAborted();
    this.#lentCount++;
    return this.#idle.pop() ?? Buffer.allocUnsafeSlow(this.bufferBytes);
  }

  /** Takes back a buffer that nobody reads any more. */
  giveBack(buffer: Buffer): void {
    if (this.#idle.length < this.countMax) this.#idle.push(buffer);
    this.forget();
  }

  /** Takes a buffer off the books that may still be read by a call that was given up. */
  forget(): void {
    this.#lentCount--;
    // The idle ones are kept only while there is work: a quiet gateway holds no memory for uploads.
    if (this.#lentCount === 0) this.#idle.length = 0;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(signal.reason);
      const stop = () => reject(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
      this.#waiting.push(() => {
        signal.removeEventListener('abort', stop);
        resolve();
      });
    });
  }
}
