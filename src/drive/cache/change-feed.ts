import { isApiFailure } from '../../api/errors.ts';
import type { Change, Remote } from '../../api/remote.ts';
import { ageMs, type Clock, elapsedMs, type Instant, type Moment, momentNow } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { Alarm, retryPauseMs } from '../../util/wait.ts';
import { type Freshness, POLL_MS } from './tree-cache.ts';

/** The receiver of the feed's reports. */
export interface FeedListener {
  /** Applies changes in the service's order. `doubted`: they may be older than davgate's own changes. */
  apply(changes: readonly Change[], how: { readonly doubted: boolean }): Promise<void>;
  /** Called when everything that happened until `reached` has been reported. */
  reached(reached: Instant): void;
  /** Called when changes were missed: nothing cached may be used. */
  reset(): void;
}

export interface ChangeFeedDeps {
  readonly remote: Pick<Remote, 'availability' | 'latestCursor' | 'awaitChange' | 'changesSince'>;
  readonly listener: FeedListener;
  readonly clock: Clock;
  readonly log: Log;
  readonly freshness: Freshness;
  /** Shortest time between two requests for changes, in ms. */
  readonly everyMs: number;
}

/** Pause after a poll that reported a change where there was none, in ms: a faulty service must not cause a busy loop. */
const EMPTY_PAUSE_MS = 250;

/** Shortest time between polls without a change, in ms, for a service that does not wait. */
const POLL_MS_MIN = 5_000;

/** Maximum number of pages of changes read in a row: twenty million entries. */
const PAGES_MAX = 10_000;

/** Maximum number of empty pages in a row before the last. */
const EMPTY_PAGES_MAX = 100;

const RETRY_PAUSES = { firstMs: 1_000, maxMs: 60_000 };

/** Follows the service's change feed, which keeps the cache current when others change the drive. */
export class ChangeFeed {
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #cursor: string | undefined;
  /** Whether the feed was down, so that its first changes may be old. */
  #isLate = false;
  #failures = 0;
  #caughtUp: Moment | undefined;

  constructor(private readonly deps: ChangeFeedDeps) {}

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
    const { remote, clock, listener, freshness } = this.deps;
    if (this.#cursor === undefined) {
      this.#cursor = await remote.latestCursor(signal);
      // Answers from before the cursor may be outdated without a change after it.
      listener.reset();
    }
    await this.#catchUp(signal);
    this.#up();
    for (;;) {
      const asked = clock.instant();
      const hasChanged = await remote.awaitChange(this.#cursor, POLL_MS, signal);
      this.#failures = 0;
      if (!hasChanged) {
        freshness.heard();
        listener.reached(clock.instant());
        const restMs = POLL_MS_MIN - elapsedMs(clock, asked);
        if (restMs > 0) await clock.sleep(restMs, signal);
        continue;
      }
      await this.#pace(signal);
      if ((await this.#catchUp(signal)) === 0) await clock.sleep(EMPTY_PAUSE_MS, signal);
    }
  }

  /** Waits until `everyMs` after the last request for changes: davgate's own commits end each poll too. */
  async #pace(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.deps;
    const leftMs = this.#caughtUp ? everyMs - ageMs(clock, this.#caughtUp) : 0;
    if (leftMs > 0) await clock.sleep(leftMs, signal);
  }

  /** Reports the changes since the cursor, and returns their number. */
  async #catchUp(signal: AbortSignal): Promise<number> {
    const { remote, clock, listener, freshness } = this.deps;
    const doubted = this.#isLate || freshness.isSilent;
    let count = 0;
    let emptyPages = 0;
    let pages = 0;
    for (let hasMore = true; hasMore; pages++) {
      if (pages === PAGES_MAX || emptyPages > EMPTY_PAGES_MAX)
        throw new Error('the storage service reports changes without end');
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
    freshness.heard();
    return count;
  }

  #up(): void {
    if (this.#isLate) this.deps.log.info('the change feed is back');
    this.deps.freshness.up();
    this.#isLate = false;
  }

  #down(error: unknown): void {
    const { log, listener, freshness } = this.deps;
    if (!this.#isLate) log.warn('the change feed is down', { reason: String(error) });
    freshness.down();
    this.#isLate = true;
    this.#failures++;
    if (!isApiFailure(error, 'reset')) return;
    this.#cursor = undefined;
    listener.reset();
  }

  /** Waits before the next try. Returns at once when another call shows that the service answers again. */
  async #rest(signal: AbortSignal): Promise<void> {
    const { remote, clock } = this.deps;
    const alarm = new Alarm(clock);
    const stopListening = remote.availability.onBack(() => alarm.ring());
    await alarm.sleep(retryPauseMs(RETRY_PAUSES, this.#failures), signal);
    stopListening();
  }
}
