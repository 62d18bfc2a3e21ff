import type { BlockFlight, BlockRun } from './download-run.ts';

/** What one reader holds: the flight that it reads with its run, the run ahead of it, and the blocks it reads next. */
export class Held {
  /** By index; each is the only one of its run. */
  readonly #next = new Map<number, BlockFlight>();
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
    if (flight.run !== this.#run) {
      flight.run.hold();
      this.#run?.leave(true);
      this.#run = flight.run;
    }
    if (this.#next.get(flight.index) === flight) this.#cancel(flight, true);
  }

  /** Holds a flight that is to be followed later. */
  reserve(flight: BlockFlight): void {
    flight.hold();
    flight.run.hold();
    this.#next.set(flight.index, flight);
  }

  reserved(index: number): BlockFlight | undefined {
    return this.#next.get(index);
  }

  /** How many flights are held for later. */
  get reservedCount(): number {
    return this.#next.size;
  }

  sendAhead(run: BlockRun): void {
    run.hold();
    this.#ahead = run;
  }

  leave(isContent: boolean): void {
    for (const flight of [...this.#next.values()]) this.#cancel(flight, isContent);
    this.#run?.leave(isContent);
    this.#ahead?.leave(isContent);
    this.#flight?.release();
  }

  #cancel(flight: BlockFlight, isContent: boolean): void {
    this.#next.delete(flight.index);
    flight.run.leave(isContent);
    flight.release();
  }
}
