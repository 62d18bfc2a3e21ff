import { type LinkedSignal, linkedSignal } from '../../util/linked-signal.ts';
import type { Context } from '../method.ts';

/** How long a LOCK waits for requests that are changing what it wants, in ms: most are about to commit. */
const WAIT_MS_MAX = 2_000;

/** One LOCK waiting for the requests in its way. */
export class ClaimWait {
  readonly #context: Context;
  readonly #over = new AbortController();
  readonly #linked: LinkedSignal;
  #timeUp: Promise<boolean> | undefined;

  constructor(context: Context) {
    this.#context = context;
    this.#linked = linkedSignal(context.signal, this.#over.signal);
  }

  /** Whether the request with the claims `id` has ended in time. Rejects when the client goes away. */
  until(id: string): Promise<boolean> {
    const { clock, drive } = this.#context;
    const { signal } = this.#linked;
    this.#timeUp ??= clock.sleep(WAIT_MS_MAX, signal).then(() => false);
    const ended = drive.state.locks.claimsEnd(id, signal).then(() => true);
    return Promise.race([ended, this.#timeUp]);
  }

  /** To be called when nothing is waited for any more. */
  end(): void {
    this.#over.abort();
    this.#linked.release();
  }
}
