import { isOutage } from '../../api/errors.ts';
import type { Availability, Entry, FeedChange } from '../../api/remote.ts';
import type { Instant } from '../../util/clock.ts';
import type { Meter } from '../../util/meter.ts';
import { join, keyOf, nameOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { waitAtMost } from '../../util/wait.ts';
import type { Announcer } from '../changes.ts';
import { FileError } from '../errors.ts';
import type { Listing } from '../files.ts';
import { Lookups, type LookupsDeps, tooUnsteady } from './lookups.ts';
import { Outage } from './outage.ts';
import { Prefetch } from './prefetch.ts';
import { type Known, LocalChanges, type Ongoing, stateOf } from './recency.ts';
import type { MadeChange } from './recent-changes.ts';
import type { SharedChanges } from './shared-changes.ts';
import type { CachedFolder } from './tree-cache.ts';

/** Up to this many outdated names of a listing are looked up one by one; otherwise the folder is listed again. */
const UNSURE_MAX = 16;

/** Maximum number of attempts at a listing that changes meanwhile. */
const ATTEMPTS_MAX = 8;

/** How long a request waits for an answer that only confirms the cache, in ms. */
const REFRESH_MS_MAX = 3_000;

/** A running change of davgate. Its caller ends it with the outcome at each path. */
export interface LocalChange {
  /** Called before the service is asked for a change that began as `isUpload`: from now on it may be made. */
  commits(): void;
  /**
   * Ends the change. Omitted paths have an unknown outcome. `isNew`: a folder among them was just created and is empty.
   */
  end(outcomes: readonly (readonly [Path, Known])[], how?: { readonly isNew: boolean }): Promise<void>;
  /** Ends a change that failed with `error`. The cache stays valid if the service certainly changed nothing. */
  failed(error: unknown): Promise<void>;
}

interface MetadataCacheDeps extends LookupsDeps {
  /** Called with the ids at and below a path that is empty now, according to the change feed. */
  readonly onGone?: (ids: readonly string[]) => void;
  readonly availability: Availability;
  readonly meter: Meter;
  readonly changes: Pick<Announcer, 'isFollowed' | 'entry' | 'everything'>;
  /** The other gateways, which are told of each change before it ends. `undefined`: there are none. */
  readonly shared?: Pick<SharedChanges, 'position' | 'tell' | 'tellTime'> | undefined;
}

/**
 * The service's entries and listings, from memory while they are certain, and never older than davgate's own changes.
 */
export class MetadataCache {
  readonly #deps: MetadataCacheDeps;
  readonly #lookups: Lookups;
  readonly #own = new LocalChanges();
  readonly #outage: Outage;
  readonly prefetch: Prefetch;

  constructor(deps: MetadataCacheDeps) {
    this.#deps = deps;
    this.#lookups = new Lookups(deps);
    this.#outage = new Outage(deps.availability, deps.clock);
    this.prefetch = new Prefetch(deps);
  }

  /** Returns the cached state, without a call. */
  peek(path: Path): Known | undefined {
    return this.#deps.cache.peek(keyOf(path));
  }

  /** Returns the entry at `path` if the cache has it, without a call. */
  known(path: Path): Entry | undefined {
    const known = this.peek(path);
    if (known === undefined || known === 'absent') return undefined;
    this.#deps.meter.lookedUp(true);
    return known;
  }

  async stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined> {
    const known = this.peek(path);
    this.#deps.meter.lookedUp(known !== undefined);
    return known ? present(known) : this.#entry(path, signal);
  }

  /** Lists a folder. Throws `FileError` `not-found` or `not-a-folder`. */
  async list(path: Path, signal?: AbortSignal): Promise<Listing> {
    this.#deps.meter.lookedUp(!this.isCold(path));
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const entry = await this.#entryOfListed(path, signal);
      if (!entry) throw new FileError('not-found', `${path} is not there`);
      if (entry.kind === 'file') throw new FileError('not-a-folder', `${path} is not a folder`);
      const known = this.#deps.cache.folder(keyOf(path));
      if (known?.isWhole) return known.listing(entry);
      const unsure = known?.unsure;
      if (unsure && unsure.size <= UNSURE_MAX) {
        await Promise.all([...unsure].map((name) => this.#lookups.entry(join(entry.path, name), signal)));
        continue;
      }
      if (await this.prefetch.awaitAhead(entry, signal)) continue;
      this.prefetch.notice(entry);
      const folder = await this.#lookups.folder(entry, signal);
      if (folder?.isWhole) return folder.listing(entry);
    }
    throw tooUnsteady(path);
  }

  /**
   * Like `stat`; while the service is unavailable, the last known entry. `believesAbsence`: also the last known
   * absence. Only a write may believe it, because its conflicts are found later; a reader would conclude that the file
   * was deleted.
   */
  statOrLast(
    path: Path,
    { believesAbsence = false }: { readonly believesAbsence?: boolean } = {},
    signal?: AbortSignal,
  ): Promise<Entry | undefined> {
    const last = this.#deps.cache.last(keyOf(path));
    const usable = last === 'absent' && !believesAbsence ? undefined : last;
    return this.#orLast(usable && { value: present(usable) }, (stop) => this.stat(path, stop), signal);
  }

  /**
   * Like `list`; while the service is unavailable, the last known listing. Names that are `isCovered` may be missing in
   * it, because an own change has outdated them.
   */
  listOrLast(
    path: Path,
    isCovered: (path: Path) => boolean = () => false,
    signal?: AbortSignal,
  ): Promise<Listing> {
    const last = this.#deps.cache.lastListing(keyOf(path), isCovered);
    return this.#orLast(last && { value: last }, (stop) => this.list(path, stop), signal);
  }

  /**
   * Looks up `path` even if it is cached, because others may have changed it a moment ago. Keeps the cached entry when
   * the service does not answer soon.
   */
  async refresh(path: Path): Promise<void> {
    const { clock } = this.#deps;
    if (path === ROOT || this.#outage.isOn) return;
    const asked = this.#lookups.entry(path, undefined).catch((error) => {
      if (!isOutage(error)) throw error;
    });
    await waitAtMost(clock, REFRESH_MS_MAX, asked, () => undefined);
  }

  /** Returns whether a listing of `path` needs a call. */
  isCold(path: Path): boolean {
    return !this.#deps.cache.folder(keyOf(path))?.isWhole;
  }

  /** Returns the cached folders at `path` and below. */
  foldersWithin(path: Path): CachedFolder[] {
    return this.#deps.cache.foldersWithin(keyOf(path));
  }

  /** Stores the time that a client set for an entry, which the service does not know. */
  adorn(entry: Entry): void {
    this.#deps.cache.adorn(entry);
    this.#deps.changes.entry(entry.path, { isTree: false });
  }

  /** Like `adorn`, for a time that was set just now: the other gateways are told. */
  async setTime(entry: Entry): Promise<void> {
    this.adorn(entry);
    await this.#deps.shared?.tellTime(entry);
  }

  /** Drops the cached state of `path`, which has turned out to be outdated. */
  forget(path: Path): void {
    this.#deps.cache.forget(keyOf(path));
  }

  /**
   * Begins a change of davgate at `paths`, so that no older answer is used afterwards. `tree`: everything below changes
   * too. `shield`: until the end the cache keeps its state, whatever the feed reports. `isUpload`: the body is still coming,
   * and nothing is changed before `commits` is called.
   */
  begin(
    paths: readonly Path[],
    {
      tree = false,
      shield = false,
      isUpload = false,
    }: { readonly tree?: boolean; readonly shield?: boolean; readonly isUpload?: boolean } = {},
  ): LocalChange {
    const { cache, clock, shared } = this.#deps;
    const since = shared?.position;
    const changes = paths.map((path) => {
      const key = keyOf(path);
      return this.#own.begin(key, cache.peek(key), { tree, shield, mayBeMade: !isUpload });
    });
    const made = (outcomes: readonly (readonly [Path, Known])[], isNew: boolean): MadeChange => {
      const byKey = new Map(outcomes.map(([path, outcome]) => [keyOf(path), outcome]));
      const places = paths.map((path) => ({ path, isTree: tree, outcome: byKey.get(keyOf(path)) }));
      return { places, isNew, madeMs: clock.now() };
    };
    return {
      commits() {
        for (const change of changes) change.mayBeMade = true;
      },
      end: async (outcomes, { isNew } = { isNew: false }) => {
        const change = made(outcomes, isNew);
        const isCertain = shared ? await shared.tell(change, since) : true;
        this.#endAll(changes, change, { isCertain });
      },
      failed: async (error) => {
        const isUndone = isOutage(error) && error.details.isUndone;
        if (isUndone && changes.every((change) => this.#own.cancel(change))) return;
        const change = made([], false);
        if (shared) await shared.tell(change, since);
        this.#endAll(changes, change, { isCertain: false });
      },
    };
  }

  /**
   * Keeps the cached state of `path` and below, whatever the feed reports, until the returned function is called: another
   * gateway is replacing the entry. What is there afterwards is unknown.
   */
  shield(path: Path): () => void {
    const { cache, clock } = this.#deps;
    const key = keyOf(path);
    const ongoing = this.#own.begin(key, cache.peek(key), { tree: true, shield: true, mayBeMade: true });
    // Before the lock of the path, which waits for running calls.
    cache.inFlight.awayElsewhere(key);
    return () => void this.#end(ongoing, undefined, clock.now());
  }

  /** Applies a change that another gateway has made. `isCertain`: no other change makes its outcome doubtful. */
  applyOther(change: MadeChange, how: { readonly isCertain: boolean }): void {
    // Without the cached state, which may be newer than the change: a later report of it must not pass for an old one.
    const changes = change.places.map(({ path, isTree }) =>
      this.#own.begin(keyOf(path), undefined, { tree: isTree, shield: false, mayBeMade: true }),
    );
    this.#endAll(changes, change, how);
  }

  #endAll(
    changes: readonly Ongoing[],
    { places, isNew, madeMs }: MadeChange,
    { isCertain }: { readonly isCertain: boolean },
  ): void {
    const { cache, changes: announcer } = this.#deps;
    changes.forEach((change, index) => {
      const outcome = isCertain ? places[index]?.outcome : undefined;
      const made = this.#end(change, outcome, madeMs);
      if (isNew && made !== undefined && made !== 'absent' && !change.seenBelow) cache.startEmpty(made.path);
    });
    if (!announcer.isFollowed) return;
    for (const { path, outcome } of places)
      announcer.entry(path, { isTree: outcome === undefined || !isFileNow(outcome) });
  }

  /**
   * Resolves when all changes of davgate that the service may have made until now have ended: from then on the cache shows
   * their outcome.
   */
  ownChangesEnded(signal: AbortSignal): Promise<void> {
    return this.#own.ended(signal);
  }

  /** Applies reports of the change feed in its order. `doubted`: they may be older than davgate's own changes. */
  async apply(changes: readonly FeedChange[], { doubted }: { readonly doubted: boolean }): Promise<void> {
    const puts = changes.flatMap((change) => (change.kind === 'put' ? change.entry : []));
    const shown = (await this.#deps.times.applyTo(puts))[Symbol.iterator]();
    for (const change of changes) {
      if (change.kind === 'deleted') this.#applyOne(change.path, 'absent', doubted);
      else if (change.kind === 'unknown-below') this.#doubtBelow(change.path);
      else this.#applyOne(change.entry.path, shown.next().value ?? change.entry, doubted);
    }
  }

  /** Called when the feed has reported everything that happened until `reached`. */
  reached(reached: Instant): void {
    this.#own.reached(reached);
  }

  /** Drops everything. Called when changes may have been missed. */
  reset(): void {
    this.#own.doubtWithin(ROOT);
    this.#deps.cache.reset();
    this.#deps.changes.everything();
  }

  #idsAt(key: string, known: Entry | undefined): string[] {
    const below = this.#deps.cache.foldersWithin(key).flatMap((folder) => [...folder.entries()]);
    return [...(known ? [known] : []), ...below].map(({ id }) => id);
  }

  async #orLast<T>(
    last: { readonly value: T } | undefined,
    ask: (signal?: AbortSignal) => Promise<T>,
    signal: AbortSignal | undefined,
  ): Promise<T> {
    if (last && this.#outage.isOn) {
      // Not awaited, because the call is retried for a long time.
      if (this.#outage.takeTurn()) ask().catch(() => {});
      return last.value;
    }
    try {
      return await ask(signal);
    } catch (error) {
      if (!last || !isOutage(error)) throw error;
      return last.value;
    }
  }

  /** Returns the entry at `path`. If it is not cached, its children are listed at the same time. */
  async #entryOfListed(path: Path, signal: AbortSignal | undefined): Promise<Entry | undefined> {
    if (this.peek(path) !== undefined || this.prefetch.isComing(path)) return this.#entry(path, signal);
    const asked = this.#lookups.entry(path, signal);
    this.#lookups.beginFolder(path, asked, signal);
    const answered = present(await asked);
    // An answer that could not be cached leaves the folder unknown, so it is looked up again.
    return answered && this.#entry(path, signal);
  }

  async #entry(path: Path, signal: AbortSignal | undefined): Promise<Entry | undefined> {
    return present(this.peek(path) ?? (await this.#lookups.entry(path, signal)));
  }

  #end(ongoing: Ongoing, outcome: Known | undefined, madeMs: number): Known | undefined {
    const { cache, clock } = this.#deps;
    const { key, tree } = ongoing;
    const made = this.#own.end(ongoing, outcome, clock.instant());
    const before = cache.at(key);
    if (tree || outcome === undefined) cache.drop(key);
    // What may have been put there may have made the folders above again.
    if (made !== 'absent') cache.doubtMissingAbove(key);
    cache.learn(key, made);
    if (made === undefined) return made;
    if (made !== 'absent') cache.store(key, made, parentOf(made.path));
    cache.touchParent(key, before, made, madeMs);
    return made;
  }

  #doubtBelow(path: Path): void {
    this.#own.doubtWithin(keyOf(path));
    this.#deps.cache.drop(keyOf(path));
    this.#deps.changes.entry(path, { isTree: true });
  }

  #applyOne(path: Path, reported: Known, doubted: boolean): void {
    const { cache, isHidden } = this.#deps;
    // The root of the drive was deleted or replaced.
    if (path === ROOT) this.reset();
    if (path === ROOT || isHidden(nameOf(path))) return;
    const key = keyOf(path);
    const decision = this.#own.judge(key, reported);
    const before = cache.at(key);
    const isNews = before === undefined || stateOf(before) !== stateOf(reported);
    // The cache knows it already, but a running request may not.
    if (!isNews) cache.inFlight.changed(key, before);
    // It was made and deleted elsewhere between two reports: the trash has it now.
    if (!isNews && reported === 'absent' && decision === 'apply')
      this.#deps.changes.entry(path, { isTree: true });
    if (!isNews || decision === 'ignore') return;
    if (reported === 'absent' && before !== 'absent') this.#deps.onGone?.(this.#idsAt(key, before));
    if (doubted || decision === 'doubt' || isOlder(reported, before)) cache.forget(key);
    else {
      // The contents of a folder that was unknown until now may already be cached.
      if (reported === 'absent' || reported.kind === 'file' || before !== undefined) cache.drop(key);
      cache.learn(key, reported);
      cache.touchParent(key, before, reported, this.#deps.clock.now());
    }
    this.#deps.changes.entry(path, { isTree: !isFileNow(reported) });
  }
}

function isFileNow(known: Known): boolean {
  return known !== 'absent' && known.kind === 'file';
}

function present(known: Known): Entry | undefined {
  return known === 'absent' ? undefined : known;
}

/** Returns whether the feed reports a revision that was committed before the cached one. */
function isOlder(reported: Known, before: Known | undefined): boolean {
  if (reported === 'absent' || before === undefined || before === 'absent') return false;
  return reported.kind === 'file' && before.kind === 'file' && reported.committedMs < before.committedMs;
}
