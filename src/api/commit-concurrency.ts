import { type Clock, type Instant, instantIn, LONG_AGO } from '../util/clock.ts';
import type { CallBudget } from './call-budget.ts';

/** Parallel uploads: starts with two and adds one for each success. Eight saturate a line. */
const PARALLEL = { first: 2, max: 8 };

/** How long uploads go one by one after the service refused a parallel one, in ms. */
const SEQUENTIAL_MS = 3_600_000;

/** A commit under way, and whether another commit of ours was under way at the same time. */
export interface CommitFlight {
  overlapped: boolean;
}

/**
 * Finds out how many short uploads the service accepts in parallel, at the cost of one refusal. Dropbox commits one at a
 * time in a namespace and refuses the others, so files are better committed in a batch there; other implementations
 * accept several, and that is faster. Of the gateways of an account, one finds out and tells the others.
 */
export class CommitConcurrency {
  readonly #clock: Clock;
  readonly #budget: CallBudget | undefined;
  readonly #flights = new Set<CommitFlight>();
  #max = PARALLEL.first;
  #sequentialUntil: Instant = LONG_AGO;
  /** Whether this gateway finds out for the others. */
  #isTrier = false;

  constructor(clock: Clock, budget: CallBudget | undefined) {
    this.#clock = clock;
    this.#budget = budget;
  }

  get max(): number {
    if (this.#clock.instant() < this.#sequentialUntil) return 1;
    switch (this.#budget?.parallelCommits) {
      case 'refused':
        return 1;
      case 'unknown':
        return this.#isTrier ? this.#max : 1;
      default:
        return this.#max;
    }
  }

  /** Runs `job`, which makes a commit of any kind. */
  async during<T>(flight: CommitFlight, job: () => Promise<T>): Promise<T> {
    void this.#tryForOthers();
    flight.overlapped = this.#flights.size > 0;
    for (const other of this.#flights) other.overlapped = true;
    this.#flights.add(flight);
    try {
      return await job();
    } finally {
      this.#flights.delete(flight);
    }
  }

  /** Notes that a commit succeeded. */
  succeeded({ overlapped }: CommitFlight): void {
    if (!overlapped || this.max === 1) return;
    this.#max = Math.min(PARALLEL.max, this.#max + 1);
    if (this.#budget?.parallelCommits === 'unknown') this.#tell('accepted');
  }

  /** Notes that the service refused a parallel commit, or limits calls: batches need fewer calls. */
  refused(): void {
    this.#max = PARALLEL.first;
    this.#sequentialUntil = instantIn(this.#clock, SEQUENTIAL_MS);
    this.#tell('refused');
  }

  #tell(outcome: 'accepted' | 'refused'): void {
    this.#isTrier = false;
    this.#budget?.learned(outcome);
  }

  /** Finds out with the next commits whether the service accepts parallel ones, if no other gateway does. */
  async #tryForOthers(): Promise<void> {
    if (this.#budget?.parallelCommits !== 'unknown' || this.#isTrier) return;
    if (this.#clock.instant() < this.#sequentialUntil) return;
    this.#isTrier = await this.#budget.chooseTrier();
  }
}
