import type { Transaction } from '../committer.ts';
import type { Reserve } from './reserve.ts';

/** Work whose rows are in the database, so that it can go on after a restart. */
interface Steps {
  /** Whether nothing is left to do. */
  readonly isEmpty: boolean;
  step(transaction: Transaction): void;
}

/** Runs the steps of some work one transaction at a time, so that other calls get their turn. */
export class StepRunner {
  #running: Promise<void> | undefined;

  constructor(private readonly steps: Steps) {}

  /** Runs until nothing is left or the storage is closed. A call during a run joins it. */
  run(reserve: Reserve): Promise<void> {
    this.#running ??= this.#run(reserve).finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #run(reserve: Reserve): Promise<void> {
    const { steps } = this;
    while (!reserve.isClosed && !steps.isEmpty)
      await reserve.commit((transaction) => steps.step(transaction));
  }
}
