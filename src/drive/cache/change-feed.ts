import { isApiFailure } from '../../api/errors.ts';
import type { Remote } from '../../api/remote.ts';
import { ageMs, type Clock, elapsedMs, type Moment, momentNow } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { Alarm, retryPauseMs } from '../../util/wait.ts';
import type { FeedProgress } from './feed-progress.ts';
import { type Freshness, POLL_MS } from './tree-cache.ts';

export interface ChangeFeedDeps {
  readonly remote: Pick<Remote, 'availability' | 'latestCursor' | 'awaitChange' | 'changesSince'>;
  readonly progress: FeedProgress;
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
  /** Whether the service does not know the cursor any more. */
  #isReset = false;
  /** Whether the first changes since the turn began are read, which may be older than what was looked up meanwhile. */
  #isCatchingUp = false;
  /** Whether the feed was down, so that its first changes may be old. */
  #isLate = false;
  #failures = 0;
  #caughtUp: Moment | undefined;
  /** Resolves when the last request for changes so far has ended: they take turns, in the service's order. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(private readonly deps: ChangeFeedDeps) {}

  start(): void {
    this.#running = this.#run(this.#stop.signal);
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  /** Reports everything that has happened until now, also while the feed is down. Throws an `ApiError`. */
  async readAll(signal: AbortSignal): Promise<void> {
    try {
      await this.#catchUp(signal);
    } catch (error) {
      if (!isCursorLost(error)) throw error;
      this.#isReset = true;
      await this.#catchUp(signal);
    }
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.deps.progress.inTurn(signal, (turn) => this.#follow(turn));
      } catch (error) {
        if (signal.aborted) return;
        await this.#down(error);
        await this.#rest(signal);
      }
    }
  }

  /** Never returns. */
  async #follow(signal: AbortSignal): Promise<never> {
    const { remote, clock, progress, freshness } = this.deps;
    this.#isCatchingUp = true;
    await this.#catchUp(signal);
    this.#up();
    for (;;) {
      const asked = clock.instant();
      const hasChanged = await remote.awaitChange(await this.#cursor(signal), POLL_MS, signal);
      this.#failures = 0;
      if (!hasChanged) {
        freshness.heard();
        await progress.nothingNew();
        const restMs = POLL_MS_MIN - elapsedMs(clock, asked);
        if (restMs > 0) await clock.sleep(restMs, signal);
        continue;
      }
      await this.#pace(signal);
      if ((await this.#catchUp(signal)) === 0) await clock.sleep(EMPTY_PAUSE_MS, signal);
    }
  }

  async #cursor(signal: AbortSignal): Promise<string> {
    const { remote, progress } = this.deps;
    const known = this.#isReset ? undefined : await progress.cursor();
    if (known !== undefined) return known;
    const cursor = await remote.latestCursor(signal);
    // Answers from before the cursor may be outdated without a change after it.
    await progress.begin(cursor);
    this.#isReset = false;
    return cursor;
  }

  /** Waits until `everyMs` after the last request for changes: davgate's own commits end each poll too. */
  async #pace(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.deps;
    const leftMs = this.#caughtUp ? everyMs - ageMs(clock, this.#caughtUp) : 0;
    if (leftMs > 0) await clock.sleep(leftMs, signal);
  }

  /** Reports the changes since the cursor in its turn, and returns their number. */
  #catchUp(signal: AbortSignal): Promise<number> {
    const read = this.#turn.then(() => this.#readOn(signal));
    this.#turn = read.catch(() => {});
    return read;
  }

  async #readOn(signal: AbortSignal): Promise<number> {
    const { remote, clock, progress, freshness } = this.deps;
    const doubted = this.#isLate || this.#isCatchingUp || freshness.isSilent;
    let count = 0;
    let emptyPages = 0;
    let pages = 0;
    for (let hasMore = true; hasMore; pages++) {
      if (pages === PAGES_MAX || emptyPages > EMPTY_PAGES_MAX)
        throw new Error('the storage service reports changes without end');
      const asked = clock.instant();
      const cursor = await this.#cursor(signal);
      const page = await remote.changesSince(cursor, signal);
      const isNews = await progress.report(cursor, page, { doubted, asked });
      count += page.changes.length;
      emptyPages = page.changes.length === 0 ? emptyPages + 1 : 0;
      hasMore = page.hasMore || !isNews;
    }
    this.#caughtUp = momentNow(clock);
    freshness.heard();
    return count;
  }

  #up(): void {
    if (this.#isLate) this.deps.log.info('the change feed is back');
    this.deps.freshness.up();
    this.deps.progress.note('up');
    this.#isLate = false;
    this.#isCatchingUp = false;
  }

  async #down(error: unknown): Promise<void> {
    const { log, progress, freshness } = this.deps;
    if (!this.#isLate) log.warn('the change feed is down', { reason: String(error) });
    freshness.down();
    progress.note('down');
    this.#isLate = true;
    this.#failures++;
    if (!isCursorLost(error)) return;
    this.#isReset = true;
    await progress.missed().catch(() => {});
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

/**
 * Whether the service does not continue from a cursor any more. `bad-request`: the service never issued it, for example since
 * it was restored from an older backup. `not-found`, `not-folder`: the drive's root was deleted, and the cursor with it, also
 * if the root is there again.
 */
export function isCursorLost(error: unknown): boolean {
  return isApiFailure(error, 'reset', 'bad-request', 'not-found', 'not-folder');
}
