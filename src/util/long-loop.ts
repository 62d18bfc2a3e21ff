import { setImmediate as otherTasks } from 'node:timers/promises';
import { elapsedMs, systemClock } from './clock.ts';

/** How long a loop may run before other work has its turn, in ms. */
const TURN_MS = 10;

/** Gives other work its turn in a loop that may take long: `if (loop.isDue) await loop.pause()`. */
export class LongLoop {
  #since = systemClock.instant();

  /** Whether other work has waited for long enough. */
  get isDue(): boolean {
    return elapsedMs(systemClock, this.#since) >= TURN_MS;
  }

  async pause(): Promise<void> {
    await otherTasks();
    this.#since = systemClock.instant();
  }
}
