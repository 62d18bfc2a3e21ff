import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ageMs, type Clock, type Moment, momentNow } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { contention } from '../failures.ts';
import type { CursorOwner } from '../storage/storage.ts';

/** What a finished job comes to, as the function that asks for it answers: a union with its tag. */
export interface JobResult {
  readonly '.tag': 'complete' | 'failed';
  /** Of a batch. */
  readonly entries?: readonly object[];
  readonly failed?: object;
}

/** `undefined`: there is no such job, or it is another's. */
export type JobState = JobResult | 'in-progress' | 'failed' | undefined;

/** Batches that are worked off after their call was answered. They live as long as the process. */
export interface Jobs {
  /**
   * Puts `work` behind the account's earlier jobs; the job's id. `kind` is what may ask for it. Work that takes
   * long stops at `closing`. Throws 429 when the account has too many waiting.
   */
  start(owner: CursorOwner, kind: string, work: (closing: AbortSignal) => Promise<JobResult>): string;
  state(owner: CursorOwner, kind: string, id: string): JobState;
  /** Clears away what can be asked for no longer. */
  forgetOld(): void;
  /** Resolves when nothing runs any more. */
  ended(): Promise<void>;
}

/** Of one account. */
const WAITING_MAX = 100;

/** Entries of finished jobs that are remembered: some hundred megabytes at most. */
const ENTRIES_KEPT_MAX = 250_000;

/** How long a finished job can be asked for: a day. */
const KEPT_MS = 24 * 60 * 60 * 1000;

interface Job {
  readonly owner: CursorOwner;
  readonly kind: string;
  readonly ended?: Moment;
  readonly state: Exclude<JobState, undefined>;
}

/** `closing` ends what runs at the next chunk of entries, and what waits before its first. */
export function jobsOf(clock: Clock, log: Log, closing: AbortSignal): Jobs {
  const running = new Map<string, Job>();
  const ended = new LRUCache<string, Job>({ maxSize: ENTRIES_KEPT_MAX, sizeCalculation: sizeOf });
  /** The end of each account's line, and how many are in it. */
  const lines = new Map<string, { readonly end: Promise<void>; readonly waiting: number }>();

  const isOver = ({ ended: end }: Job) => end !== undefined && ageMs(clock, end) >= KEPT_MS;

  async function run(
    id: string,
    job: Job,
    work: (closing: AbortSignal) => Promise<JobResult>,
  ): Promise<void> {
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
    start(owner, kind, work) {
      const line = lines.get(owner.account) ?? { end: Promise.resolve(), waiting: 0 };
      if (line.waiting >= WAITING_MAX) throw contention();
      const id = `dbjid:${randomBytes(24).toString('base64url')}`;
      const job: Job = { owner, kind, state: 'in-progress' };
      running.set(id, job);
      const end = line.end
        .then(() => run(id, job, work))
        .then(() => {
          const now = lines.get(owner.account);
          if (now && now.waiting > 1) lines.set(owner.account, { ...now, waiting: now.waiting - 1 });
          else lines.delete(owner.account);
        });
      lines.set(owner.account, { end, waiting: line.waiting + 1 });
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
      await Promise.all(Array.from(lines.values(), ({ end }) => end));
    },
  };
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

function sizeOf({ state }: Job): number {
  return typeof state === 'object' ? Math.max(1, state.entries?.length ?? 1) : 1;
}
