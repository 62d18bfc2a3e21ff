import type { Clock } from '../../util/clock.ts';
import type { Claim } from '../locks.ts';
import { RunningClaims } from '../running-claims.ts';

/** How long the claims of a gateway that died stay in the way of locks, in ms. */
const LEASE_MS = 15_000;
/** Two renewals may fail before a lease runs out. */
const RENEW_EVERY_MS = LEASE_MS / 3;
/** How often a waiting lock looks whether another gateway's request has ended, in ms. */
const LOOK_EVERY_MS = 100;

export interface ClaimLeasesParts {
  readonly clock: Clock;
  /** Makes the claims of one request last another `leaseMs`. Whether they were still there. */
  readonly renew: (id: string, claims: readonly Claim[], leaseMs: number) => Promise<boolean>;
}

/** Keeps the claims of this gateway's requests in the shared state for as long as these run. */
export class ClaimLeases {
  readonly leaseMs = LEASE_MS;
  readonly #parts: ClaimLeasesParts;
  readonly #running = new RunningClaims();
  /** Those that were not there at a renewal: until then a lock may have been granted in spite of them. */
  readonly #lapsed = new Set<string>();
  #renewing = new AbortController();

  constructor(parts: ClaimLeasesParts) {
    this.#parts = parts;
  }

  add(id: string, claims: readonly Claim[]): void {
    this.#running.add(id, claims);
    if (this.#running.size > 1) return;
    this.#renewing = new AbortController();
    // It only ends by its signal.
    this.#renewAll(this.#renewing.signal).catch(() => {});
  }

  end(id: string): void {
    this.#running.end(id);
    this.#lapsed.delete(id);
    if (this.#running.size === 0) this.#renewing.abort();
  }

  /** Whether the claims of `id` have been there all the time. Rejects when Redis cannot be asked. */
  async hold(id: string): Promise<boolean> {
    const claims = this.#running.of(id);
    if (claims) await this.#renew(id, claims);
    return claims !== undefined && !this.#lapsed.has(id);
  }

  /** Resolves when the claims of `id` have ended, or after a moment if another gateway has them: their end is not announced. */
  ended(id: string, signal: AbortSignal): Promise<void> {
    return this.#running.has(id)
      ? this.#running.ended(id, signal)
      : this.#parts.clock.sleep(LOOK_EVERY_MS, signal);
  }

  async #renewAll(signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.#parts.clock.sleep(RENEW_EVERY_MS, signal);
      // One that fails is tried again after the same time. All are sent at once, before any that ends meanwhile is.
      const renewals = this.#running.all().map(([id, claims]) => this.#renew(id, claims).catch(() => {}));
      await Promise.all(renewals);
    }
  }

  async #renew(id: string, claims: readonly Claim[]): Promise<void> {
    const wereHeld = await this.#parts.renew(id, claims, this.leaseMs);
    if (!wereHeld && this.#running.has(id)) this.#lapsed.add(id);
  }
}
