/**
 * Whether the service accepts several commits of the account at once, as one of its gateways has found out. While it is
 * `unknown`, one gateway at a time finds out.
 */
export type ParallelCommits = 'accepted' | 'refused' | 'unknown';

/** The budget of one account at the storage service, which gateways share. Not durable. */
export interface AccountBudget {
  /** Takes calls out of the budget, at most `calls`. `pausedMs`: how long the account is still paused, in ms. */
  take(calls: number): Promise<{
    readonly calls: number;
    readonly pausedMs: number;
    readonly parallelCommits: ParallelCommits;
  }>;
  /** Pauses the account at all gateways for at least `ms` milliseconds. */
  pause(ms: number): Promise<void>;
  /** Ends the pause. */
  resume(): Promise<void>;
  /** Returns whether this gateway shall find out about parallel commits. No other one is chosen for some seconds. */
  chooseTrier(): Promise<boolean>;
  /** Tells all gateways whether the service accepts parallel commits. A refusal counts more than an acceptance. */
  learned(outcome: 'accepted' | 'refused'): Promise<void>;
}
