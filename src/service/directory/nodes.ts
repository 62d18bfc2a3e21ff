/** How long a killed process is believed to run, in ms. */
export const LEASE_MS = 20_000;

/** Pause between two renewals of a lease, in ms: two of them may fail. */
export const LEASE_RENEWAL_MS = Math.floor(LEASE_MS / 3);

/**
 * The processes that serve the same directory. A process holds a lease while it has jobs, so that the others notice when
 * it is killed.
 */
export interface Nodes {
  /**
   * Returns the time by the clock of the leases, in ms, which is the same one for all processes. `nowMs` is the time of this
   * process: clocks of machines may differ by more than a lease.
   */
  leaseTime(nowMs: number): Promise<number>;
  /** Extends the lease of a process. */
  renew(id: string, untilMs: number): Promise<void>;
  /** Ends the lease of a process. */
  end(nowMs: number, id: string): Promise<void>;
  /** Ends the leases of all processes. For a process that knows that it is the only one. */
  endAll(nowMs: number): Promise<void>;
  /** Forgets up to `limit` leases that ended long ago. Returns how many. */
  forgetOld(nowMs: number, limit: number): Promise<number>;
}
