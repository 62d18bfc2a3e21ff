import { randomUUID } from 'node:crypto';
import type { Placeholder, PlaceholderStore } from '../state/placeholders.ts';
import { type Clock, type Instant, instantIn, remainingMs } from '../util/clock.ts';
import { smallest } from '../util/extremes.ts';
import type { Log } from '../util/log.ts';
import { keyOf, nameOf, type Path, ROOT, relocate } from '../util/path.ts';
import { succeeds } from '../util/succeeds.ts';
import { Alarm, retryPauseMs } from '../util/wait.ts';
import type { FileEntry } from './files.ts';
import type { Gateways } from './gateways.ts';
import { PlaceholderOwner, TAKE_MS_MAX } from './placeholder-owner.ts';

export interface PlaceholdersOptions {
  readonly store: PlaceholderStore;
  readonly gateways: Pick<Gateways, 'own' | 'inherits'>;
  readonly clock: Clock;
  readonly log: Log;
  /** Commits the empty file. Returns whether the placeholder can be removed. */
  readonly commit: (placeholder: Placeholder) => Promise<boolean>;
  /** Resolves when the metadata cache has what the event of the change stream with this number tells. */
  readonly caughtUpTo?: (number: number) => Promise<void>;
  /** Called with the path of each placeholder that appeared, changed or is gone. */
  readonly announce?: (path: Path) => void;
}

/** Pauses between attempts to commit a placeholder. */
const RETRY_PAUSES = { firstMs: 5_000, maxMs: 600_000 };

/** Longest wait that a placeholder of another gateway gets, in ms: the clocks of the two machines may differ. */
const FOREIGN_WAIT_MS_MAX = 3_600_000;

/** Prefix of the ids. The stored ids of earlier versions start with it too. */
const ID = 'held:';

interface Due {
  readonly path: Path;
  readonly until: Instant;
  /** Number of commits that failed; none when absent. */
  readonly failures?: number;
}

/**
 * The placeholders of one drive. Finder and Explorer create a file in two steps: an empty PUT or a LOCK, and a second
 * later a PUT with the body. The empty file is acknowledged at once and kept here, so that the service gets one commit
 * instead of two. A placeholder without a body is committed as an empty file when its time is up. Of several gateways its
 * owner does that.
 */
export class Placeholders {
  readonly #due = new Map<string, Due>();
  /** How many writes, moves and removals have paused the commit of a placeholder, by key. */
  readonly #pauses = new Map<string, number>();
  /** How many of these are short, by key: for that time the placeholder is marked. */
  readonly #shortPauses = new Map<string, number>();
  readonly #commits = new Map<string, Promise<void>>();
  readonly #unmarks = new Map<string, Promise<void>>();
  readonly #owner: PlaceholderOwner;
  readonly #stop = new AbortController();
  readonly #alarm: Alarm;
  #running: Promise<void> = Promise.resolve();

  /** Returns the placeholder at a path. The metadata cache has one that another gateway has committed before. */
  readonly get: PlaceholderStore['get'];
  /** Returns the placeholders directly in a folder, like `get`. */
  readonly in: PlaceholderStore['in'];
  /** Returns the placeholders at a path and below, like `get`. */
  readonly within: PlaceholderStore['within'];

