import PQueue from 'p-queue';
import { onAbort } from '../util/abort.ts';
import {
  type Clock,
  elapsedMs,
  type Instant,
  instantIn,
  LONG_AGO,
  laterOf,
  remainingMs,
} from '../util/clock.ts';
import { Alarm, Condition } from '../util/wait.ts';
import type { CallBudget } from './call-budget.ts';
import { CommitConcurrency, type CommitFlight } from './commit-concurrency.ts';
import { ApiError } from './errors.ts';
import { CallFailure } from './failure.ts';

/**
 * The kind of a call, which decides its priority and which other calls it waits for:
 * - `metadata`: a listing or an entry that a client waits for. Waits only for other metadata calls.
 * - `read`: a download that a client waits for.
 * - `commit`: changes the tree. One at a time: the service locks the namespace for each, and refuses a second.
 * - `upload`: the commit of a short file. Several in parallel if the service accepts that, else like `commit`.
 * - `staging`: short contents that their commit waits for. Takes no lock and commits nothing.
 * - `session`: a part of a long upload. Like `staging`, but with many calls for one file.
 * - `prefetch`: anything that no client waits for yet.
 */
export type Lane = 'metadata' | 'read' | 'commit' | 'upload' | 'staging' | 'session' | 'prefetch';

/** The number of calls in one lane at this moment. */
export interface LaneDepth {
  readonly waiting: number;
  readonly running: number;
}

/** Maximum number of parallel calls, and the minimum however often the service says that they are too many. */
const METADATA_CALLS = { max: 16, min: 2 };
const CONTENT_CALLS = { max: 16, min: 4 };

/** The lanes that share the content calls. The highest priority goes first, and no lane exceeds its own maximum. */
const CONTENT_LANES: Readonly<Record<Exclude<Lane, 'metadata'>, { priority: number; max: number }>> = {
  read: { priority: 4, max: 10 },
  commit: { priority: 3, max: 1 },
  upload: { priority: 3, max: 8 },
  staging: { priority: 2, max: 4 },
  session: { priority: 1, max: 6 },
  prefetch: { priority: 0, max: 2 },
};

/** Minimum time between two halvings of the number of calls, in ms. */
const SHRINK_EVERY_MS = 1000;

/**
 * A pause of up to `from` ms is kept as the service requested it. The service never requests more than some minutes: a
 * longer pause is a mistake of a proxy, and one call every `every` ms finds out whether it is over.
 */
const TRIAL_MS = { from: 300_000, every: 60_000 };

export interface QueueDeps {
  readonly clock: Clock;
  /** A pause of the account that is longer than this, in ms, makes waiting calls fail. */
  readonly patienceMs: number;
  /** Ends the pauses. */
  readonly signal: AbortSignal;
  /** Shared with other gateways of the account; `undefined` if there are none. */
  readonly budget?: CallBudget | undefined;
}

/**
 * Decides when each call of an account may go out. The number of parallel calls grows slowly while calls succeed, and
 * halves when the service says that they are too many (AIMD, like TCP).
 */
