import type { Change, Remote } from '../../api/remote.ts';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { isApiFailure } from '../errors.ts';

/** Who is told what changed. */
export interface FeedListener {
  /** In the service's order. `doubted`: it may be older than what we have done ourselves meanwhile. */
  apply(changes: readonly Change[], how: { readonly doubted: boolean }): Promise<void>;
  /** All that had happened by `reachedMs` has been told. */
  reached(reachedMs: number): void;
  /** What changed until now cannot be told. */
  reset(): void;
}

export interface FeedParts {
  readonly remote: Pick<Remote, 'latestCursor' | 'awaitChange' | 'changesSince'>;
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

const RETRY_MS = { first: 1_000, max: 60_000 };

/** The service's feed of changes: what keeps all that is remembered true, whoever changes it. */
export class ChangeFeed {
  readonly #stop = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #cursor: string | undefined;
  #isAlive = false;
  /** Until then changes were told as they happened. */
  #heardMs = 0;
  /** The feed was down: what it tells first may be long past. */
  #isLate = false;
  #failures = 0;
  #caughtUpMs = Number.NEGATIVE_INFINITY;

  constructor(private readonly parts: FeedParts) {}

  /** Whether changes are being told as they happen. */
  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Whether what was asked for at `askedMs` may still be believed. */
  isFresh(askedMs: number): boolean {
    if (this.#isAlive && !this.#isSilent) return true;
    const { clock, staleMs } = this.parts;
    return clock.now() < Math.max(askedMs, this.#heardMs) + staleMs;
  }

  get #isSilent(): boolean {
    return this.parts.clock.now() >= this.#heardMs + SILENCE_MS_MAX;
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
        await this.parts.clock.sleep(this.#retryMs(), signal).catch(() => {});
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
      const hasChanged = await remote.awaitChange(this.#cursor, POLL_MS, signal);
      this.#failures = 0;
      if (!hasChanged) {
        this.#heardMs = clock.now();
        listener.reached(clock.now());
        continue;
      }
      await this.#pace(signal);
      if ((await this.#catchUp(signal)) === 0) await clock.sleep(EMPTY_PAUSE_MS, signal);
    }
  }

  /** Each of our own commits wakes us too: to ask after each would cost as many calls again. */
  async #pace(signal: AbortSignal): Promise<void> {
    const { clock, everyMs } = this.parts;
    const leftMs = this.#caughtUpMs + everyMs - clock.now();
    if (leftMs > 0) await clock.sleep(leftMs, signal);
  }

  /** Tells what has changed since the cursor; how much that was. */
  async #catchUp(signal: AbortSignal): Promise<number> {
    const { remote, clock, listener } = this.parts;
    const doubted = this.#isLate || (this.#isAlive && this.#isSilent);
    let count = 0;
    for (let hasMore = true; hasMore; ) {
      const askedMs = clock.now();
      const page = await remote.changesSince(this.#cursor ?? '', signal);
      await listener.apply(page.changes, { doubted });
      this.#cursor = page.cursor;
      count += page.changes.length;
      hasMore = page.hasMore;
      if (!hasMore) listener.reached(askedMs);
    }
    this.#caughtUpMs = clock.now();
    this.#heardMs = this.#caughtUpMs;
    return count;
  }

  #up(): void {
    if (this.#isLate) this.parts.log.info('the change feed is back');
    this.#isAlive = true;
    this.#isLate = false;
  }

  #down(error: unknown): void {
    const { clock, log, listener } = this.parts;
    if (this.#isAlive && !this.#isSilent) this.#heardMs = clock.now();
    if (!this.#isLate) log.warn('the change feed is down', { reason: String(error) });
    this.#isAlive = false;
    this.#isLate = true;
    this.#failures++;
    if (!isApiFailure(error, 'reset')) return;
    this.#cursor = undefined;
    listener.reset();
  }

  #retryMs(): number {
    return Math.min(RETRY_MS.max, RETRY_MS.first * 2 ** (this.#failures - 1));
  }
}
