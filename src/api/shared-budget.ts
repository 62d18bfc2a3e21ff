/**
 * The budget of an account at the storage service, which all its gateways share. `src/app/drives.ts` passes a driver of
 * `src/state/`. Its methods may reject, and may take any time: `CallBudget` goes on without it then.
 */
export interface SharedBudget {
  /** Takes calls out of the budget, at most `calls`. */
  take(calls: number): Promise<BudgetGrant>;
  /** Pauses the account at all gateways for at least `ms` milliseconds. */
  pause(ms: number): Promise<void>;
  /** Ends the pause of the account, for gateways that have not learned of it. */
  resume(): Promise<void>;
  /** Returns whether this gateway shall find out about parallel commits. No other one is chosen for some seconds. */
  chooseTrier(): Promise<boolean>;
  /** Tells all gateways whether the service accepts parallel commits. */
  learned(outcome: 'accepted' | 'refused'): Promise<void>;
}

/** Whether the service accepts several commits of the account at once, as one of its gateways has found out. */
export type ParallelCommits = 'accepted' | 'refused' | 'unknown';

export interface BudgetGrant {
  /** How many calls may go out now. */
  readonly calls: number;
  /** How long the account is still paused, in ms; 0 if it is not. */
  readonly pausedMs: number;
  readonly parallelCommits: ParallelCommits;
}
