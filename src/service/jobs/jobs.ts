import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import PQueue from 'p-queue';
import { ageMs, type Clock, type Moment, momentNow } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { FileMetadata } from '../../wire/files.ts';
import { contention } from '../api/failures.ts';
import type { CursorOwner } from '../storage/storage.ts';

/** The result of a finished job, as the function that checks it returns it: a union with its tag. */
export type JobResult =
  | { readonly '.tag': 'complete'; readonly entries: readonly object[] }
  | (FileMetadata & { readonly '.tag': 'complete' })
  | { readonly '.tag': 'failed'; readonly failed: object };

/** `undefined`: the job does not exist, or is another account's. */
export type JobState = JobResult | 'in-progress' | 'failed' | undefined;

/** Jobs of an account that wait for each other, but not for its other lines. */
export interface JobLine {
  readonly name: string;
  /** How many jobs of the line run at the same time. */
  readonly atOnce: number;
}

type Work = (closing: AbortSignal) => Promise<JobResult>;

/** Work that continues after its call was answered. It is lost when the process ends. */
export interface Jobs {
  /**
   * Adds `work` to the account's `line`, and returns the job's id. `kind` names the function that may check it. Long
   * work should stop at `closing`. Throws 429 when too many of the account's jobs wait in the line.
   */
  start(owner: CursorOwner, kind: string, work: Work, line?: JobLine): string;
  state(owner: CursorOwner, kind: string, id: string): JobState;
  /** Removes jobs that can no longer be checked. */
  forgetOld(): void;
  /** Resolves when no job runs. */
  ended(): Promise<void>;
}

/** The line of batches: they change the tree in the order in which they were requested. */
const BATCHES: JobLine = { name: 'batches', atOnce: 1 };

/** Maximum number of jobs in one line of one account. */
const LINE_MAX = 100;

/** Maximum number of entries of finished jobs that are kept; they take at most some hundred megabytes. */
const ENTRIES_KEPT_MAX = 250_000;

/** How long a finished job can be checked, in ms: a day. */
const KEPT_MS = 24 * 60 * 60 * 1000;

interface Job {
  readonly owner: CursorOwner;
  readonly kind: string;
  readonly ended?: Moment;
  readonly state: Exclude<JobState, undefined>;
}

/** Creates the jobs. `closing` ends running jobs at the next chunk of entries, and waiting ones before their first. */
export function jobsOf(clock: Clock, log: Log, closing: AbortSignal): Jobs {
  const running = new Map<string, Job>();
  const ended = new LRUCache<string, Job>({ maxSize: ENTRIES_KEPT_MAX, sizeCalculation: sizeOf });
  const lines = new Map<string, PQueue>();

  const isOver = ({ ended: end }: Job) => end !== undefined && ageMs(clock, end) >= KEPT_MS;

  async function run(id: string, job: Job, work: Work): Promise<void> {
    let state: Job['state'];
    try {
      closing.throwIfAborted();
      state = await work(closing);
    } catch (error) {
      state = 'failed';
      if (!closing.aborted) log.error('a job failed', { job: job.kind, error: stackOf(error) });
    }
    running.delete(id);
    ended.set(id, { ...job, state, ended: momentNow(clock) });
  }

  return {
    start(owner, kind, work, { name, atOnce } = BATCHES) {
      const lineKey = `${owner.account} ${name}`;
      const line = lines.get(lineKey) ?? new PQueue({ concurrency: atOnce });
      if (line.size + line.pending >= LINE_MAX) throw contention();
      lines.set(lineKey, line);
      const id = `dbjid:${randomBytes(24).toString('base64url')}`;
      const job: Job = { owner, kind, state: 'in-progress' };
      running.set(id, job);
      void line
        .add(() => run(id, job, work))
        .then(() => {
          if (line.size + line.pending === 0) lines.delete(lineKey);
        });
      return id;
    },
    state(owner, kind, id) {
      const job = running.get(id) ?? ended.get(id);
      if (job?.kind !== kind || job.owner.account !== owner.account || job.owner.app !== owner.app)
        return undefined;
      return isOver(job) ? undefined : job.state;
    },
    forgetOld() {
      for (const [id, job] of [...ended.entries()]) if (isOver(job)) ended.delete(id);
    },
    async ended() {
      await Promise.all(Array.from(lines.values(), (line) => line.onIdle()));
    },
  };
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function sizeOf({ state }: Job): number {
  return typeof state === 'object' && 'entries' in state ? Math.max(1, state.entries.length) : 1;
}
