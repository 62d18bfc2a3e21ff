import { onAbort } from './abort.ts';

declare const instant: unique symbol;

/**
 * A reading of the monotonic clock: for ages, waits and deadlines inside this process. Setting the computer's clock does
 * not move it, and it stands still while the machine is suspended. Two instants compare with `<`. The type is opaque, so
 * that an instant and a wall time cannot be compared, subtracted or stored for each other.
 */
export interface Instant {
  readonly [instant]: true;
}

/** The only source of time. Tests pass one that they set by hand. */
export interface Clock {
  /** Wall time in ms since 1970, for values that are stored, shown or sent. It may jump either way at any time. */
  now(): number;
  /** Returns the monotonic time, for measuring and waiting. */
  instant(): Instant;
  /** Resolves after `ms` milliseconds of monotonic time; rejects with the signal's reason when that is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** Maximum time of a Node timer, in ms; a longer one fires at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  // Whole ms, as wall time has them: a due time that is made of both is stored as an integer.
  instant: () => instantAt(Math.floor(performance.now())),
  async sleep(ms, signal) {
    for (let leftMs = ms; ; leftMs -= TIMER_MS_MAX) {
      await timer(Math.min(leftMs, TIMER_MS_MAX), signal);
      if (leftMs <= TIMER_MS_MAX) return;
    }
  },
};

function timer(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const timeout = setTimeout(() => {
      removeListener?.();
      resolve();
    }, ms);
    const removeListener =
      signal &&
      onAbort(signal, (reason) => {
        clearTimeout(timeout);
        reject(reason);
      });
  });
}

/** Returns the instant at which a monotonic clock shows `ms`, for implementations of `Clock`. */
export function instantAt(ms: number): Instant {
  // The cast is what makes the type opaque: at runtime an instant is a number.
  return ms as unknown as Instant;
}

/** An instant before all others, for an event that has not happened yet or is due at once. */
export const LONG_AGO = instantAt(Number.NEGATIVE_INFINITY);

/** Returns the time from `earlier` to `later`, in ms; negative if `later` comes first. */
export function msBetween(earlier: Instant, later: Instant): number {
  return Number(later) - Number(earlier);
}

/** Returns the time since `start`, in ms. */
export function elapsedMs(clock: Clock, start: Instant): number {
  return msBetween(start, clock.instant());
}

/** Returns the time until `end`, in ms; negative once it has passed. */
export function remainingMs(clock: Clock, end: Instant): number {
  return msBetween(clock.instant(), end);
}

/** Returns the instant `ms` milliseconds from now. */
export function instantIn(clock: Clock, ms: number): Instant {
  return instantAt(Number(clock.instant()) + ms);
}

export function laterOf(one: Instant, other: Instant): Instant {
  return one > other ? one : other;
}

/** A moment on both clocks, for ages that include the time in which the machine was suspended. */
export interface Moment {
  readonly instant: Instant;
  readonly wallMs: number;
}

export function momentNow(clock: Clock): Moment {
  return { instant: clock.instant(), wallMs: clock.now() };
}

/**
 * Returns the time since `moment`, in ms, by the clock that shows more: only wall time counts a suspension, and only the
 * monotonic clock is right after wall time was set back. Wall time that was set forward looks like a suspension.
 */
export function ageMs(clock: Clock, moment: Moment): number {
  return Math.max(elapsedMs(clock, moment.instant), clock.now() - moment.wallMs);
}
