import { setImmediate } from 'node:timers/promises';
import type { Entry, FeedChange } from '../../api/remote.ts';
import type { AddedEvent, ChangeStream, StreamEvent, StreamPosition } from '../../state/change-stream.ts';
import { type Clock, type Instant, instantIn } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { type Path, ROOT } from '../../util/path.ts';
import { waitAtMost } from '../../util/wait.ts';
import { type MadeChange, RecentChanges } from './recent-changes.ts';
import type { Freshness } from './tree-cache.ts';

/** What gateways tell each other, as JSON. */
type Event =
  /** `since`: the position that the gateway had read when the change began. */
  | ({ readonly kind: 'change'; readonly since: number } & MadeChange)
  /** A client has set the time of an entry. */
  | { readonly kind: 'time'; readonly entry: Entry }
  /** What the service's change feed has reported. `ageMs`: with it, everything until so long ago has been reported. */
  | {
      readonly kind: 'feed';
      readonly changes: readonly FeedChange[];
      readonly isDoubted: boolean;
      readonly ageMs?: number;
    }
  /** A gateway replaces the entry at a path, and has finished that. */
  | { readonly kind: 'replacing'; readonly id: string; readonly path: Path }
  | { readonly kind: 'replaced'; readonly id: string }
  /** Anything may have changed. */
  | { readonly kind: 'reset' };

/** The cache that is told what other gateways have done. */
export interface SharedListener {
  /** Applies a change of another gateway. `isCertain`: no other change at the same time makes its outcome doubtful. */
  applyOther(change: MadeChange, how: { readonly isCertain: boolean }): void;
  apply(changes: readonly FeedChange[], how: { readonly doubted: boolean }): Promise<void>;
  /** Stores the time of an entry that a client has set. */
  adorn(entry: Entry): void;
  reached(reached: Instant): void;
  reset(): void;
}

/** The receiver of the replacements of other gateways. */
export interface ReplacementListener {
  begin(id: string, path: Path): void;
  end(id: string): void;
}

export interface SharedChangesDeps {
  readonly stream: ChangeStream;
  readonly freshness: Freshness;
  readonly clock: Clock;
  readonly log: Log;
  /** How often the stream is read while no request reads it, in ms. */
  readonly everyMs: number;
}

/** The event after which every gateway asks the service again for everything. */
export const RESET_EVENT_TEXT = JSON.stringify({ kind: 'reset' } satisfies Event);

/** Maximum size of an event, in characters. A larger one is replaced by `reset`: the stream is in Redis' memory. */
const EVENT_LENGTH_MAX = 128 * 1024;

/**
 * Deadline of a read of the stream, in ms: requests wait for it, also those that need nothing else from a Redis that hangs.
 */
const READ_MS_MAX = 2_000;

/**
 * How long after an absence of Redis other gateways may still have to tell of changes, in ms: each has to notice that Redis is
 * back, for which a connection may take 5 s, and then tells one change after another.
 */
const UNTOLD_MS_MAX = 10_000;

/** Maximum number of changes that are remembered for a Redis that is away. With more, all caches are reset later. */
const UNTOLD_MAX = 1_000;

/**
 * The changes of all gateways of a drive, in one order. Each gateway tells its own changes before it acknowledges them, and
 * applies those of the others before it answers a request that came later.
 */
