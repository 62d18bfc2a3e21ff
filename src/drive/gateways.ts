import { randomUUID } from 'node:crypto';
import type { GatewayLeases } from '../state/gateway-leases.ts';
import { type Clock, elapsedMs, type Instant } from '../util/clock.ts';

/** How long the duties of a gateway that was killed wait for another one, in ms, at most. */
const LEASE_MS = 15_000;

/** Time between two renewals, in ms. Two of them may fail before the lease ends. */
const RENEW_EVERY_MS = LEASE_MS / 3;

/** Separates the gateway from the rest of an id. */
const MARK = '.';

/**
 * The running gateways of a drive, and who of them does the work that a killed one has left. The first of the living takes
 * it over, in the order of their ids; two that do it at the same time, because they see each other late, do no harm.
 */
export class Gateways {
  readonly #stop = new AbortController();
  #alive: readonly string[] = [];
  /** Whether this run has taken over what an earlier one had left. */
  #isStarted = false;
  /** When this gateway began to hold its lease without a break, and when it last renewed it. */
  #held: { readonly since: Instant; readonly renewed: Instant } | undefined;
  #running: Promise<void> = Promise.resolve();

  /** `leases`: `undefined` if this is the only gateway. */
  constructor(
    private readonly leases: GatewayLeases | undefined,
    private readonly clock: Clock,
  ) {}

  /** The id of this gateway; `undefined` if it is the only one. */
  get own(): string | undefined {
    return this.leases?.gateway;
  }

  /** Makes an id that tells whose duty it names. */
  newId(): string {
    return this.own === undefined ? randomUUID() : `${this.own}${MARK}${randomUUID()}`;
  }

  /**
   * Whether this gateway has to take over what `owner` was doing; `undefined`: it was the only gateway. It takes over its own
   * work at its start, which an earlier run has left.
   */
  inherits(owner: string | undefined): boolean {
    if (this.leases === undefined) return true;
    if (owner === this.own) return !this.#isStarted;
    if (owner !== undefined && this.#alive.includes(owner)) return false;
    // After Redis was away the others get the time to renew their leases too.
    const isLasting = this.#held !== undefined && elapsedMs(this.clock, this.#held.since) >= LEASE_MS;
    return isLasting && this.#alive[0] === this.own;
  }

  /** Calls `takeOver` now, and again and again while there are other gateways: one of them may have been killed. */
  async start(takeOver: () => Promise<void>): Promise<void> {
    if (this.leases === undefined) return takeOver();
    await this.#renew();
    await takeOver();
    this.#isStarted = true;
    // Rejects only when its signal aborts.
    this.#running = this.#run(takeOver, this.#stop.signal).catch(() => {});
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.leases?.end().catch(() => {});
  }

  async #renew(): Promise<void> {
    const now = this.clock.instant();
    this.#alive = (await this.leases?.renew(LEASE_MS)) ?? [];
    const isLate = !this.#held || elapsedMs(this.clock, this.#held.renewed) >= LEASE_MS;
    this.#held = { since: isLate || !this.#held ? now : this.#held.since, renewed: now };
  }

  async #run(takeOver: () => Promise<void>, stop: AbortSignal): Promise<void> {
    for (;;) {
      await this.clock.sleep(RENEW_EVERY_MS, stop);
      // A failure is repeated with the next renewal.
      await this.#renew()
        .then(takeOver)
        .catch(() => {});
    }
  }
}

/** Returns the gateway whose duty an id names; `undefined` for one that was made by the only gateway. */
export function ownerOf(id: string): string | undefined {
  const end = id.indexOf(MARK);
  return end < 0 ? undefined : id.slice(0, end);
}
