import PQueue from 'p-queue';
import {
  type Clock,
  elapsedMs,
  type Instant,
  instantIn,
  LONG_AGO,
  laterOf,
  remainingMs,
} from '../util/clock.ts';
import { onAbort } from '../util/on-abort.ts';
import { Alarm } from '../util/wait.ts';
import { ApiError } from './errors.ts';
import { CallFailure } from './failure.ts';
import { type CommitFlight, SideBySide } from './write/commit-concurrency.ts';

/**
 * What a call is, and so what it may wait for:
 * - `metadata`: somebody waits for a listing or an entry. Waits for nothing but its like.
 * - `read`: a download that somebody waits for.
 * - `commit`: changes the tree. One at a time: the service locks the namespace for each, and refuses a second.
 * - `upload`: the commit of a short file; several at once where the service takes that, and else a `commit`.
 * - `staging`: short contents that their commit waits for; takes no lock and commits nothing.
 * - `session`: a part of an upload; likewise, but many of them make a file.
 * - `prefetch`: anything that nobody waits for yet.
 */
export type Lane = 'metadata' | 'read' | 'commit' | 'upload' | 'staging' | 'session' | 'prefetch';

/** Calls of one lane at this moment. */
export interface LaneDepth {
  readonly waiting: number;
  /** Under way. */
  readonly running: number;
}

/** Calls under way at once: at most, and at least however often the service says that it is too many. */
const METADATA_CALLS = { max: 16, min: 2 };
const CONTENT_CALLS = { max: 16, min: 4 };

/** The lanes that share the content calls: the highest priority goes first, none takes more than its own maximum. */
const CONTENT_LANES: Readonly<Record<Exclude<Lane, 'metadata'>, { priority: number; max: number }>> = {
  read: { priority: 4, max: 10 },
  commit: { priority: 3, max: 1 },
  upload: { priority: 3, max: 8 },
  staging: { priority: 2, max: 4 },
  session: { priority: 1, max: 6 },
  prefetch: { priority: 0, max: 2 },
};

/** How often the number of calls is halved at most. */
const SHRINK_EVERY_MS = 1000;

/**
 * A pause up to this length is kept as the service asked for it. It never asks for more than some minutes; a longer one
 * is a mistake of something in front of it, and one call in `every` finds out whether it still holds.
 */
const TRIAL_MS = { from: 300_000, every: 60_000 };

export interface QueueWorld {
  readonly clock: Clock;
  /** A longer pause of the account fails the calls that wait instead of holding them. */
  readonly patienceMs: number;
  /** Ends the pauses. */
  readonly signal: AbortSignal;
}