export class CallQueue {
  readonly #metadata = new AdaptiveQueue(METADATA_CALLS);
  readonly #content = new AdaptiveQueue(CONTENT_CALLS);
  readonly #lanes: Readonly<Record<Exclude<Lane, 'metadata'>, PQueue>> = {
    read: new PQueue({ concurrency: CONTENT_LANES.read.max }),
    commit: new PQueue({ concurrency: CONTENT_LANES.commit.max }),
    upload: new PQueue({ concurrency: CONTENT_LANES.upload.max }),
    staging: new PQueue({ concurrency: CONTENT_LANES.staging.max }),
    session: new PQueue({ concurrency: CONTENT_LANES.session.max }),
    prefetch: new PQueue({ concurrency: CONTENT_LANES.prefetch.max }),
  };
  readonly #waiting = new Map<AbortController, Instant>();
  readonly #depths: Record<Lane, { waiting: number; running: number }> = {
    metadata: { waiting: 0, running: 0 },
    read: { waiting: 0, running: 0 },
    commit: { waiting: 0, running: 0 },
    upload: { waiting: 0, running: 0 },
    staging: { waiting: 0, running: 0 },
    session: { waiting: 0, running: 0 },
    prefetch: { waiting: 0, running: 0 },
  };
  #pausedUntil: Instant = LONG_AGO;
  /** Time of the next call during a pause that is too long to be believed. */
  #nextTrial: Instant | undefined;
  #nextShrink: Instant = LONG_AGO;
  #lastSuccess: Instant = LONG_AGO;
  #paused = false;
  readonly #pauseOver: Alarm;
  readonly #resumed = new Condition();

  readonly #commitConcurrency: CommitConcurrency;

  constructor(private readonly deps: QueueDeps) {
    this.#pauseOver = new Alarm(deps.clock);
    this.#commitConcurrency = new CommitConcurrency(deps.clock, deps.budget);
  }

  /**
   * Runs `job` in its turn. A call whose signal is aborted while it waits never goes out. Notes in `flight` whether
   * another commit was under way at the same time.
   */
  async run<T>(
    lane: Lane,
    job: () => Promise<T>,
    signal: AbortSignal,
    flight: CommitFlight = { overlapped: false },
  ): Promise<T> {
    signal.throwIfAborted();
    if (this.#isTrialDue) return this.#tryOut(job);
    const refusal = this.#longPause();
    if (refusal) throw refusal;
    const waiting = new AbortController();
    const removeListener = onAbort(signal, (reason) => waiting.abort(reason));
    this.#waiting.set(waiting, this.deps.clock.instant());
    const { budget } = this.deps;
    const depth = this.#depths[lane];
    let place: keyof LaneDepth = 'waiting';
    depth[place] += 1;
    try {
      return await this.#enqueue(lane, waiting.signal, async () => {
        if (budget) await this.#admitted(budget, waiting.signal);
        this.#waiting.delete(waiting);
        depth[place] -= 1;
        place = 'running';
        depth[place] += 1;
        const isCommit = lane === 'commit' || lane === 'upload';
        return await (isCommit ? this.#commitConcurrency.during(flight, job) : job());
      });
    } finally {
      depth[place] -= 1;
      this.#waiting.delete(waiting);
      removeListener();
    }
  }

  /** Notes that the service accepted a call: slightly more of them may run in parallel. */
  succeeded(lane: Lane, flight: CommitFlight = { overlapped: false }): void {
    this.#lastSuccess = this.deps.clock.instant();
    this.#shared(lane).grow();
    this.#commitConcurrency.succeeded(flight);
    this.#tuneUploads();
  }

  /** Notes that the service refused a commit because of another one of ours. */
  collided(): void {
    this.#commitConcurrency.refused();
    this.#tuneUploads();
  }

  /** How many short uploads may be under way in parallel. */
  get uploadsAtOnce(): number {
    return this.#commitConcurrency.max;
  }

  /** Notes that the service refused a call because there are too many. */
  limited(lane: Lane): void {
    this.#commitConcurrency.refused();
    const { clock } = this.deps;
    // Calls under way fail together: they count as one signal.
    if (this.#paused || clock.instant() < this.#nextShrink) return;
    this.#nextShrink = instantIn(clock, SHRINK_EVERY_MS);
    this.#shared(lane).shrink();
  }

  /** Pauses all calls of the account for `ms` milliseconds, except for trials. `isShared`: at all its gateways. */
  pause(ms: number, isShared = false): void {
    if (isShared) this.deps.budget?.pause(ms);
    const { clock } = this.deps;
    this.#pausedUntil = laterOf(this.#pausedUntil, instantIn(clock, ms));
    if (ms > TRIAL_MS.from) this.#nextTrial = instantIn(clock, TRIAL_MS.every);
    const refusal = this.#longPause();
    if (refusal) for (const waiting of [...this.#waiting.keys()]) waiting.abort(refusal);
    if (this.#paused) return;
    this.#paused = true;
    this.#metadata.queue.pause();
    this.#content.queue.pause();
    void this.#resume();
  }

  /**
   * To be called when a call found the service away until its deadline. Calls that have waited for their turn as long
   * fail too. Without this they would fail one after the other, and the last of them after many minutes.
   */
  refuseLongWaiting(reason: ApiError): void {
    const { clock, patienceMs } = this.deps;
    // One call that fails while others succeed says nothing about these.
    if (elapsedMs(clock, this.#lastSuccess) < patienceMs) return;
    for (const [waiting, since] of [...this.#waiting])
      if (elapsedMs(clock, since) >= patienceMs) waiting.abort(reason);
  }

  /** Time until the pause ends or a trial is due, in ms. */
  get closedMs(): number {
    const { clock } = this.deps;
    const leftMs = Math.max(0, this.#leftMs());
    return this.#nextTrial === undefined
      ? leftMs
      : Math.min(leftMs, Math.max(0, remainingMs(clock, this.#nextTrial)));
  }

  /** Whether the account is paused. */
  get paused(): boolean {
    return this.#paused;
  }

  /** How many calls wait for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** How many calls wait and run in each lane. */
  depths(): Readonly<Record<Lane, LaneDepth>> {
    return structuredClone(this.#depths);
  }

  get #isTrialDue(): boolean {
    return this.#paused && this.#nextTrial !== undefined && this.#nextTrial <= this.deps.clock.instant();
  }

  /** Makes one call during a pause. Any answer of the service, even a refusal, ends the pause. */
  async #tryOut<T>(job: () => Promise<T>): Promise<T> {
    this.#nextTrial = instantIn(this.deps.clock, TRIAL_MS.every);
    try {
      const result = await job();
      this.#endPause();
      return result;
    } catch (failure) {
      if (failure instanceof CallFailure && failure.reason === 'refused') this.#endPause();
      throw failure;
    }
  }

  #endPause(): void {
    this.#pausedUntil = LONG_AGO;
    this.deps.budget?.resume();
    this.#pauseOver.ring();
  }

  async #resume(): Promise<void> {
    const { signal } = this.deps;
    // Calls that start after the client was closed fail by themselves.
    for (let leftMs = this.#leftMs(); leftMs > 0 && !signal.aborted; leftMs = this.#leftMs())
      await this.#pauseOver.sleep(leftMs, signal);
    this.#nextTrial = undefined;
    this.#paused = false;
    this.#metadata.queue.start();
    this.#content.queue.start();
    this.#resumed.notify();
  }

  /** Waits for the budget that the gateways of the account share. */
  async #admitted(budget: CallBudget, signal: AbortSignal): Promise<void> {
    for (let pausedMs = await budget.take(); pausedMs > 0; pausedMs = await budget.take()) {
      this.pause(pausedMs);
      // A short one may be over already.
      if (this.#paused) await this.#resumed.wait(signal);
    }
    signal.throwIfAborted();
  }

  #enqueue<T>(lane: Lane, signal: AbortSignal, job: () => Promise<T>): Promise<T> {
    if (lane === 'metadata') return this.#metadata.queue.add(job, { signal });
    const { priority } = CONTENT_LANES[lane];
    const inTurn = () => this.#content.queue.add(job, { signal, priority });
    this.#tuneUploads();
    const line = lane === 'upload' && this.uploadsAtOnce === 1 ? 'commit' : lane;
    return this.#lanes[line].add(inTurn, { signal });
  }

  #tuneUploads(): void {
    const { upload } = this.#lanes;
    if (upload.concurrency !== this.uploadsAtOnce) upload.concurrency = this.uploadsAtOnce;
  }

  #shared(lane: Lane): AdaptiveQueue {
    return lane === 'metadata' ? this.#metadata : this.#content;
  }

  #leftMs(): number {
    return remainingMs(this.deps.clock, this.#pausedUntil);
  }

  #longPause(): ApiError | undefined {
    if (this.#leftMs() <= this.deps.patienceMs) return undefined;
    const retryAfterMs = this.closedMs;
    return new ApiError('rate-limited', 'the storage service accepts no calls for a while', { retryAfterMs });
  }
}

/** A queue whose concurrency follows what the service accepts. */
class AdaptiveQueue {
  readonly queue: PQueue;
  #limit: number;

  constructor(private readonly bounds: { readonly max: number; readonly min: number }) {
    this.#limit = bounds.max;
    this.queue = new PQueue({ concurrency: bounds.max });
  }

  grow(): void {
    this.#set(this.#limit + 1 / this.#limit);
  }

  shrink(): void {
    this.#set(this.#limit / 2);
  }

  #set(limit: number): void {
    this.#limit = Math.min(this.bounds.max, Math.max(this.bounds.min, limit));
    const concurrency = Math.floor(this.#limit);
    if (concurrency !== this.queue.concurrency) this.queue.concurrency = concurrency;
  }
}
