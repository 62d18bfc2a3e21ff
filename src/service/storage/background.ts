import type { Log } from '../../util/log.ts';

/** Tasks that no caller waits for: a failure is logged, and the end of the storage waits for them. */
export class Background {
  readonly #running = new Set<Promise<void>>();

  /** What a failed task should have tidied up is left to the next start. */
  hasFailed = false;

  constructor(private readonly log: Log) {}

  /** `what` names the task in the log when it fails. */
  start(what: string, task: Promise<void>): void {
    const running = task
      .catch((failure: unknown) => {
        this.hasFailed = true;
        this.log.warn('a background task failed', { what, reason: String(failure) });
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Resolves when nothing runs any more. */
  async ended(): Promise<void> {
    await Promise.all(this.#running);
  }
}
