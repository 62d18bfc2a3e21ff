import type { BlockFlight } from './block-flight.ts';
import type { BlockRun } from './block-run.ts';

/** What one reader holds: the flight that it reads with its run, and the run ahead of it. */
export class Held {
  #flight: BlockFlight | undefined;
  #run: BlockRun | undefined;
  #ahead: BlockRun | undefined;

  get isAhead(): boolean {
    return this.#ahead !== undefined;
  }

  follow(flight: BlockFlight): void {
    flight.hold();
    this.#flight?.release();
    this.#flight = flight;
    if (flight.run === this.#run) return;
    flight.run.hold();
    this.#run?.leave(true);
    this.#run = flight.run;
  }

  sendAhead(run: BlockRun): void {
    run.hold();
    this.#ahead = run;
  }

  leave(isContent: boolean): void {
    this.#run?.leave(isContent);
    this.#ahead?.leave(isContent);
    this.#flight?.release();
  }
}
