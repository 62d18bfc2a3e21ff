import type { FeedChange, Page } from '../../api/remote.ts';
import type { SharedFeed } from '../../state/change-stream.ts';
import { linkedSignal } from '../../util/abort.ts';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import { feedEventText, RESET_EVENT_TEXT, type SharedChanges } from './shared-changes.ts';

/** The receiver of the feed's reports. */
export interface FeedListener {
  /** Applies changes in the service's order. `doubted`: they may be older than davgate's own changes. */
  apply(changes: readonly FeedChange[], how: { readonly doubted: boolean }): Promise<void>;
  /** Called when everything that happened until `reached` has been reported. */
  reached(reached: Instant): void;
  /** Called when changes were missed: nothing cached may be used. */
  reset(): void;
}

/** How far the change feed has been read, and where its reports go. */
export interface FeedProgress {
  /** Returns the cursor up to which changes were reported; `undefined` before the first. */
  cursor(): Promise<string | undefined>;
  /** Begins at `cursor` after nothing or a cursor that the service does not know: what is cached may be outdated. */
  begin(cursor: string): Promise<void>;
  /**
   * Reports the page after the cursor `from`, asked for at `asked`. Returns `false` if another gateway has reported it
   * already.
   */
  report(
    from: string,
    page: Page<FeedChange>,
    how: { readonly doubted: boolean; readonly asked: Instant },
  ): Promise<boolean>;
  /** Called when changes were missed: nothing cached may be used. */
  missed(): Promise<void>;
  /** Called when everything that happened until now has been reported. */
  nothingNew(): Promise<void>;
  /** Runs `follow` while it is the turn of this process. Its signal aborts when the turn is over. */
  inTurn(signal: AbortSignal, follow: (turn: AbortSignal) => Promise<never>): Promise<void>;
  /** Notes whether the feed reports changes as they happen. */
  note(state: 'up' | 'down'): void;
}

/** The progress of the only gateway of a drive. */
export class OwnFeedProgress implements FeedProgress {
  #cursor: string | undefined;

  constructor(
    private readonly listener: FeedListener,
    private readonly clock: Clock,
  ) {}

  async cursor(): Promise<string | undefined> {
    return this.#cursor;
  }

  async begin(cursor: string): Promise<void> {
    this.#cursor = cursor;
    this.listener.reset();
  }

  async report(
    _from: string,
    page: Page<FeedChange>,
    { doubted, asked }: { readonly doubted: boolean; readonly asked: Instant },
  ): Promise<boolean> {
    await this.listener.apply(page.changes, { doubted });
    this.#cursor = page.cursor;
    if (!page.hasMore) this.listener.reached(asked);
    return true;
  }

  async missed(): Promise<void> {
    this.listener.reset();
  }

  async nothingNew(): Promise<void> {
    this.listener.reached(this.clock.instant());
  }

  async inTurn(signal: AbortSignal, follow: (turn: AbortSignal) => Promise<never>): Promise<void> {
    await follow(signal);
  }

  note(): void {}
}

/** How long the turn of a gateway that was killed lasts, in ms. */
const TURN_MS = 15_000;
const RENEW_EVERY_MS = TURN_MS / 3;

/** The progress of all gateways of a drive: one of them follows the feed, and reports it to all. */
export class SharedFeedProgress implements FeedProgress {
  #isUp = false;

  constructor(
    private readonly feed: SharedFeed,
    private readonly shared: Pick<SharedChanges, 'catchUp'>,
    private readonly clock: Clock,
  ) {}

  cursor(): Promise<string | undefined> {
    return this.feed.cursor();
  }

  async begin(cursor: string): Promise<void> {
    await this.feed.add(await this.feed.cursor(), cursor, RESET_EVENT_TEXT);
    await this.shared.catchUp();
  }

  async report(
    from: string,
    { changes, cursor, hasMore }: Page<FeedChange>,
    { doubted, asked }: { readonly doubted: boolean; readonly asked: Instant },
  ): Promise<boolean> {
    const ageMs = elapsedMs(this.clock, asked);
    const text = feedEventText(changes, { isDoubted: doubted, ...(!hasMore && { ageMs }) });
    const isFirst = await this.feed.add(from, cursor, text);
    await this.shared.catchUp();
    return isFirst;
  }

  missed(): Promise<void> {
    return this.#addHere(RESET_EVENT_TEXT);
  }

  nothingNew(): Promise<void> {
    return this.#addHere(feedEventText([], { isDoubted: false, ageMs: 0 }));
  }

  async inTurn(signal: AbortSignal, follow: (turn: AbortSignal) => Promise<never>): Promise<void> {
    this.#isUp = false;
    while (!(await this.#takeTurn())) await this.clock.sleep(RENEW_EVERY_MS, signal);
    const lost = new AbortController();
    const turn = linkedSignal(signal, lost.signal);
    // However it ends: without the turn, or not knowing whether it still has it, this gateway must not follow.
    const renewing = this.#renew(turn.signal)
      .catch(() => {})
      .finally(() => lost.abort());
    try {
      await follow(turn.signal);
    } catch (error) {
      if (signal.aborted || !lost.signal.aborted) throw error;
    } finally {
      lost.abort();
      turn.release();
      await renewing;
      // Another gateway need not wait for the end of the lease.
      await this.feed.endTurn().catch(() => {});
    }
  }

  note(state: 'up' | 'down'): void {
    const isUp = state === 'up';
    if (this.#isUp === isUp) return;
    this.#isUp = isUp;
    // A failure is repeated with the next renewal.
    this.#takeTurn().catch(() => {});
  }

  /** Adds an event unless another gateway reports changes at this moment, which tell more. */
  async #addHere(text: string): Promise<void> {
    const cursor = await this.feed.cursor();
    if (cursor !== undefined) await this.feed.add(cursor, cursor, text);
  }

  #takeTurn(): Promise<boolean> {
    return this.feed.takeTurn(TURN_MS, { isUp: this.#isUp });
  }

  /** Resolves when another gateway has the turn; rejects when Redis does not answer or `turn` is aborted. */
  async #renew(turn: AbortSignal): Promise<void> {
    do await this.clock.sleep(RENEW_EVERY_MS, turn);
    while (await this.#takeTurn());
  }
}
