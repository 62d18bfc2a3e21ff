/**
 * Reads a body piece by piece, and stops waiting for the next piece as soon as `signal` is aborted, so that a sender
 * that stalls cannot keep a failed write from ending.
 */
export class BodyReader {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #stopWaiting: ((reason: unknown) => void) | undefined;

  constructor(
    body: AsyncIterable<Uint8Array>,
    private readonly signal: AbortSignal,
  ) {
    this.#iterator = body[Symbol.asyncIterator]();
    // One listener for the whole body, because one for each piece would cost more than the piece.
    signal.addEventListener('abort', () => this.#stopWaiting?.(signal.reason), { once: true });
  }

  /** Returns the next piece that is not empty; `undefined` at the end. Rejects with what the body throws or the signal's reason. */
  async next(): Promise<Uint8Array | undefined> {
    for (;;) {
      const step = await this.#step();
      if (step.done) return undefined;
      if (step.value.length > 0) return step.value;
    }
  }

  #step(): Promise<IteratorResult<Uint8Array>> {
    if (this.signal.aborted) return Promise.reject(this.signal.reason);
    return new Promise((resolve, reject) => {
      this.#stopWaiting = reject;
      this.#iterator.next().then(resolve, reject);
    });
  }

  /** Tells the sender to stop. Does not wait for it, because it may be stalled. */
  close(): void {
    this.#iterator.return?.().catch(() => {});
  }
}

/** Yields `body`, and ends when `last` has resolved. Throws what `last` throws. */
export async function* endedBy(
  body: AsyncIterable<Uint8Array>,
  last: () => Promise<void>,
): AsyncIterable<Uint8Array> {
  yield* body;
  await last();
}
