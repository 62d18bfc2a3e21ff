import { setMaxListeners } from 'node:events';
import type { Availability } from '../../api/remote.ts';
import { type Clock, type Instant, instantIn, LONG_AGO, remainingMs } from '../../util/clock.ts';
import { endsBefore } from '../../util/grace.ts';
import type { Log } from '../../util/log.ts';
import { type Fault, FileError } from '../errors.ts';
import { faultOf, isAway, isPerhapsOfOne, isTrouble } from './failure-policy.ts';
import type { PendingFile, PendingFiles } from './pending-files.ts';

export interface DrainParts {
  readonly pending: PendingFiles;
  readonly clock: Clock;
  readonly log: Log;
  readonly availability: Availability;
  /** Brings one to the service, or to where it is kept; then it is no longer among `pending`. Throws why not yet. */
  readonly land: (file: PendingFile, signal: AbortSignal) => Promise<void>;
}

/** Writes that are sent at the same time: the commit lane makes few calls of many. */
const SENDING_MAX = 200;

/** The same while the service takes none: enough to see whether it does again. */
const PROBES_MAX = 4;

/** Up to this size a write is in memory while it is sent: those count together, and the larger ones one by one. */
const SHORT_BYTES_MAX = 4 * 1024 * 1024;
const SENDING_BYTES_MAX = 32 * 1024 * 1024;
const SENDING_LARGE_MAX = 2;

/** Until the next try, after the first failure and at most; doubled each time. */
const RETRY_MS = { first: 1_000, max: 60_000 };

/** The most while the service, which did not take a write, answers other calls. */
const ANSWERED_RETRY_MS_MAX = 10_000;

/** How often the log is told of trouble that stays the same. */
const TELL_EVERY_MS = 600_000;

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Sends pending writes in the background: those of one path one after another, others at the same time, each
 * again until it has landed.
 */
export class Drain {
  readonly #urgent = new Set<PendingFile>();
  readonly #ready = new Set<PendingFile>();
  readonly #later = new Set<PendingFile>();
  readonly #sending = new Map<PendingFile, Promise<void>>();
  readonly #waiters = new Map<PendingFile, Waiter[]>();
  readonly #stop = new AbortController();
  readonly #stopListening: () => void;
  #sendingBytes = 0;
  #sendingLarge = 0;
  #troubles = 0;
  #pausedUntil: Instant = LONG_AGO;
  #pausedBy: Fault | undefined;
  /** The trouble that the log has heard of last. */
  #told: { readonly fault: Fault; readonly until: Instant } | undefined;
  #alarm = new AbortController();
  #idle: (() => void)[] = [];

  constructor(private readonly parts: DrainParts) {
    // All that are sent listen to it.
    setMaxListeners(0, this.#stop.signal);
    this.#stopListening = parts.availability.onBack(() => this.#tryAgain());
  }

  get #isPaused(): boolean {
    return this.#pausedUntil > this.parts.clock.instant();
  }

  /** To be called when a write may be sent from now on. */
  offer(file: PendingFile): void {
    if (file.state !== 'waiting' || this.parts.pending.first(file.write.path) !== file) return;
    this.withdraw(file);
    if (file.isUrgent) this.#urgent.add(file);
    else if (file.due > this.parts.clock.instant()) this.#later.add(file);
    else this.#ready.add(file);
    this.#send();
  }

  /** To be called when a write is not to be sent any more. One under way is not affected. */
  withdraw(file: PendingFile): void {
    this.#urgent.delete(file);
    this.#ready.delete(file);
    this.#later.delete(file);
  }

  /** Sends these at once. Resolves when all have landed or are kept elsewhere; rejects with what hinders the first. */
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

