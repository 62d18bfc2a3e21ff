import { setMaxListeners } from 'node:events';
import type { Availability } from '../../api/remote.ts';
import { type Clock, elapsedMs, type Instant, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';
import { endsBefore } from '../../util/grace.ts';
import type { Log } from '../../util/log.ts';
import { retryPauseMs } from '../../util/wait.ts';
import { type Fault, FileError } from '../errors.ts';
import { concernsAllWrites, faultOf, isBroken, isOutageFault, mayConcernOneWrite } from './failure-policy.ts';
import type { PendingFile, PendingFiles } from './pending-files.ts';

export interface SenderDeps {
  readonly pending: PendingFiles;
  readonly clock: Clock;
  readonly log: Log;
  readonly availability: Availability;
  /**
   * Delivers a write to the service, or to the lost-and-found folder, and removes it from `pending`. Throws why it
   * could not.
   */
  readonly deliver: (file: PendingFile, signal: AbortSignal) => Promise<void>;
}

/** Maximum number of writes sent at a time: they share calls of the commit lane. */
const SENDING_MAX = 200;

/** The same while the service takes no writes: enough to see when it does again. */
const PROBES_MAX = 4;

/**
 * Up to this size a write is in memory while it is sent: such writes are bounded by their size, larger ones by their
 * number.
 */
const SHORT_BYTES_MAX = 4 * 1024 * 1024;
const SENDING_BYTES_MAX = 32 * 1024 * 1024;
const SENDING_LARGE_MAX = 2;

/** Writes that come within this time of each other are a burst, in ms. */
const BURST_GAP_MS = 20;

const NO_BURST = { start: LONG_AGO, latest: LONG_AGO };

/** Maximum time for which the writes of a burst wait for its end, in ms. */
const BURST_MS_MAX = 500;

/** Pauses between the tries of a write. */
const RETRY_PAUSES = { firstMs: 1_000, maxMs: 60_000 };

/** Maximum pause while the service takes no writes and answers other calls, in ms. */
const ANSWERED_RETRY_MS_MAX = 10_000;

/** How often the same failure is logged, in ms. */
const LOG_EVERY_MS = 600_000;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Sends pending writes in the background, each until it has landed: those of one path one after another, others at the
 * same time.
 */
export class Sender {
  readonly #urgent = new Set<PendingFile>();
  readonly #ready = new Set<PendingFile>();
  readonly #later = new Set<PendingFile>();
  readonly #sending = new Map<PendingFile, Promise<void>>();
  readonly #waiters = new Map<PendingFile, Waiter[]>();
  readonly #stop = new AbortController();
  readonly #stopListening: () => void;
  #sendingBytes = 0;
  #sendingLarge = 0;
  /** Failures of all writes in a row. */
  #failures = 0;
  #pausedUntil: Instant = LONG_AGO;
  #pausedBy: Fault | undefined;
  /** The failure that was logged last. */
  #logged: { readonly fault: Fault; readonly until: Instant } | undefined;
  /** Ends the wait for the next write that is due; absent while no wait is running. */
  #alarm: AbortController | undefined;
  #isAwaitingBurst = false;
  /** Start and latest write of the burst. */
  #burst = NO_BURST;
  #idle: (() => void)[] = [];
  #isSendingSoon = false;

  constructor(private readonly deps: SenderDeps) {
    // Each write that is being sent listens to it.
    setMaxListeners(0, this.#stop.signal);
    this.#stopListening = deps.availability.onBack(() => this.#tryAgain());
  }

  get #isPaused(): boolean {
    return this.#pausedUntil > this.deps.clock.instant();
  }

  /**
   * Sends a write as soon as it is due. The writes of a burst wait for its end, because sending them would take the
   * processor time that the answers need.
   */
  offer(file: PendingFile): void {
    this.withdraw(file);
    if (file.state !== 'waiting' || !this.deps.pending.isNext(file)) return;
    if (file.isUrgent) this.#urgent.add(file);
    else if (file.due > this.deps.clock.instant()) this.#later.add(file);
    else {
      this.#ready.add(file);
      this.#noteBurst();
      if (this.#burstMs > 0) return void this.#sendAfterBurst();
    }
    if (this.#isSendingSoon) return;
    this.#isSendingSoon = true;
    setImmediate(() => {
      this.#isSendingSoon = false;
      this.#send();
    });
  }

  #noteBurst(): void {
    const { clock } = this.deps;
    const latest = clock.instant();
    const isNew = elapsedMs(clock, this.#burst.latest) >= BURST_GAP_MS;
    this.#burst = { start: isNew ? latest : this.#burst.start, latest };
  }

  /** Time for which the writes of a burst still wait, in ms. A write alone does not wait. */
  get #burstMs(): number {
    const { clock } = this.deps;
    const { start, latest } = this.#burst;
    if (latest === start) return 0;
    return Math.min(BURST_GAP_MS - elapsedMs(clock, latest), BURST_MS_MAX - elapsedMs(clock, start));
  }

  async #sendAfterBurst(): Promise<void> {
    if (this.#isAwaitingBurst) return;
    this.#isAwaitingBurst = true;
    const { signal } = this.#stop;
    for (let waitMs = this.#burstMs; waitMs > 0 && !signal.aborted; waitMs = this.#burstMs)
      await this.deps.clock.sleep(waitMs, signal).catch(() => {});
    this.#isAwaitingBurst = false;
    this.#send();
  }

  /** Stops sending a write. One that is being sent is not affected. */
  withdraw(file: PendingFile): void {
    this.#urgent.delete(file);
    this.#ready.delete(file);
    this.#later.delete(file);
  }

  /**
   * Removes a write that is not to be sent any more. The requests that wait for it then wait for `successor`, the write
   * that supersedes it; without one they continue.
   */
  remove(file: PendingFile, successor?: PendingFile): void {
    this.deps.pending.delete(file);
    const waiters = this.#waiters.get(file);
    if (waiters && successor) {
      this.#waiters.delete(file);
      this.#waiters.set(successor, [...(this.#waiters.get(successor) ?? []), ...waiters]);
      successor.isUrgent = true;
    } else this.#settle(file, (waiter) => waiter.resolve());
  }

  /** Sends these writes at once. Resolves when none is pending any more; rejects with the first failure. */
  async flush(files: readonly PendingFile[]): Promise<void> {
    const done = files.map((file) => {
      const landed = new Promise<void>((resolve, reject) => {
        this.#waiters.set(file, [...(this.#waiters.get(file) ?? []), { resolve, reject }]);
      });
      file.isUrgent = true;
      this.offer(file);
      return landed;
    });
    await Promise.all(done);
  }

  /** Resolves when those of these writes that are being sent have landed or failed. */
  async settled(files: readonly PendingFile[]): Promise<void> {
    await Promise.allSettled(files.map((file) => this.#sending.get(file)));
  }

  /** Sends all waiting writes, until `over` and as long as the service takes them; the others stay in the journal. */
  async close(over: AbortSignal): Promise<void> {
    for (const file of [...this.#later]) {
      file.isUrgent = true;
      this.offer(file);
    }
    this.#burst = NO_BURST;
    await endsBefore(over, this.#untilIdle());
    this.#stopListening();
    this.#stop.abort(new Error('davgate is ending'));
    this.#alarm?.abort();
    // A call that cannot be aborted may hold a write up: it stays in the journal, and is recognised at the next start.
    await endsBefore(over, this.settled([...this.#sending.keys()]));
  }

  #send(): void {
    if (this.#stop.signal.aborted) return;
    const sendingMax = this.#failures > 0 ? PROBES_MAX : SENDING_MAX;
    for (const file of this.#next()) {
      if (this.#sending.size >= sendingMax || this.#sendingBytes >= SENDING_BYTES_MAX) break;
      // An older write has followed its folder to this path. When it has ended, the next one is offered again.
      if (!this.deps.pending.isNext(file)) {
        this.withdraw(file);
        continue;
      }
      // Small writes overtake large ones.
      if (isLarge(file) && this.#sendingLarge >= SENDING_LARGE_MAX) continue;
      this.#start(file);
    }
    this.#schedule();
    if (this.#sending.size + this.#urgent.size === 0 && (this.#ready.size === 0 || this.#isPaused))
      for (const wake of this.#idle.splice(0)) wake();
  }

  /** Yields the urgent writes first, and only those during a pause or a burst. */
  *#next(): Iterable<PendingFile> {
    yield* this.#urgent;
    if (!this.#isPaused && this.#burstMs <= 0) yield* this.#ready;
  }

  #start(file: PendingFile): void {
    this.withdraw(file);
    file.state = 'sending';
    file.wasSent = true;
    this.#count(file, 1);
    const sent = this.#attempt(file).finally(() => {
      this.#sending.delete(file);
      this.#count(file, -1);
      const next = this.deps.pending.first(file.write.path);
      if (next) this.offer(next);
      this.#send();
    });
    this.#sending.set(file, sent);
  }

  #count(file: PendingFile, change: 1 | -1): void {
    if (isLarge(file)) this.#sendingLarge += change;
    else this.#sendingBytes += change * file.write.sizeBytes;
  }

  async #attempt(file: PendingFile): Promise<void> {
    try {
      await this.deps.deliver(file, this.#stop.signal);
      this.#recovered();
      this.#settle(file, (waiter) => waiter.resolve());
    } catch (error) {
      this.#putBack(file, error);
      for (const each of this.deps.pending.at(file.write.path))
        this.#settle(each, (waiter) => waiter.reject(error));
    }
  }

  #putBack(file: PendingFile, error: unknown): void {
    file.state = 'waiting';
    file.isUrgent = false;
    if (this.#stop.signal.aborted) return;
    const message = error instanceof Error ? error.message : String(error);
    this.deps.pending.hinder(file, { fault: faultOf(error), message });
    if (concernsAllWrites(error)) {
      if (mayConcernOneWrite(error))
        file.notBefore = instantIn(this.deps.clock, retryPauseMs(RETRY_PAUSES, ++file.troubles));
      this.#pause(error);
      return;
    }
    file.failures++;
    if (isBroken(error)) file.brokenCount++;
    file.notBefore = instantIn(this.deps.clock, retryPauseMs(RETRY_PAUSES, file.failures));
    this.deps.log.warn('a write has failed and is tried again', {
      path: file.write.path,
      failures: file.failures,
      reason: String(error),
    });
  }

  /** Pauses all writes. Of writes that fail together only the first counts. */
  #pause(error: unknown): void {
    if (this.#isPaused) return;
    this.#failures++;
    const fault = faultOf(error);
    this.#pausedBy = fault;
    this.#pausedUntil = instantIn(this.deps.clock, this.#pauseMs(fault));
    if (this.#logged?.fault === fault && remainingMs(this.deps.clock, this.#logged.until) > 0) return;
    this.#logged = { fault, until: instantIn(this.deps.clock, LOG_EVERY_MS) };
    const { files, bytes } = this.deps.pending;
    const cause = error instanceof FileError ? error.details.cause : undefined;
    this.deps.log.warn('the storage service takes no writes; they wait in the journal', {
      files,
      bytes,
      reason: String(cause ?? error),
    });
  }

  #pauseMs(fault: Fault): number {
    const pauseMs = retryPauseMs(RETRY_PAUSES, this.#failures);
    const isAnswering = isOutageFault(fault) && this.deps.availability.awaySince === undefined;
    return isAnswering ? Math.min(pauseMs, ANSWERED_RETRY_MS_MAX) : pauseMs;
  }

  /** Ends the pauses of failures that are over. Few writes are sent until one of them has landed. */
  #tryAgain(): void {
    const now = this.deps.clock.instant();
    if (this.#pausedBy && isOutageFault(this.#pausedBy)) this.#pausedUntil = LONG_AGO;
    for (const file of this.#later) {
      if (!file.problem || !isOutageFault(file.problem.fault)) continue;
      file.notBefore = LONG_AGO;
      if (file.due <= now && this.#later.delete(file)) this.#ready.add(file);
    }
    this.#send();
  }

  #recovered(): void {
    const { pending, log } = this.deps;
    if (this.#failures > 0) {
      this.#failures = 0;
      this.#pausedUntil = LONG_AGO;
      // The writes that failed only because all did.
      pending.free(({ troubles, failures }) => troubles + failures === 0);
    }
    // A write that keeps failing alone is not logged again each time that another lands.
    if (!this.#logged || pending.problem) return;
    this.#logged = undefined;
    const { files, bytes } = pending;
    log.info('the storage service takes writes again', { files, bytes });
  }

  #settle(file: PendingFile, how: (waiter: Waiter) => void): void {
    const waiters = this.#waiters.get(file) ?? [];
    this.#waiters.delete(file);
    for (const waiter of waiters) how(waiter);
  }

  /** Sets the timer to the end of the pause or to the first write that is due. */
  #schedule(): void {
    // Only when there is one: aborting makes an error with a stack trace, at each write.
    this.#alarm?.abort();
    this.#alarm = undefined;
    const { clock } = this.deps;
    const isPausing = this.#ready.size > 0 && this.#isPaused;
    let waitMs = isPausing ? remainingMs(clock, this.#pausedUntil) : Number.POSITIVE_INFINITY;
    for (const file of this.#later) waitMs = Math.min(waitMs, remainingMs(clock, file.due));
    if (waitMs === Number.POSITIVE_INFINITY || this.#stop.signal.aborted) return;
    this.#alarm = new AbortController();
    clock.sleep(Math.max(0, waitMs), this.#alarm.signal).then(
      () => this.#wake(),
      () => {},
    );
  }

  #wake(): void {
    const now = this.deps.clock.instant();
    for (const file of [...this.#later]) if (file.due <= now) this.offer(file);
    this.#send();
  }

  #untilIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#send();
    });
  }
}

function isLarge({ write }: PendingFile): boolean {
  return write.sizeBytes > SHORT_BYTES_MAX;
}
