import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import type { Operation } from './committer.ts';
import { StorageError } from './storage.ts';

/** How long a commit waits for earlier ones before it is refused, in ms (service-api.md §9.6). */
const WAIT_MS_MAX = 1000;

/** Maximum number of commits in one transaction. */
const BATCH_MAX = 256;

/** An operation that waits for its turn, and its caller. */
export interface Waiting {
  readonly queued: Instant;
  readonly until: AbortSignal | undefined;
  readonly operation: Operation<unknown>;
  readonly resolve: (result: unknown) => void;
  readonly reject: (failure: unknown) => void;
}

/**
 * The queue of a committer. `commit` gets the operations that wait at the same moment, answers as many as fit in one
 * transaction, at least one, and returns the others. It throws nothing.
 */
export class CommitQueue {
  #waiting: Waiting[] = [];
  #isScheduled = false;
  #isClosed = false;
  #idle: (() => void)[] = [];

  constructor(
    private readonly clock: Clock,
    private readonly waitMs = WAIT_MS_MAX,
    private readonly commit: (batch: readonly Waiting[]) => readonly Waiting[] | Promise<readonly Waiting[]>,
  ) {}

  /** See `Committer.run`. */
  run<T>(operation: Operation<T>, until?: AbortSignal): Promise<T> {
    if (this.#isClosed) return Promise.reject(new Error('the storage is closed'));
    return new Promise((resolve, reject) => {
      this.#waiting.push({
        queued: this.clock.instant(),
        until,
        operation,
        // The queue does not know the operations' types; the result is this operation's own.
        resolve: (result) => resolve(result as T),
        reject,
      });
      this.#schedule();
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** See `Committer.close`. */
  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#isScheduled) await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** Waits one turn of the event loop: operations that arrive together share a batch, and reads run between batches. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => void this.#flush());
  }

  async #flush(): Promise<void> {
    const batch: Waiting[] = [];
    for (const waiting of this.#waiting.splice(0, BATCH_MAX)) {
      if (!this.#isTooLate(waiting)) batch.push(waiting);
      else if (waiting.until) waiting.reject(waiting.until.reason);
      else waiting.reject(new StorageError({ kind: 'write', tag: 'too_many_write_operations' }));
    }
    // Operations that did not fit come first in the next batch.
    if (batch.length > 0) this.#waiting = [...(await this.commit(batch)), ...this.#waiting];
    this.#isScheduled = false;
    if (this.#waiting.length > 0) this.#schedule();
    else for (const resolve of this.#idle.splice(0)) resolve();
  }

  #isTooLate({ queued, until }: Waiting): boolean {
    return until ? until.aborted : elapsedMs(this.clock, queued) > this.waitMs;
  }
}

/** Answers the callers of the first operations with their outcomes, and returns the others. */
export function answered(
  batch: readonly Waiting[],
  outcomes: readonly ({ readonly value: unknown } | { readonly error: unknown })[],
): readonly Waiting[] {
  for (const [index, outcome] of outcomes.entries()) {
    if ('value' in outcome) batch[index]?.resolve(outcome.value);
    else batch[index]?.reject(outcome.error);
  }
  return batch.slice(outcomes.length);
}
