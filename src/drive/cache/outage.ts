import type { Availability } from '../../api/remote.ts';
import { type Clock, elapsedMs, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';

/** How often the service is asked while it is away, by one of the requests that come meanwhile, in ms. */
const ASK_EVERY_MS = 5_000;

/** The time in which the service is away: few requests ask it then. */
export class Outage {
  #askAgain = LONG_AGO;

  constructor(
    private readonly availability: Availability,
    private readonly clock: Clock,
  ) {}

  get isOn(): boolean {
    return this.availability.awaySince !== undefined;
  }

  /** Whether it is time to ask again. A caller that gets `true` must ask. */
  takeTurn(): boolean {
    const { awaySince } = this.availability;
    const isNew = awaySince !== undefined && elapsedMs(this.clock, awaySince) < ASK_EVERY_MS;
    if (isNew || remainingMs(this.clock, this.#askAgain) > 0) return false;
    this.#askAgain = instantIn(this.clock, ASK_EVERY_MS);
    return true;
  }
}
