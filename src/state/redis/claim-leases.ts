import type { Clock } from '../../util/clock.ts';
import type { Claim } from '../locks.ts';
import { RunningClaims } from '../running-claims.ts';

/** How long the claims of a killed gateway keep preventing locks, in ms. */
const LEASE_MS = 15_000;
/** Time between renewals, in ms. Two renewals may fail before a lease expires. */
const RENEW_EVERY_MS = LEASE_MS / 3;
/** How often a waiting lock checks whether another gateway's request has ended, in ms. */
const LOOK_EVERY_MS = 100;

export interface ClaimLeasesDeps {
  readonly clock: Clock;
  /** Extends the lease of one request's claims by `leaseMs`. Returns whether they still existed. */
  readonly renew: (id: string, claims: readonly Claim[], leaseMs: number) => Promise<boolean>;
}

/** Keeps the claims of this gateway's requests in the shared state while the requests run. */
export class ClaimLeases {
  readonly leaseMs = LEASE_MS;
  readonly #deps: ClaimLeasesDeps;
  readonly #running = new RunningClaims();
  /** Ids of claims that had expired at a renewal: a lock may have been granted in spite of them. */
  readonly #lapsed = new Set<string>();
  #renewing = new AbortController();

  constructor(deps: ClaimLeasesDeps) {
    this.#deps = deps;
  }

  add(id: string, claims: readonly Claim[]): void {
    this.#running.add(id, claims);
    if (this.#running.size > 1) return;
    this.#renewing = new AbortController();
    // Rejects only when its signal aborts.
    this.#renewAll(this.#renewing.signal).catch(() => {});
  }

  end(id: string): void {
    this.#running.end(id);
    this.#lapsed.delete(id);
    if (this.#running.size === 0) this.#renewing.abort();
  }

  /** Returns whether the claims of `id` have existed without interruption. Rejects when Redis does not answer. */
  async hold(id: string): Promise<boolean> {
    const claims = this.#running.of(id);
    if (claims) await this.#renew(id, claims);
    return claims !== undefined && !this.#lapsed.has(id);
  }

  /**
   * Resolves when the claims of `id` have ended; for another gateway's claims, whose end is not announced, after a
   * moment.
   */
  ended(id: string, signal: AbortSignal): Promise<void> {
    return this.#running.has(id)
      ? this.#running.ended(id, signal)
      : this.#deps.clock.sleep(LOOK_EVERY_MS, signal);
  }

  async #renewAll(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(RENEW_EVERY_MS, signal);
      // A failed renewal is repeated after the same time. All are sent at once, before any of the requests ends.
      const renewals = this.#running.all().map(([id, claims]) => this.#renew(id, claims).catch(() => {}));
      await Promise.all(renewals);
    }
  }

  async #renew(id: string, claims: readonly Claim[]): Promise<void> {
    const wereHeld = await this.#deps.renew(id, claims, this.leaseMs);
    if (!wereHeld && this.#running.has(id)) this.#lapsed.add(id);
  }
}
