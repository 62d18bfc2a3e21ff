import type { Moment } from '../util/clock.ts';
import { neighborhoodOf } from '../util/networks.ts';
import type { OidcChecks } from './oidc-provider.ts';

/** A sign-in that has begun. The provider sends its browser back. */
export interface Begun extends OidcChecks {
  /** The address of the client, which may come back from another one. */
  readonly address: string;
  /** The hash of the browser's secret. */
  readonly browser: string;
  readonly to: string;
  readonly since: Moment;
}

/**
 * A limited number of sign-ins that have begun. Beyond it the client with the most loses its oldest, because everyone can
 * begin them: a flood ends its own. A client is an IPv4 address, or a /64 of IPv6.
 */
export class BegunSignIns {
  readonly #byState = new Map<string, Begun>();
  /** The states of each client, the oldest first. */
  readonly #states = new Map<string, Set<string>>();

  constructor(private readonly max: number) {}

  get(state: string): Begun | undefined {
    return this.#byState.get(state);
  }

  add(begun: Begun): void {
    if (this.#byState.size >= this.max) this.#deleteOne();
    const client = neighborhoodOf(begun.address);
    const states = this.#states.get(client) ?? new Set();
    this.#states.set(client, states.add(begun.state));
    this.#byState.set(begun.state, begun);
  }

  delete({ state, address }: Begun): void {
    const client = neighborhoodOf(address);
    const states = this.#states.get(client);
    this.#byState.delete(state);
    states?.delete(state);
    if (states?.size === 0) this.#states.delete(client);
  }

  #deleteOne(): void {
    let most: ReadonlySet<string> = new Set();
    for (const states of this.#states.values()) if (states.size > most.size) most = states;
    const [oldest = ''] = most;
    const begun = this.#byState.get(oldest);
    if (begun) this.delete(begun);
  }
}
