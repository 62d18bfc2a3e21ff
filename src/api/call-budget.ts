import { type Clock, elapsedMs, type Instant, LONG_AGO } from '../util/clock.ts';
import type { SharedAccess } from './shared-access.ts';
import type { BudgetGrant, ParallelCommits, SharedBudget } from './shared-budget.ts';

/** Number of calls that are taken at once, so that most calls cost no question. */
const LEASE_CALLS = 10;

/** How long they may be used, in ms: as long, a gateway may not know of a pause that another one has announced. */
const LEASE_MS = 250;

export interface CallBudgetDeps {
  readonly shared: SharedBudget;
  readonly access: SharedAccess;
  readonly clock: Clock;
}

/** The part of a gateway in the shared budget of its account. While that is away, calls are not limited by it. */
export class CallBudget {
  readonly #deps: CallBudgetDeps;
  #calls = 0;
  #leasedAt: Instant = LONG_AGO;
  #parallelCommits: ParallelCommits = 'unknown';
  /** The question under way, which all calls wait for. */
  #asking: Promise<number> | undefined;

  constructor(deps: CallBudgetDeps) {
    this.#deps = deps;
  }

  /** Takes one call. Returns 0, or, if the account is paused, for how many ms it still is. Never rejects. */
  async take(): Promise<number> {
    while (!this.#takeLeased()) {
      this.#asking ??= this.#lease().finally(() => {
        this.#asking = undefined;
      });
      const pausedMs = await this.#asking;
      if (pausedMs > 0) return pausedMs;
    }
    return 0;
  }

  /** Announces a pause of the account to its other gateways. */
  pause(ms: number): void {
    const { access, shared } = this.#deps;
    void access.answer(() => shared.pause(ms));
  }

  /** Announces the early end of a pause. */
  resume(): void {
    const { access, shared } = this.#deps;
    void access.answer(() => shared.resume());
  }

  /** Whether the service accepts parallel commits, as the gateways knew when calls were last taken. */
  get parallelCommits(): ParallelCommits {
    return this.#parallelCommits;
  }

  /** Returns whether this gateway shall find out about parallel commits. Never rejects. */
  async chooseTrier(): Promise<boolean> {
    const { access, shared } = this.#deps;
    return (await access.answer(() => shared.chooseTrier())) ?? true;
  }

  /** Tells all gateways whether the service accepts parallel commits. */
  learned(outcome: 'accepted' | 'refused'): void {
    this.#parallelCommits = outcome;
    const { access, shared } = this.#deps;
    void access.answer(() => shared.learned(outcome));
  }

  #takeLeased(): boolean {
    if (this.#calls === 0 || elapsedMs(this.#deps.clock, this.#leasedAt) >= LEASE_MS) return false;
    this.#calls -= 1;
    return true;
  }

  /** Takes the next calls out of the shared budget. Returns how long the account is paused, in ms. */
  async #lease(): Promise<number> {
    const { access, shared, clock } = this.#deps;
    const grant = (await access.answer(() => shared.take(LEASE_CALLS))) ?? this.#grantOfItsOwn;
    const { calls, pausedMs, parallelCommits } = grant;
    this.#calls = calls;
    this.#parallelCommits = parallelCommits;
    this.#leasedAt = clock.instant();
    return pausedMs;
  }

  /** What a gateway may do alone. */
  get #grantOfItsOwn(): BudgetGrant {
    return { calls: LEASE_CALLS, pausedMs: 0, parallelCommits: this.#parallelCommits };
  }
}
