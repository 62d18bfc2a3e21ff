import { type Clock, type Instant, instantIn, LONG_AGO } from '../../util/clock.ts';

/** A commit under way, and whether another one of ours was at any time of it. */
export interface CommitFlight {
  overlapped: boolean;
}

/** Uploads at once: two are tried, and as many more as go well; eight clients are as fast as the line then. */
const AT_ONCE = { first: 2, max: 8 };

/** For so long they go one by one when the service has refused one of several: most services always do. */
const ONE_BY_ONE_MS = 3_600_000;

/**
 * How many short uploads may be under way at once. The real service commits one at a time and refuses the others, so
 * they had better go together; another one takes them side by side, and that is faster. It is found out at the cost
 * of one refusal.
 */
export class SideBySide {
  readonly #flights = new Set<CommitFlight>();
  #atOnce = AT_ONCE.first;
  #oneByOneUntil: Instant = LONG_AGO;

  constructor(private readonly clock: Clock) {}

  get atOnce(): number {
    if (this.clock.instant() < this.#oneByOneUntil) return 1;
    return this.#atOnce;
  }

  /** A commit of any kind is under way while `job` is. */
  async during<T>(flight: CommitFlight, job: () => Promise<T>): Promise<T> {
    flight.overlapped = this.#flights.size > 0;
    for (const other of this.#flights) other.overlapped = true;
    this.#flights.add(flight);
    try {
      return await job();
    } finally {
      this.#flights.delete(flight);
    }
  }

  /** It was committed. */
  succeeded({ overlapped }: CommitFlight): void {
    if (overlapped && this.atOnce > 1) this.#atOnce = Math.min(AT_ONCE.max, this.#atOnce + 1);
  }

  /** The service refused one beside another one, or limits calls: those that go together are fewer. */
  refused(): void {
    this.#atOnce = AT_ONCE.first;
    this.#oneByOneUntil = instantIn(this.clock, ONE_BY_ONE_MS);
  }
}