/**
 * Decides when each call of an account may go out. The number of calls under way grows slowly while all
 * goes well and halves when the service says that they are too many (AIMD, as TCP does).
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
  /** In a pause that is too long to be believed, the next call goes out all the same from then on. */
  #nextTrial: Instant | undefined;
  #nextShrink: Instant = LONG_AGO;
  #lastSuccess: Instant = LONG_AGO;
  #paused = false;
  readonly #pauseOver: Alarm;

  readonly #sideBySide: SideBySide;

  constructor(private readonly world: QueueWorld) {
    this.#pauseOver = new Alarm(world.clock);
    this.#sideBySide = new SideBySide(world.clock);
  }

  /**
   * Runs `job` in its turn. A call whose signal is aborted while it waits never goes out. `flight` is told whether
   * it was beside another commit.
   */
  async run<T>(
    lane: Lane,
    job: () => Promise<T>,
    signal: AbortSignal,
    flight: CommitFlight = { overlapped: false },
  ): Promise<T> {
    signal.throwIfAborted();
    if (this.#isTrialDue) return this.#tryOut(job);
    this.#refuseLongPause();
    const waiting = new AbortController();
    const removeListener = onAbort(signal, (reason) => waiting.abort(reason));
    this.#waiting.set(waiting, this.world.clock.instant());
    const depth = this.#depths[lane];
    let place: keyof LaneDepth = 'waiting';
    depth[place] += 1;
    try {
      return await this.#enqueue(lane, waiting.signal, () => {
        this.#waiting.delete(waiting);
        depth[place] -= 1;
        place = 'running';
        depth[place] += 1;
        const isCommit = lane === 'commit' || lane === 'upload';
        return isCommit ? this.#sideBySide.during(flight, job) : job();
      });
    } finally {
      depth[place] -= 1;
      this.#waiting.delete(waiting);
      removeListener();
    }
  }

  /** The service took a call: there may be slightly more of them. */
  succeeded(lane: Lane, flight: CommitFlight = { overlapped: false }): void {
    this.#lastSuccess = this.world.clock.instant();
    this.#shared(lane).grow();
    this.#sideBySide.succeeded(flight);
    this.#tuneUploads();
  }

  /** The service refused a commit because of another one of ours. */
  collided(): void {
    this.#sideBySide.refused();
    this.#tuneUploads();
  }

  /** How many short uploads may be under way at once. */
  get uploadsAtOnce(): number {
    return this.#sideBySide.atOnce;
  }

  /** The service sent a call away because there are too many. */
  limited(lane: Lane): void {
    this.#sideBySide.refused();
    const { clock } = this.world;
    // Those already under way are all sent away together: that is one message, not many.
    if (this.#paused || clock.instant() < this.#nextShrink) return;
    this.#nextShrink = instantIn(clock, SHRINK_EVERY_MS);
    this.#shared(lane).shrink();
  }

  /** No call of the account goes out for `ms` milliseconds, but for trials. */
  pause(ms: number): void {
    const { clock } = this.world;
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
   * The service was not to be had for a call as long as that was tried. Those that have waited as long for their turn
   * fail too: one after the other, the last of them would wait for many minutes.
   */
  refuseLongWaiting(reason: ApiError): void {
    const { clock, patienceMs } = this.world;
    // One call that fails while others go well says nothing of these.
    if (elapsedMs(clock, this.#lastSuccess) < patienceMs) return;
    for (const [waiting, since] of [...this.#waiting])
      if (elapsedMs(clock, since) >= patienceMs) waiting.abort(reason);
  }

  /** How long it is worth while to stay away: until the pause ends, or until a call is let out for a trial. */
  get closedMs(): number {
    const { clock } = this.world;
    const leftMs = Math.max(0, this.#leftMs());
    return this.#nextTrial === undefined
      ? leftMs
      : Math.min(leftMs, Math.max(0, remainingMs(clock, this.#nextTrial)));
  }

  /** Whether calls are held back for now. */
  get paused(): boolean {
    return this.#paused;
  }

  /** How many calls are waiting for their turn. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** How many calls wait and run, lane by lane. */
  depths(): Readonly<Record<Lane, LaneDepth>> {
    return structuredClone(this.#depths);
  }

  get #isTrialDue(): boolean {
    return this.#paused && this.#nextTrial !== undefined && this.#nextTrial <= this.world.clock.instant();
  }

  /** Lets one call out during a pause. An answer of the service to it, a refusal too, ends the pause. */
  async #tryOut<T>(job: () => Promise<T>): Promise<T> {
    this.#nextTrial = instantIn(this.world.clock, TRIAL_MS.every);
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
    this.#pauseOver.ring();
  }

  async #resume(): Promise<void> {
    const { signal } = this.world;
    // Calls that start after the client was closed fail by themselves.
    for (let leftMs = this.#leftMs(); leftMs > 0 && !signal.aborted; leftMs = this.#leftMs())
      await this.#pauseOver.sleep(leftMs, signal);
    this.#nextTrial = undefined;
    this.#paused = false;
    this.#metadata.queue.start();
    this.#content.queue.start();
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
    return remainingMs(this.world.clock, this.#pausedUntil);
  }

  #longPause(): ApiError | undefined {
    if (this.#leftMs() <= this.world.patienceMs) return undefined;
    const retryAfterMs = this.closedMs;
    return new ApiError('rate-limited', 'the storage service wants no calls for a while', { retryAfterMs });
  }

  #refuseLongPause(): void {
    const refusal = this.#longPause();
    if (refusal) throw refusal;
  }
}

/** A queue whose concurrency follows what the service bears. */
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
