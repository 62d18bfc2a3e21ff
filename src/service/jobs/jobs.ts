import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import PQueue from 'p-queue';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { contention } from '../api/failures.ts';
import { LEASE_MS, LEASE_RENEWAL_MS, type Nodes } from '../directory/nodes.ts';
import { isOutOfSpace } from '../storage/errors.ts';
import type { CursorOwner } from '../storage/storage.ts';
import {
  entriesOf,
  JOB_KEPT_MS,
  type Job,
  type JobResult,
  type JobRows,
  type JobState,
  type NewJob,
} from './job-rows.ts';

/** Jobs of an account that wait for each other, but not for its other lines. */
export interface JobLine {
  readonly name: string;
  /** How many jobs of the line run at the same time in this process. With 1, also only one in all processes, in order. */
  readonly atOnce: number;
}

export type Work = (closing: AbortSignal) => Promise<JobResult>;

/**
 * Work that continues after its call was answered. It ends with the process, and then counts as failed. A result is stored
 * before it can be checked, and can be checked for a day, also after a restart and in other processes.
 */
export interface Jobs {
  /**
   * Adds `work` to the account's `line`, and returns the job's id once the job is stored. `kind` names the function that
   * may check it. Long work should stop at `closing`. Throws 429 when too many of the account's jobs wait in the line.
   */
  start(owner: CursorOwner, kind: string, work: Work, line?: JobLine): Promise<string>;
  /** Returns `undefined` if the job does not exist, or is another account's. */
  state(owner: CursorOwner, kind: string, id: string): Promise<JobState | undefined>;
  /** Resolves when no job runs, and other processes know it. */
  ended(): Promise<void>;
}

/** The line of batches: they change the tree in the order in which they were requested. */
const BATCHES: JobLine = { name: 'batches', atOnce: 1 };

/** Maximum number of jobs in one line of one account. */
const LINE_MAX = 100;

/** Pause before a job that waits for one of another process looks again, in ms. */
const TURN_MS = 200;

/** Maximum number of entries of results that could not be stored. */
const UNSTORED_ENTRIES_MAX = 25_000;

export interface JobsDeps {
  readonly jobRows: JobRows;
  readonly nodes: Nodes;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends running jobs at the next chunk of entries, and waiting ones before their first. */
  readonly closing: AbortSignal;
}

interface Ended {
  readonly state: JobResult | 'failed';
  /** By the clock of this process. */
  readonly endedMs: number;
}

/** A line of one account in this process. */
interface Line {
  readonly queue: PQueue;
  /** Resolves when the last job of the line is stored: the order in which they are stored is that of the queue. */
  lastAdded: Promise<unknown>;
}

