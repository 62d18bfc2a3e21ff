import type { FileMetadata } from '../../wire/files.ts';

/** The result of a finished job, as the function that checks it returns it: a union with its tag. */
export type JobResult =
  | { readonly '.tag': 'complete'; readonly entries: readonly object[] }
  | (FileMetadata & { readonly '.tag': 'complete' })
  | { readonly '.tag': 'failed'; readonly failed: object };

/** `failed`: the job ended without a result, so that some of its changes may have been made. */
export type JobState = JobResult | 'in-progress' | 'failed';

/** A job, and who may check it by which function. */
export interface Job {
  readonly id: string;
  readonly account: string;
  readonly app: string;
  /** Names the function that may check it. */
  readonly kind: string;
}

/** A job that is added. */
export interface NewJob extends Job {
  /** Names the jobs of the account that run one after the other, in the order in which they were added. */
  readonly line?: string | undefined;
}

/** How long a job that has ended can be checked, in ms: a day. */
export const JOB_KEPT_MS = 24 * 60 * 60 * 1000;

/** Maximum number of entries of stored results, some hundred megabytes; beyond it the oldest results are removed. */
export const ENTRIES_KEPT_MAX = 250_000;

/**
 * The jobs of all processes. A job has failed if the lease of its process ends before its result is stored. Times are by the
 * clock of the leases (`Nodes.leaseTime`), except that of `forgetOld`, which need not be exact.
 */
export interface JobRows {
  /** Adds a job that runs in the process `node`, and extends the lease of the process. */
  add(job: NewJob, node: string, untilMs: number): Promise<void>;
  /** Whether a job that was added to the line before this one runs or waits in another process. */
  mustWait(nowMs: number, id: string): Promise<boolean>;
  /** Stores the result of a running job. Returns whether there is such a job. */
  end(id: string, endedMs: number, result: JobResult | 'failed'): Promise<boolean>;
  /** Returns the jobs of a process whose results are not stored. */
  open(node: string): Promise<readonly Job[]>;
  /** Returns `undefined` unless there is exactly this job and it can still be checked. */
  find(nowMs: number, job: Job): Promise<JobState | undefined>;
  /** Forgets up to `limit` jobs that can no longer be checked. Returns how many. */
  forgetOld(nowMs: number, limit: number): Promise<number>;
}

/** Returns how many entries a result counts for. */
export function entriesOf(result: JobResult | 'failed'): number {
  return typeof result === 'object' && 'entries' in result ? Math.max(1, result.entries.length) : 1;
}

/** A job as the drivers store it, with the lease of its process. */
export interface StoredJob {
  /** `null`: no result has been stored. */
  readonly endedMs: number | null;
  /** JSON; `null` for a job that failed. */
  readonly result: string | null;
  /** End of the lease of the job's process; `null` for one that is forgotten. */
  readonly untilMs: number | null;
}

/** Returns the state of a stored job, or `undefined` if it can no longer be checked. */
export function stateOf({ endedMs, result, untilMs }: StoredJob, nowMs: number): JobState | undefined {
  const overMs = endedMs ?? untilMs ?? Number.NEGATIVE_INFINITY;
  if (overMs <= nowMs - JOB_KEPT_MS) return undefined;
  if (endedMs === null) return overMs > nowMs ? 'in-progress' : 'failed';
  // A cast, because only `end` writes this column.
  return result === null ? 'failed' : (JSON.parse(result) as JobResult);
}