  constructor(private readonly options: PlaceholdersOptions) {
    const { store, gateways, clock } = options;
    this.get = (path) => this.#lookedUp(store.get(path));
    this.in = (folder) => this.#lookedUp(store.in(folder));
    this.within = (path) => this.#lookedUp(store.within(path));
    this.#alarm = new Alarm(clock);
    this.#owner = new PlaceholderOwner({
      ...{ store, gateways, clock, get: this.get, stop: this.#stop.signal },
      taken: (placeholder) => this.#await(placeholder.path, this.remainingMs(placeholder)),
    });
  }

  async #lookedUp<T>(lookup: Promise<T>): Promise<T> {
    const { store, caughtUpTo } = this.options;
    const found = await lookup;
    if (store.lastEvent) await caughtUpTo?.(store.lastEvent());
    return found;
  }

  get count(): number {
    return this.#due.size;
  }

  async make(path: Path, modifiedMs: number, waitMs: number): Promise<FileEntry> {
    const unique = randomUUID();
    return this.#put({ path, id: `${ID}${unique}`, rev: `held-${unique}`, modifiedMs }, waitMs);
  }

  /**
   * Sets the time of `found`, and postpones its commit to `waitMs` from now. Returns `undefined` if it has changed since it was
   * read, or another gateway is busy with it.
   */
  async renew(found: Placeholder, modifiedMs: number, waitMs: number): Promise<FileEntry | undefined> {
    const { store, clock, gateways } = this.options;
    if (!store.exchange) return this.#put({ ...found, modifiedMs }, waitMs);
    if (found.isBusy && found.owner !== gateways.own) return undefined;
    const next = { ...found, modifiedMs, untilMs: clock.now() + waitMs, owner: gateways.own };
    return (await store.exchange(found, next)) ? this.#stored(next, waitMs) : undefined;
  }

  async #put(placeholder: Omit<Placeholder, 'untilMs' | 'owner'>, waitMs: number): Promise<FileEntry> {
    const { store, clock, gateways } = this.options;
    const untilMs = clock.now() + waitMs;
    await store.put({ ...placeholder, untilMs, owner: gateways.own, isBusy: undefined });
    return this.#stored(placeholder, waitMs);
  }

  #stored(placeholder: Omit<Placeholder, 'untilMs'>, waitMs: number): FileEntry {
    this.#await(placeholder.path, waitMs);
    this.options.announce?.(placeholder.path);
    return placeholderEntry(placeholder);
  }

  /** Commits the placeholder at `path` in `waitMs`. */
  #await(path: Path, waitMs: number): void {
    this.#due.set(keyOf(path), { path, until: instantIn(this.options.clock, waitMs) });
    this.#alarm.ring();
  }

  /** Returns the time until the placeholder is committed, in ms. */
  remainingMs({ path, untilMs, owner }: Placeholder): number {
    const { clock, gateways } = this.options;
    const due = owner === gateways.own ? this.#due.get(keyOf(path)) : undefined;
    const leftMs = due ? remainingMs(clock, due.until) : Math.min(FOREIGN_WAIT_MS_MAX, untilMs - clock.now());
    return Math.max(0, leftMs);
  }

  async forget({ path, id }: Pick<Placeholder, 'path' | 'id'>): Promise<void> {
    if (!(await this.options.store.forget({ path, id }))) return;
    this.#due.delete(keyOf(path));
    this.options.announce?.(path);
  }

  /** Moves the placeholders at `from` and below to `to`. */
  async move(from: Path, to: Path): Promise<void> {
    for (const placeholder of await this.within(from)) {
      const path = relocate(placeholder.path, from, to);
      await this.#put({ ...placeholder, path }, this.remainingMs(placeholder));
      await this.forget(placeholder);
    }
  }

  /**
   * Runs `work` while no placeholder at one of `paths` or below is committed. Waits for commits that have begun, also
   * those of other gateways, which can commit them during `work` unless it `isShort`. Throws `busy`.
   */
  async withCommitsPaused<T>(
    paths: readonly Path[],
    work: () => Promise<T>,
    { isShort = false } = {},
  ): Promise<T> {
    const found = (await Promise.all(paths.map((path) => this.within(path)))).flat();
    // In one order, so that no two gateways wait for each other.
    const places = new Map(found.map(({ path }) => [keyOf(path), path] as const).sort());
    const keys = [...places.keys()];
    for (const key of keys) {
      count(this.#pauses, key, 1);
      if (isShort) count(this.#shortPauses, key, 1);
    }
    try {
      await Promise.allSettled(keys.flatMap((key) => [this.#commits.get(key), this.#unmarks.get(key)]));
      for (const path of places.values()) await this.#owner.take(path, { isBusy: isShort });
      return await work();
    } finally {
      await Promise.all([...places.values()].map((path) => this.#endPause(path, isShort)));
      this.#alarm.ring();
    }
  }

  /** Commits the placeholder at `path`, if there is one and its commit is not paused. */
  async commit(path: Path): Promise<void> {
    if (this.#pauses.has(keyOf(path))) return;
    await this.#owner.take(path, { isBusy: false });
    await this.#commitOwn(path);
  }

  /** Commits the placeholders at `path` and below. */
  async commitWithin(path: Path): Promise<void> {
    const placeholders = await this.within(path);
    await Promise.all(placeholders.map((placeholder) => this.commit(placeholder.path)));
  }

  /** Starts to commit placeholders as they become due. */
  start(): void {
    this.#running = this.#run(this.#stop.signal);
  }

  /**
   * Makes the placeholders of an earlier run, and those of gateways that were killed, due at once. One that this gateway has
   * stored or taken over without learning of its success gets its time.
   */
  async takeOver(): Promise<void> {
    const { gateways } = this.options;
    for (const placeholder of await this.within(ROOT)) {
      const { path, owner } = placeholder;
      // What is due here may be a time from before another gateway took it over.
      if (owner === gateways.own && this.#due.has(keyOf(path))) continue;
      const isInherited = gateways.inherits(owner);
      if (isInherited ? await this.#owner.inherit(placeholder) : owner === gateways.own)
        this.#await(path, isInherited ? 0 : this.remainingMs(placeholder));
    }
  }

  /** Tries once to commit all placeholders. Those that remain are committed after the next start. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await Promise.allSettled([...this.#due.values()].map(({ path }) => this.#commitOwn(path)));
  }

  async #endPause(path: Path, isShort: boolean): Promise<void> {
    const key = keyOf(path);
    if (isShort && count(this.#shortPauses, key, -1) === 0) {
      const unmark = this.#unmark(path).finally(() => this.#unmarks.delete(key));
      this.#unmarks.set(key, unmark);
      // Still paused: a commit marks it too.
      await unmark;
    }
    count(this.#pauses, key, -1);
  }

  /** Takes the mark away. One that remains goes with the placeholder, which is then committed soon. */
  async #unmark(path: Path): Promise<void> {
    if (await succeeds(this.#owner.unmark(path))) return;
    const due = this.#due.get(keyOf(path));
    if (due) this.#due.set(keyOf(path), { ...due, until: this.#soonest(due.until) });
  }

  /** Returns `until`, or an earlier time if requests of other gateways may wait for the end of a mark. */
  #soonest(until: Instant): Instant {
    const { clock } = this.options;
    const soon = instantIn(clock, TAKE_MS_MAX / 2);
    return remainingMs(clock, soon) < remainingMs(clock, until) ? soon : until;
  }

  /** Commits the placeholder at `path` if this gateway owns it and its commit is not paused. */
  async #commitOwn(path: Path): Promise<void> {
    const key = keyOf(path);
    if (this.#pauses.has(key)) return;
    const commit = this.#commits.get(key) ?? this.#commit(path).finally(() => this.#commits.delete(key));
    this.#commits.set(key, commit);
    await commit;
  }

  async #commit(path: Path): Promise<void> {
    const { clock, log, commit } = this.options;
    const key = keyOf(path);
    const due = this.#due.get(key);
    let marked: Placeholder | undefined;
    try {
      marked = await this.#owner.mark(path);
      if (marked) {
        if (await commit(marked)) await this.forget(marked);
      }
      // Another gateway has committed, removed or taken it. Without this it would stay due.
      else if (this.#due.get(key) === due) this.#due.delete(key);
    } catch (error) {
      const isFree = marked !== undefined && (await succeeds(this.#owner.unmark(path)));
      log.warn('cannot commit an empty file yet; davgate keeps it and tries again', {
        path,
        reason: String(error),
      });
      const failures = (due?.failures ?? 0) + 1;
      const until = instantIn(clock, retryPauseMs(RETRY_PAUSES, failures));
      this.#due.set(key, { path, until: isFree ? until : this.#soonest(until), failures });
      throw error;
    }
  }

  async #run(stop: AbortSignal): Promise<void> {
    const { clock } = this.options;
    while (!stop.aborted) {
      const waiting = [...this.#due].filter(([key]) => !this.#pauses.has(key)).map(([, due]) => due);
      const due = waiting.filter(({ until }) => until <= clock.instant());
      if (due.length > 0) {
        await Promise.all(due.map(({ path }) => this.#commitOwn(path).catch(() => {})));
        continue;
      }
      const leftMs = smallest(waiting.map(({ until }) => remainingMs(clock, until)));
      await this.#alarm.sleep(leftMs, stop);
    }
  }
}

/** Adds to the number at `key`, which is not there while it is 0. Returns it. */
function count(numbers: Map<string, number>, key: string, change: 1 | -1): number {
  const number = (numbers.get(key) ?? 0) + change;
  if (number > 0) numbers.set(key, number);
  else numbers.delete(key);
  return number;
}

/** Returns the entry that clients see of a placeholder. */
export function placeholderEntry({
  path,
  id,
  rev,
  modifiedMs,
}: Omit<Placeholder, 'untilMs' | 'owner'>): FileEntry {
  const name = nameOf(path);
  return { kind: 'file', id, path, name, rev, sizeBytes: 0, modifiedMs, committedMs: modifiedMs };
}

export function isPlaceholder(entry: { readonly id: string }): boolean {
  return entry.id.startsWith(ID);
}