/** Creates the jobs of this process. */
export function jobsOf({ jobRows, nodes, clock, log, closing }: JobsDeps): Jobs {
  const node = randomBytes(16).toString('base64url');
  /** Keys of the jobs of this process that have not ended. */
  const running = new Set<string>();
  /** Results that could not be stored, by the keys of their jobs: `delete_batch` has to work on a full disk. */
  const unstored = new LRUCache<string, Ended>({
    maxSize: UNSTORED_ENTRIES_MAX,
    sizeCalculation: ({ state }) => Math.min(entriesOf(state), UNSTORED_ENTRIES_MAX),
  });
  const lines = new Map<string, Line>();
  /** Whether jobs that do not run may have rows without a result, which make later jobs of their lines wait. */
  let mayBeOpen = false;
  let isRenewing = false;

  const leaseTime = () => nodes.leaseTime(clock.now());

  /** Extends the lease of this process as long as it has jobs. */
  async function renewLease(): Promise<void> {
    if (isRenewing) return;
    isRenewing = true;
    for (;;) {
      await clock.sleep(LEASE_RENEWAL_MS, closing).catch(() => undefined);
      if ((running.size === 0 && !mayBeOpen) || closing.aborted) break;
      mayBeOpen = false;
      try {
        await nodes.renew(node, (await leaseTime()) + LEASE_MS);
        await endOpen();
      } catch (error) {
        mayBeOpen = true;
        log.warn('the lease of running jobs could not be renewed', { error: String(error) });
      }
    }
    isRenewing = false;
  }

  /** Ends the jobs whose end could not be stored, and those whose calls failed though they were stored. */
  async function endOpen(): Promise<void> {
    for (const job of await jobRows.open(node)) {
      const key = keyOf(job);
      if (running.has(key)) continue;
      const { state } = unstored.get(key) ?? { state: 'failed' };
      if (await jobRows.end(job.id, await leaseTime(), state)) unstored.delete(key);
    }
  }

  async function add(job: NewJob): Promise<void> {
    // First, because an open row of a job that does not run is ended.
    running.add(keyOf(job));
    void renewLease();
    try {
      await jobRows.add(job, node, (await leaseTime()) + LEASE_MS);
    } catch (error) {
      if (!isOutOfSpace(error)) {
        running.delete(keyOf(job));
        mayBeOpen = true;
        throw error;
      }
      log.warn('a job could not be stored: the disk is full', { job: job.kind });
    }
  }

  async function run(job: NewJob, work: Work): Promise<void> {
    const state = await stateAfter(job, work);
    // A job that is cut off at shutdown needs no row of its own: it fails with the end of the lease.
    if (state !== 'failed' || !closing.aborted) await end(job, state);
    running.delete(keyOf(job));
  }

  async function stateAfter(job: NewJob, work: Work): Promise<JobResult | 'failed'> {
    const { kind, id, line } = job;
    try {
      closing.throwIfAborted();
      while (line !== undefined && (await jobRows.mustWait(await leaseTime(), id)))
        await clock.sleep(TURN_MS, closing);
      return await work(closing);
    } catch (error) {
      if (!closing.aborted) log.error('a job failed', { job: kind, error: stackOf(error) });
      return 'failed';
    }
  }

  async function end(job: Job, state: JobResult | 'failed'): Promise<void> {
    try {
      if (await jobRows.end(job.id, await leaseTime(), state)) return;
    } catch (error) {
      mayBeOpen = true;
      log.error('the result of a job could not be stored', { job: job.kind, error: stackOf(error) });
    }
    unstored.set(keyOf(job), { state, endedMs: clock.now() });
  }

  return {
    async start(owner, kind, work, { name, atOnce } = BATCHES) {
      const lineKey = `${owner.account} ${name}`;
      const line = lines.get(lineKey) ?? {
        queue: new PQueue({ concurrency: atOnce }),
        lastAdded: Promise.resolve(),
      };
      const { queue } = line;
      if (queue.size + queue.pending >= LINE_MAX) throw contention();
      lines.set(lineKey, line);
      const job = {
        ...{ id: newJobId(), account: owner.account, app: owner.app, kind },
        line: atOnce === 1 ? name : undefined,
      };
      const added = line.lastAdded.then(() => add(job));
      line.lastAdded = added.catch(() => undefined);
      // In the queue at once, because jobs run in the order of their calls.
      void queue
        .add(() =>
          added.then(
            () => run(job, work),
            () => undefined,
          ),
        )
        .then(() => {
          if (queue.size + queue.pending === 0) lines.delete(lineKey);
        });
      await added;
      return job.id;
    },
    async state(owner, kind, id) {
      const job = { id, account: owner.account, app: owner.app, kind };
      const key = keyOf(job);
      if (running.has(key)) return 'in-progress';
      const ended = unstored.get(key);
      if (!ended) return await jobRows.find(await leaseTime(), job);
      return ended.endedMs > clock.now() - JOB_KEPT_MS ? ended.state : undefined;
    },
    async ended() {
      await Promise.all(Array.from(lines.values(), ({ queue }) => queue.onIdle()));
      try {
        await nodes.end(await leaseTime(), node);
      } catch (error) {
        log.warn('the lease of jobs could not be ended', { error: String(error) });
      }
    },
  };
}

function newJobId(): string {
  return `dbjid:${randomBytes(24).toString('base64url')}`;
}

function keyOf({ id, account, app, kind }: Job): string {
  return [id, account, app, kind].join(' ');
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