  /** Resolves when the one that is on its way there, if any, has landed or failed. */
  async settled(files: readonly PendingFile[]): Promise<void> {
    await Promise.allSettled(files.map((file) => this.#sending.get(file)));
  }

  /** Sends all that waits, until `over` and only as long as the service takes it; the rest stays. */
  async close(over: AbortSignal): Promise<void> {
    for (const file of [...this.#later]) {
      file.isUrgent = true;
      this.offer(file);
    }
    await endsBefore(over, this.#untilIdle());
    this.#stopListening();
    this.#stop.abort(new Error('davgate is ending'));
    this.#alarm.abort();
    // One may wait behind a call that nothing aborts: its write stays, and is told from another's at the next start.
    await endsBefore(over, this.settled([...this.#sending.keys()]));
  }

  #send(): void {
    if (this.#stop.signal.aborted) return;
    const sendingMax = this.#troubles > 0 ? PROBES_MAX : SENDING_MAX;
    for (const file of this.#next()) {
      if (this.#sending.size >= sendingMax || this.#sendingBytes >= SENDING_BYTES_MAX) break;
      // Small ones go past those that take long.
      if (isLarge(file) && this.#sendingLarge >= SENDING_LARGE_MAX) continue;
      this.#start(file);
    }
    this.#schedule();
    if (this.#sending.size + this.#urgent.size === 0 && (this.#ready.size === 0 || this.#isPaused))
      for (const wake of this.#idle.splice(0)) wake();
  }

  /** Those for which somebody waits first; during a pause only they. */
  *#next(): Iterable<PendingFile> {
    yield* this.#urgent;
    if (!this.#isPaused) yield* this.#ready;
  }

  #start(file: PendingFile): void {
    this.withdraw(file);
    file.state = 'sending';
    file.wasSent = true;
    this.#count(file, 1);
    const sent = this.#attempt(file).finally(() => {
      this.#sending.delete(file);
      this.#count(file, -1);
      const next = this.parts.pending.first(file.write.path);
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
      await this.parts.land(file, this.#stop.signal);
      this.#recovered();
      this.#tell(file, (waiter) => waiter.resolve());
    } catch (error) {
      this.#putBack(file, error);
      for (const each of this.parts.pending.at(file.write.path))
        this.#tell(each, (waiter) => waiter.reject(error));
    }
  }

  #putBack(file: PendingFile, error: unknown): void {
    file.state = 'waiting';
    file.isUrgent = false;
    if (this.#stop.signal.aborted) return;
    const message = error instanceof Error ? error.message : String(error);
    this.parts.pending.hinder(file, { fault: faultOf(error), message });
    if (isTrouble(error)) {
      if (isPerhapsOfOne(error)) file.notBefore = instantIn(this.parts.clock, backoffMs(++file.troubles));
      this.#trouble(error);
      return;
    }
    file.failures++;
    file.notBefore = instantIn(this.parts.clock, backoffMs(file.failures));
    this.parts.log.warn('a write is not at the storage service yet', {
      path: file.write.path,
      failures: file.failures,
      reason: String(error),
    });
  }

  /** The first of those that fail together counts for all of them. */
  #trouble(error: unknown): void {
    if (this.#isPaused) return;
    this.#troubles++;
    const fault = faultOf(error);
    this.#pausedBy = fault;
    this.#pausedUntil = instantIn(this.parts.clock, this.#pauseMs(fault));
    if (this.#told?.fault === fault && remainingMs(this.parts.clock, this.#told.until) > 0) return;
    this.#told = { fault, until: instantIn(this.parts.clock, TELL_EVERY_MS) };
    const { files, bytes } = this.parts.pending;
    const cause = error instanceof FileError ? error.details.cause : undefined;
    this.parts.log.warn('the storage service takes no writes for now; they wait in the journal', {
      files,
      bytes,
      reason: String(cause ?? error),
    });
  }

  #pauseMs(fault: Fault): number {
    const pauseMs = backoffMs(this.#troubles);
    const isAnswering = isAway(fault) && this.parts.availability.awaySince === undefined;
    return isAnswering ? Math.min(pauseMs, ANSWERED_RETRY_MS_MAX) : pauseMs;
  }

  /** Ends what is waited for only because the service did not answer. Few are sent until one of them has landed. */
  #tryAgain(): void {
    const now = this.parts.clock.instant();
    if (this.#pausedBy && isAway(this.#pausedBy)) this.#pausedUntil = LONG_AGO;
    for (const file of this.#later) {
      if (!file.problem || !isAway(file.problem.fault)) continue;
      file.notBefore = LONG_AGO;
      if (file.due <= now && this.#later.delete(file)) this.#ready.add(file);
    }
    this.#send();
  }

  #recovered(): void {
    const { pending, log } = this.parts;
    if (this.#troubles > 0) {
      this.#troubles = 0;
      this.#pausedUntil = LONG_AGO;
      // Those that met the trouble of all.
      pending.free(({ troubles, failures }) => troubles + failures === 0);
    }
    // One that goes on failing alone is not told of again each time that another lands.
    if (!this.#told || pending.problem) return;
    this.#told = undefined;
    const { files, bytes } = pending;
    log.info('the storage service takes writes again', { files, bytes });
  }

  #tell(file: PendingFile, say: (waiter: Waiter) => void): void {
    const waiters = this.#waiters.get(file) ?? [];
    this.#waiters.delete(file);
    for (const waiter of waiters) say(waiter);
  }

  /** Wakes when the pause ends, or the first that waits for its time is due. */
  #schedule(): void {
    this.#alarm.abort();
    const { clock } = this.parts;
    const isHeldUp = this.#ready.size > 0 && this.#isPaused;
    let waitMs = isHeldUp ? remainingMs(clock, this.#pausedUntil) : Number.POSITIVE_INFINITY;
    for (const file of this.#later) waitMs = Math.min(waitMs, remainingMs(clock, file.due));
    if (waitMs === Number.POSITIVE_INFINITY || this.#stop.signal.aborted) return;
    this.#alarm = new AbortController();
    clock.sleep(Math.max(0, waitMs), this.#alarm.signal).then(
      () => this.#wake(),
      () => {},
    );
  }

  #wake(): void {
    const now = this.parts.clock.instant();
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

function backoffMs(failures: number): number {
  return Math.min(RETRY_MS.max, RETRY_MS.first * 2 ** (failures - 1));
}
