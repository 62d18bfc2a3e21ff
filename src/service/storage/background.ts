import type { Log } from '../../util/log.ts';

/** Tasks that no caller waits for. A failure is logged, and closing the storage waits for all of them. */
export class Background {
  readonly #running = new Set<Promise<unknown>>();

  /** Whether a task has failed. The next start then looks for leftovers. */
  hasFailed = false;

  constructor(private readonly log: Log) {}

  /** Starts a task. `what` names it in the log when it fails. */
  start(what: string, task: Promise<unknown>): void {
    const running = task
      .catch((failure: unknown) => {
        this.hasFailed = true;
        this.log.warn('a background task failed', { what, reason: String(failure) });
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when no task runs. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }
}
