import type { Availability } from '../../api/remote.ts';
import { type Clock, elapsedMs, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';

/** How often the service is asked while it is unavailable, in ms. */
const ASK_EVERY_MS = 5_000;

/** Lets one request call the service every few seconds while it is unavailable; all others use the cache. */
export class Outage {
  #askAgain = LONG_AGO;

  constructor(
    private readonly availability: Availability,
    private readonly clock: Clock,
  ) {}

  get isOn(): boolean {
    return this.availability.awaySince !== undefined;
  }

  /** Returns whether the caller must call the service now. */
  takeTurn(): boolean {
    const { awaySince } = this.availability;
    const isNew = awaySince !== undefined && elapsedMs(this.clock, awaySince) < ASK_EVERY_MS;
    if (isNew || remainingMs(this.clock, this.#askAgain) > 0) return false;
    this.#askAgain = instantIn(this.clock, ASK_EVERY_MS);
    return true;
  }
}
