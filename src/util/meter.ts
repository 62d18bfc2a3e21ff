/**
 * Where rooms count what they do, as `Log` is where they say it. It is called on hot paths and never throws;
 * nothing of a user, a path or a login is handed to it.
 */
export interface Meter {
  /**
   * One request of `route` to the storage service came to its end after `ms`; of a download that is the head of
   * the answer. `outcome`: `ok`, why it failed, or `cancelled` when nobody wanted it any more.
   */
  called(call: { readonly route: string; readonly outcome: string; readonly ms: number }): void;
  /** The storage service answered with this HTTP status. */
  answered(status: number): void;
  /** A call is going to be made again, because of a failure of this kind. */
  retried(reason: string): void;
  /** Several commits go out in one call. */
  batched(commits: number): void;
  /** Metadata were wanted; `known`: no call was needed. */
  lookedUp(known: boolean): void;
  /** So many bytes of a file came from the block cache, in one piece that needed no call. */
  blockRead(sizeBytes: number): void;
  /** A block that had to be fetched enters the cache. */
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