export class SharedChanges {
  readonly #deps: SharedChangesDeps;
  readonly #stop = new AbortController();
  readonly #recent = new RecentChanges();
  #listener: SharedListener | undefined;
  #replacements: ReplacementListener | undefined;
  /** Own changes that Redis was not told, with unknown outcomes. */
  readonly #untold: MadeChange[] = [];
  /** Why the last event could not be added. */
  #failure = '';
  #position: StreamPosition | undefined;
  /** Whether the last read has failed. */
  #isCutOff = false;
  #reading: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(deps: SharedChangesDeps) {
    this.#deps = deps;
  }

  /** The position up to which this gateway has read the stream. */
  get position(): StreamPosition | undefined {
    return this.#position;
  }

  /** Starts to pass the changes of other gateways on. */
  async start(listener: SharedListener, replacements: ReplacementListener): Promise<void> {
    this.#listener = listener;
    this.#replacements = replacements;
    await this.catchUp();
    // Rejects only when its signal aborts.
    this.#running = this.#run(this.#stop.signal).catch(() => {});
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await this.#reading;
  }

  /**
   * Resolves when this gateway shows whatever any gateway had acknowledged at the time of the call. While Redis is away it
   * resolves too, and cached answers are used for a short time only.
   */
  catchUp(): Promise<void> {
    // A running read may have begun before the call, so the next one serves all callers that came meanwhile.
    this.#next ??= this.#reading.then(async () => {
      await setImmediate();
      this.#next = undefined;
      this.#reading = this.#read();
      return this.#reading;
    });
    return this.#next;
  }

  /** Resolves when this gateway shows what the event with this number tells. */
  async caughtUpTo(number: number): Promise<void> {
    if ((this.#position?.number ?? 0) < number) await this.catchUp();
  }

  /**
   * Tells the others of a change, which began when `since` was the position. Returns whether its outcome is certain: no
   * other gateway has changed the same at the same time.
   */
  async tell(change: MadeChange, since: StreamPosition | undefined): Promise<boolean> {
    const position = await this.#addOwn({ kind: 'change', since: this.#numberOf(since), ...change });
    if (!position) {
      this.#tellLater(withoutOutcomes(change));
      return false;
    }
    const isCertain = !this.#recent.meets(change, this.#numberOf(since));
    this.#recent.add(position, change);
    return isCertain;
  }

  /** Returns the number of a position; 0 if the stream has lost events since, whose numbers others may have now. */
  #numberOf(position: StreamPosition | undefined): number {
    return position && position.lifetime === this.#position?.lifetime ? position.number : 0;
  }

  /** Tells the others of the time that a client has set. */
  async tellTime(entry: Entry): Promise<void> {
    const position = await this.#addOwn({ kind: 'time', entry });
    const { path } = entry;
    if (!position && path !== ROOT)
      this.#tellLater({ places: [{ path, isTree: false }], isNew: false, madeMs: this.#deps.clock.now() });
  }

  /** Tells the others that the entry at `path` is away until `tellReplaced`. Throws `StateUnavailable`: they must know. */
  async tellReplacing(id: string, path: Path): Promise<void> {
    await this.#deps.stream.add(textOf({ kind: 'replacing', id, path }), this.#position);
  }

  /** A failure needs no repetition: the others look whether a replacement is still noted. */
  async tellReplaced(id: string): Promise<void> {
    await this.#addOwn({ kind: 'replaced', id });
  }

  /**
   * Adds an event that this gateway needs not apply, because it tells what the gateway itself does. Returns its position,
   * or `undefined` if Redis was not told.
   */
  async #addOwn(event: Event): Promise<StreamPosition | undefined> {
    const added = await this.#add(event);
    // Without another event in between, there is nothing to read before it.
    if (added && areEqual(added.before, this.#position)) this.#position = added.position;
    return added?.position;
  }

  async #add(event: Event): Promise<AddedEvent | undefined> {
    try {
      return await this.#deps.stream.add(textOf(event), this.#position);
    } catch (error) {
      this.#failure = String(error);
      return undefined;
    }
  }

  #tellLater(change: MadeChange): void {
    if (this.#untold.length === 0)
      this.#deps.log.warn('cannot tell the other gateways of a change yet', { reason: this.#failure });
    this.#untold.push(change);
  }

  async #run(stop: AbortSignal): Promise<void> {
    for (;;) {
      await this.#deps.clock.sleep(this.#deps.everyMs, stop);
      await this.#tellUntold();
      await this.catchUp();
    }
  }

  async #tellUntold(): Promise<void> {
    if (this.#untold.length > UNTOLD_MAX && (await this.#add({ kind: 'reset' })) !== undefined)
      this.#untold.length = 0;
    for (let change = this.#untold[0]; change; change = this.#untold[0]) {
      // The order does not matter: a gateway that reads an unknown outcome asks the service.
      if ((await this.#add({ kind: 'change', since: 0, ...change })) === undefined) return;
      this.#untold.shift();
    }
  }

  async #read(): Promise<void> {
    const { stream, freshness, clock } = this.#deps;
    try {
      for (let isBehind = true; isBehind; ) {
        const page = await waitAtMost(clock, READ_MS_MAX, stream.after(this.#position), () => {
          throw new Error(`no answer within ${READ_MS_MAX / 1000} s`);
        });
        if (this.#position === undefined || page.isLost) {
          this.#listener?.reset();
          this.#recent.forget(page.end);
          this.#position = page.end;
        } else for (const event of page.events) await this.#apply(event);
        isBehind = this.#position.number < page.end.number;
        if (this.#isCutOff) freshness.distrust(UNTOLD_MS_MAX);
        this.#isCutOff = false;
        if (page.isFeedUp) freshness.up();
        else freshness.down();
      }
      if (freshness.isAlive) freshness.heard();
    } catch {
      // The connection has logged that Redis is away.
      freshness.distrust(Number.POSITIVE_INFINITY);
      this.#isCutOff = true;
    }
  }

  async #apply({ position, gateway, text }: StreamEvent): Promise<void> {
    const { stream, clock } = this.#deps;
    const [listener, replacements] = [this.#listener, this.#replacements];
    if (!listener || !replacements) throw new Error('the change stream is read before its start');
    const event: Event = JSON.parse(text); // as `textOf` made it
    if (event.kind === 'reset') {
      listener.reset();
      this.#recent.forget(position);
    } else if (event.kind === 'feed') {
      await listener.apply(event.changes, { doubted: event.isDoubted });
      this.#recent.addReports(position, event.changes);
      if (event.ageMs !== undefined) listener.reached(instantIn(clock, -event.ageMs));
    } else if (gateway !== stream.gateway) {
      if (event.kind === 'time') listener.adorn(event.entry);
      else if (event.kind === 'replacing') replacements.begin(event.id, event.path);
      else if (event.kind === 'replaced') replacements.end(event.id);
      else {
        listener.applyOther(event, { isCertain: !this.#recent.meets(event, event.since) });
        this.#recent.add(position, event);
      }
    }
    // An event that could not be applied is read again.
    this.#position = position;
  }
}

/** Returns the text of an event with the changes that the service's feed has reported. */
export function feedEventText(
  changes: readonly FeedChange[],
  how: { readonly isDoubted: boolean; readonly ageMs?: number },
): string {
  return textOf({ kind: 'feed', changes, ...how });
}

function textOf(event: Event): string {
  const text = JSON.stringify(event);
  return text.length <= EVENT_LENGTH_MAX ? text : RESET_EVENT_TEXT;
}

function withoutOutcomes({ places, madeMs }: MadeChange): MadeChange {
  return { places: places.map(({ path, isTree }) => ({ path, isTree })), isNew: false, madeMs };
}

function areEqual(one: StreamPosition, other: StreamPosition | undefined): boolean {
  return one.lifetime === other?.lifetime && one.number === other.number && one.nonce === other.nonce;
}
