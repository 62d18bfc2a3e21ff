import { isApiFailure } from '../../api/errors.ts';
import type { Change, Remote } from '../../api/remote.ts';
import { ageMs, type Clock, elapsedMs, type Instant, type Moment, momentNow } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { Alarm, retryPauseMs } from '../../util/wait.ts';

/** Who is told what changed. */
export interface FeedListener {
  /** In the service's order. `doubted`: it may be older than what we have done ourselves meanwhile. */
  apply(changes: readonly Change[], how: { readonly doubted: boolean }): Promise<void>;
  /** All that had happened by then has been told. */
  reached(reached: Instant): void;
  /** What changed until now cannot be told. */
  reset(): void;
}

export interface FeedParts {
  readonly remote: Pick<Remote, 'availability' | 'latestCursor' | 'awaitChange' | 'changesSince'>;
  readonly listener: FeedListener;
  readonly clock: Clock;
  readonly log: Log;
  /** What was learnt may be believed so long while the feed is down, ms. */
  readonly staleMs: number;
  /** Changes that follow each other faster are asked for together, ms. */
  readonly everyMs: number;
}

/** One long poll: short enough for firewalls that forget quiet connections. */
const POLL_MS = 90_000;

/**
 * A poll has said something by then: the service may add 90 s. If not, the machine has slept or the service wants to be
 * left alone, and nobody tells of changes.
 */
const SILENCE_MS_MAX = POLL_MS + 120_000;

/** After a poll that woke us for nothing, so that no fault of the service can make us spin. */
const EMPTY_PAUSE_MS = 250;

/** A poll in which nothing happened lasts longer than this, or the service does not wait. */
const POLL_MS_MIN = 5_000;

/** Pages of one look at the changes, at most: twenty million entries. */
const PAGES_MAX = 10_000;

/** Pages in a row without a single change that are not the last. */
const EMPTY_PAGES_MAX = 100;

const RETRY_PAUSES = { firstMs: 1_000, maxMs: 60_000 };

/** The service's feed of changes: what keeps all that is remembered true, whoever changes it. */
export class ChangeFeed {
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #cursor: string | undefined;
  #isAlive = false;
  /** Until then changes were told as they happened. */
  #heard: Moment | undefined;
  /** The feed was down: what it tells first may be long past. */
  #isLate = false;
  #failures = 0;
  #caughtUp: Moment | undefined;

  constructor(private readonly parts: FeedParts) {}

  /** Whether changes are being told as they happen. */
  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Whether what was asked for at `asked` may still be believed. */
  isFresh(asked: Moment): boolean {
    if (this.#isAlive && !this.#isSilent) return true;
    const { clock, staleMs } = this.parts;
    return Math.min(ageMs(clock, asked), this.#silentMs) < staleMs;
  }

  get #isSilent(): boolean {
    return this.#silentMs >= SILENCE_MS_MAX;
  }

  get #silentMs(): number {
    return this.#heard ? ageMs(this.parts.clock, this.#heard) : Number.POSITIVE_INFINITY;
  }

  start(): void {
    this.#running = this.#run(this.#stop.signal);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#follow(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#down(error);
        await this.#rest(signal);
      }
    }
  }

  /** Never returns. */
  async #follow(signal: AbortSignal): Promise<never> {
    const { remote, clock, listener } = this.parts;
    if (this.#cursor === undefined) {
      this.#cursor = await remote.latestCursor(signal);
      // What was learnt before there was a cursor may have changed before it.
      listener.reset();
    }
    await this.#catchUp(signal);
    this.#up();
    for (;;) {
      const asked = clock.instant();
      const hasChanged = await remote.awaitChange(this.#cursor, POLL_MS, signal);
      this.#failures = 0;
      if (!hasChanged) {
        this.#heard = momentNow(clock);
        listener.reached(this.#heard.instant);
        const restMs = POLL_MS_MIN - elapsedMs(clock, asked);
        if (restMs > 0) await clock.sleep(restMs, signal);
        continue;
      }
      await this.#pace(signal);
      if ((await this.#catchUp(signal)) === 0) await clock.sleep(EMPTY_PAUSE_MS, signal);
    }
  }

  /** Each of our own commits wakes us too: to ask after each would cost as many calls again. */
  async #pace(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.parts;
    const leftMs = this.#caughtUp ? everyMs - ageMs(clock, this.#caughtUp) : 0;
    if (leftMs > 0) await clock.sleep(leftMs, signal);
  }

  /** Tells what has changed since the cursor; how much that was. */
  async #catchUp(signal: AbortSignal): Promise<number> {
    const { remote, clock, listener } = this.parts;
    const doubted = this.#isLate || (this.#isAlive && this.#isSilent);
    let count = 0;
    let emptyPages = 0;
    let pages = 0;
    for (let hasMore = true; hasMore; pages++) {
      if (pages === PAGES_MAX || emptyPages > EMPTY_PAGES_MAX)
        throw new Error('the storage service goes on telling changes without end');
      const asked = clock.instant();
      const page = await remote.changesSince(this.#cursor ?? '', signal);
      await listener.apply(page.changes, { doubted });
      this.#cursor = page.cursor;
      count += page.changes.length;
      emptyPages = page.changes.length === 0 ? emptyPages + 1 : 0;
      hasMore = page.hasMore;
      if (!hasMore) listener.reached(asked);
    }
    this.#caughtUp = momentNow(clock);
    this.#heard = this.#caughtUp;
    return count;
  }

  #up(): void {
    if (this.#isLate) this.parts.log.info('the change feed is back');
    this.#isAlive = true;
    this.#isLate = false;
  }

  #down(error: unknown): void {
    const { clock, log, listener } = this.parts;
    if (this.#isAlive && !this.#isSilent) this.#heard = momentNow(clock);
    if (!this.#isLate) log.warn('the change feed is down', { reason: String(error) });
    this.#isAlive = false;
    this.#isLate = true;
    this.#failures++;
    if (!isApiFailure(error, 'reset')) return;
    this.#cursor = undefined;
    listener.reset();
  }

  /** Until the next try: at once when another call shows that the service answers again. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { remote, clock } = this.parts;
    const alarm = new Alarm(clock);
    const stopListening = remote.availability.onBack(() => alarm.ring());
    await alarm.sleep(retryPauseMs(RETRY_PAUSES, this.#failures), signal);
    stopListening();
  }
}
