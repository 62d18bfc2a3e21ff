import { Condition } from '../util/wait.ts';

/**
 * A body whose bytes are pushed into it, by one request after another. It holds one piece that is not read yet. A reader that
 * leaves early does not end it: `fail` does, with the reason.
 */
export class PushedBody implements AsyncIterable<Uint8Array>, AsyncIterator<Uint8Array> {
  #receivedBytes = 0;
  #piece: Uint8Array | undefined;
  #isComplete = false;
  #failure: { readonly error: unknown } | undefined;
  readonly #changed = new Condition();
  readonly #never = new AbortController().signal;
  #read: () => void = () => {};
  /** Resolves when the first bytes are asked for. */
  readonly isRead = new Promise<void>((resolve) => {
    this.#read = resolve;
  });

  /** Number of bytes that were pushed. */
  get receivedBytes(): number {
    return this.#receivedBytes;
  }

  get isComplete(): boolean {
    return this.#isComplete;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    this.#read();
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      const value = this.#piece;
      if (value) {
        this.#piece = undefined;
        this.#changed.notify();
        return { done: false, value };
      }
      if (this.#isComplete) return { done: true, value: undefined };
      await this.#changed.wait(this.#never);
    }
  }

  /** Adds bytes once those before were read. Rejects if the body has failed, or with the reason of `signal`. */
  async push(bytes: Uint8Array, signal: AbortSignal): Promise<void> {
    while (this.#piece && !this.#failure) await this.#changed.wait(signal);
    if (this.#failure) throw this.#failure.error;
    signal.throwIfAborted();
    this.#piece = bytes;
    this.#receivedBytes += bytes.length;
    this.#changed.notify();
  }

  /** Ends the body after the bytes that were pushed. */
  complete(): void {
    this.#isComplete = true;
    this.#changed.notify();
  }

  /** Makes the reader throw `error`, unless the body is complete or has failed. */
  fail(error: unknown): void {
    if (this.#isComplete || this.#failure) return;
    this.#failure = { error };
    this.#piece = undefined;
    this.#changed.notify();
  }
}
