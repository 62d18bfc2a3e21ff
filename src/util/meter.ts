/**
 * Counts events for the metrics. Called on hot paths; never throws. Gets no user names, paths or logins.
 */
export interface Meter {
  /**
   * A request of `route` to the storage service ended after `ms`; a download, with the head of its answer. `outcome`:
   * `ok`, the reason of the failure, or `cancelled` if no caller needed it any more.
   */
  called(call: { readonly route: string; readonly outcome: string; readonly ms: number }): void;
  /** The storage service answered with this HTTP status. */
  answered(status: number): void;
  /** A call is retried after a failure of this kind. */
  retried(reason: string): void;
  /** Several commits go out in one call. */
  batched(commits: number): void;
  /** Metadata were looked up; `known`: without a call. */
  lookedUp(known: boolean): void;
  /** A piece of a file was read from the block cache, without a call. */
  blockRead(sizeBytes: number): void;
  /** A fetched block was stored in the cache. */
  blockKept(sizeBytes: number): void;
}

export const silentMeter: Meter = {
  called() {},
  answered() {},
  retried() {},
  batched() {},
  lookedUp() {},
  blockRead() {},
  blockKept() {},
};
