import { setMaxListeners } from 'node:events';

/**
 * Calls `listener` with the signal's reason when `signal` is aborted; before this returns, if it is aborted already. The
 * returned function removes the listener, which a long-lived signal would otherwise keep forever.
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  const listen = () => listener(signal?.reason);
  if (signal?.aborted) listen();
  else signal?.addEventListener('abort', listen, { once: true });
  return () => signal?.removeEventListener('abort', listen);
}

/** A signal that follows others until it is released. */
export interface LinkedSignal {
  readonly signal: AbortSignal;
  /** Removes the listeners from the sources. To be called when the work is over; an abort does the same. */
  readonly release: () => void;
}

/**
 * Returns a signal that is aborted with the first of `sources`. Does not use `AbortSignal.any`: on Node 20 each call
 * leaves an entry at a long-lived source, until its `Set` is full at 2^24 entries.
 */
export function linkedSignal(...sources: readonly AbortSignal[]): LinkedSignal {
  const linked = new AbortController();
  const links: (() => void)[] = [];
  const release = () => {
    for (const unlink of links.splice(0)) unlink();
  };
  for (const source of sources) {
    if (source.aborted) linked.abort(source.reason);
    if (linked.signal.aborted) break;
    // No leak, even with many listeners: each piece of work removes its own when it ends.
    setMaxListeners(0, source);
    const unlink = onAbort(source, (reason) => {
      linked.abort(reason);
      release();
    });
    links.push(unlink);
  }
  if (linked.signal.aborted) release();
  return { signal: linked.signal, release };
}

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
