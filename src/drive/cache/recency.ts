/**
 * Which of two states of a path is newer: an answer of the service or a change made while it was asked; a report of the
 * change feed or a change of davgate.
 */
import type { Entry } from '../../api/remote.ts';
import { type Instant, msBetween } from '../../util/clock.ts';
import { isKeyWithin, KeyTree, parentKeyOf, ROOT } from '../../util/path.ts';
import { Condition } from '../../util/wait.ts';

/** The cached state of one name: its entry, or that there is none. */
export type Known = Entry | 'absent';

/** Returns the state of a path as one word. Equal words mean that clients see no difference. */
export function stateOf(known: Known): string {
  if (known === 'absent') return 'absent';
  return known.kind === 'file' ? `rev ${known.rev}` : `folder ${known.id}`;
}

/** The treatment of a change that the feed reports, given davgate's own changes. */
export type FeedDecision =
  /** The report is newer than davgate's own changes. */
  | 'apply'
  /** The report is older than a change of davgate, or a change is running. */
  | 'ignore'
  /** Unknown which is newer: only the service knows. */
  | 'doubt';

/** Maximum delay of the feed, in ms: until then it may report what was before a change of davgate. */
const FEED_LAG_MS = 60_000;

/** Maximum number of own changes that are remembered while the feed is down. All of its reports are doubted afterwards. */
const REMEMBERED_MAX = 50_000;

/** A finished change of davgate, against which reports of the feed are judged for a while. */
interface Guard {
  /** Revisions of files that davgate made, or that were there before. Each is unique, so a report of one is old. */
  readonly revs: Set<string>;
  /** Whether everything below has changed too. */
  readonly tree: boolean;
  readonly since: Instant;
}

/** A running change of davgate at one path. */
export interface Ongoing {
  readonly key: string;
  readonly tree: boolean;
  /** Whether reports of the feed are ignored meanwhile: they come from intermediate steps of the change. */
  readonly shield: boolean;
  /** Whether the service may have made the change already. */
  mayBeMade: boolean;
  /** Revisions older than the outcome of the change. */
  readonly olderRevs: Set<string>;
  /** Whether another change of davgate, or an unknown one, was made at the same time, so that the order is unknown. */
  overlapped: boolean;
  /** States that the feed has reported meanwhile for this path. */
  readonly seen: Set<string>;
  /** Whether the feed has reported something new below meanwhile. */
  seenBelow: boolean;
}

/** davgate's own changes, running and finished, so that no older answer is used after them. */
export class LocalChanges {
  readonly #ongoing = new Map<string, Set<Ongoing>>();
  /** Finished changes, ordered by `since`. */
  readonly #guards = new Map<string, Guard>();
  readonly #guarded = new KeyTree();
  /** Guards of whole trees. */
  #treeGuards = 0;
  readonly #oneEnded = new Condition();
  /** Number of tasks that wait for the end of changes. */
  #watchers = 0;

  /** Begins a change of `key`; `before` is the cached state. */
  begin(
    key: string,
    before: Known | undefined,
    how: { readonly tree: boolean; readonly shield: boolean; readonly mayBeMade: boolean },
  ): Ongoing {
    const olderRevs = new Set(this.#guards.get(key)?.revs);
    // A folder keeps its id: one that was moved away can come back.
    if (before !== undefined && isFile(before)) olderRevs.add(stateOf(before));
    const ongoing: Ongoing = { key, ...how, olderRevs, overlapped: false, seen: new Set(), seenBelow: false };
    const others = this.#ongoing.get(key) ?? new Set();
    for (const other of others) {
      other.overlapped = true;
      ongoing.overlapped = true;
    }
    this.#ongoing.set(key, others.add(ongoing));
    return ongoing;
  }

  /**
   * Ends a change with the outcome `outcome`, if it is known. Returns the certain state of the path; `undefined` when
   * only the service knows it.
   */
  end(ongoing: Ongoing, outcome: Known | undefined, now: Instant): Known | undefined {
    const { key, tree, olderRevs } = ongoing;
    this.#forget(ongoing);
    if (outcome !== 'absent') this.#disturbAbove(key);
    const known = outcome !== undefined && isUndisturbed(ongoing, outcome) ? outcome : undefined;
    const revs = new Set<string>();
    if (known !== undefined) {
      for (const rev of olderRevs) revs.add(rev);
      if (isFile(known)) revs.add(stateOf(known));
    }
    this.#remember(key, { revs, tree, since: now });
    return known;
  }

  /** Cancels a change that was not made. Returns whether the cached entry is still valid; if not, call `end`. */
  cancel(ongoing: Ongoing): boolean {
    // Reports for a shielded path were ignored.
    if (ongoing.shield && (ongoing.seen.size > 0 || ongoing.seenBelow)) return false;
    this.#forget(ongoing);
    return true;
  }

  /** Resolves when all changes that run now, and that the service may have made already, have ended. */
  async ended(signal: AbortSignal): Promise<void> {
    const running: Ongoing[] = [];
    for (const changes of this.#ongoing.values())
      for (const change of changes) if (change.mayBeMade) running.push(change);
    const isRunning = (change: Ongoing) => this.#ongoing.get(change.key)?.has(change) === true;
    this.#watchers++;
    try {
      while (running.some(isRunning)) await this.#oneEnded.wait(signal);
    } finally {
      this.#watchers--;
    }
  }

  /** Judges the feed's report of the state `known` at `key`. */
  judge(key: string, known: Known): FeedDecision {
    const state = stateOf(known);
    let decision = this.#judgeByOngoing(key, known, state);
    const guard = this.#guards.get(key);
    if (guard && decision === 'apply') decision = guard.revs.has(state) ? 'ignore' : 'doubt';
    if (decision === 'apply' && this.#treeGuards > 0 && this.#liesBelowGuard(key)) decision = 'doubt';
    // A deleted folder exists again when davgate has put something into it since.
    if (decision === 'apply' && known === 'absent' && this.#guarded.within(key).length > 0)
      decision = 'doubt';
    return decision;
  }

  /** Records that anything at `key` and below may have changed: the outcomes of running changes there are uncertain. */
  doubtWithin(key: string): void {
    for (const ongoing of this.#ongoingWithin(key)) ongoing.overlapped = true;
    for (const ongoing of this.#ongoingAbove(key)) ongoing.seenBelow = true;
  }

  /** Called when the feed has reported everything that happened until `reached`. */
  reached(reached: Instant): void {
    for (const [key, guard] of this.#guards) {
      if (msBetween(guard.since, reached) < FEED_LAG_MS) return;
      this.#dropGuard(key, guard);
    }
  }

  #judgeByOngoing(key: string, known: Known, state: string): FeedDecision {
    let decision: FeedDecision = 'apply';
    for (const ongoing of this.#ongoing.get(key) ?? []) {
      if (!ongoing.olderRevs.has(state)) ongoing.seen.add(state);
      if (ongoing.shield) decision = 'ignore';
    }
    for (const ongoing of this.#ongoingAbove(key)) {
      if (known !== 'absent') ongoing.seenBelow = true;
      if (ongoing.shield && ongoing.tree) decision = 'ignore';
    }
    // What a running change has put below was removed with the folder, or was made after the removal: the order is unknown.
    if (known === 'absent' || isFile(known))
      for (const ongoing of this.#ongoingWithin(key)) if (ongoing.key !== key) ongoing.overlapped = true;
    return decision;
  }

  // Records that something was created in a tree that is being moved or removed; the order is unknown.
  #disturbAbove(key: string): void {
    for (const ongoing of this.#ongoingAbove(key)) if (ongoing.tree) ongoing.overlapped = true;
  }

  /** Yields the running changes of `key` and everything below. */
  *#ongoingWithin(key: string): Iterable<Ongoing> {
    for (const [each, changes] of this.#ongoing) if (isKeyWithin(each, key)) yield* changes;
  }

  /** Yields the running changes of the folders above `key`. */
  *#ongoingAbove(key: string): Iterable<Ongoing> {
    if (this.#ongoing.size === 0) return;
    for (let above = key; above !== ROOT; ) {
      above = parentKeyOf(above);
      yield* this.#ongoing.get(above) ?? [];
    }
  }

  #liesBelowGuard(key: string): boolean {
    for (let above = key; above !== ROOT; ) {
      above = parentKeyOf(above);
      if (this.#guards.get(above)?.tree) return true;
    }
    return false;
  }

  #forget(ongoing: Ongoing): void {
    const others = this.#ongoing.get(ongoing.key);
    others?.delete(ongoing);
    if (others?.size === 0) this.#ongoing.delete(ongoing.key);
    if (this.#watchers > 0) this.#oneEnded.notify();
  }

  #remember(key: string, guard: Guard): void {
    const old = this.#guards.get(key);
    if (old) this.#dropGuard(key, old);
    this.#guards.set(key, guard);
    this.#guarded.add(key);
    if (guard.tree) this.#treeGuards++;
    const [oldest] = this.#guards;
    if (oldest && this.#guards.size > REMEMBERED_MAX) this.#dropGuard(...oldest);
  }

  #dropGuard(key: string, guard: Guard): void {
    this.#guards.delete(key);
    this.#guarded.delete(key);
    if (guard.tree) this.#treeGuards--;
  }
}

function isFile(known: Known): boolean {
  return known !== 'absent' && known.kind === 'file';
}

function isUndisturbed({ overlapped, seen, seenBelow, tree }: Ongoing, outcome: Known): boolean {
  if (overlapped || (tree && outcome === 'absent' && seenBelow)) return false;
  for (const state of seen) if (state !== stateOf(outcome)) return false;
  return true;
}

/** The scope of a request to the service: one entry, the children of a folder, or everything below it. */
export type Scope = 'entry' | 'folder' | 'tree';

/** A running request to the service, and the changes since it was sent. */
export interface Fetch {
  readonly scope: Scope;
  readonly key: string;
  /** Newer knowledge than the answer, by key. */
  changed: Map<string, Known | 'unsure'>;
  /** Answers to single lookups since, by key: each may be newer or older than this one. */
  readonly looked: Map<string, Known>;
  /** Trees that were dropped meanwhile; the answer is outdated for them. */
  readonly dropped: string[];
  /** Whether a listing has arrived: entries that leave their place from now on are in it. */
  isAnswered: boolean;
  /** Whether the answer may only be used by the callers that wait for it, and must not be cached. */
  isVoid: boolean;
}

/** The running requests. Each records the changes made before its answer arrives. */
export class InFlight {
  readonly #underWay = new Set<Fetch>();
  #generation = 0;

  /** A number that changes when the answers of running requests become too old for new callers. */
  get generation(): number {
    return this.#generation;
  }

  begin(scope: Scope, key: string): Fetch {
    const [changed, looked] = [new Map(), new Map()];
    const fetch: Fetch = { scope, key, changed, looked, dropped: [], isAnswered: false, isVoid: false };
    this.#underWay.add(fetch);
    return fetch;
  }

  end(fetch: Fetch): void {
    this.#underWay.delete(fetch);
  }

  /** Records that `key` is now `known`; `undefined`: it changed into something unknown. */
  changed(key: string, known: Known | undefined): void {
    for (const fetch of this.#underWay) if (covers(fetch, key)) fetch.changed.set(key, known ?? 'unsure');
  }

  /** Records that the service has answered `known` to a lookup of `key`. */
  looked(key: string, known: Known): void {
    for (const fetch of this.#underWay)
      if (fetch.scope !== 'entry' && covers(fetch, key)) fetch.looked.set(key, known);
  }

  /** Records that the entry at `key` is being replaced: listings may lack it, and what is below it. */
  away(key: string): void {
    for (const fetch of this.#underWay) {
      if (fetch.scope === 'entry' || fetch.isAnswered) continue;
      if (covers(fetch, key)) doubt(fetch, key);
      else if (fetch.scope === 'tree' && isKeyWithin(fetch.key, key)) this.#void(fetch);
    }
  }

  /** Like `away`, for a replacement by another gateway: single lookups have not waited for it either. */
  awayElsewhere(key: string): void {
    this.away(key);
    for (const fetch of this.#underWay)
      if (fetch.scope === 'entry' && isKeyWithin(fetch.key, key)) doubt(fetch, fetch.key);
  }

  /** Records that `key` and everything below was replaced. */
  dropped(key: string): void {
    for (const fetch of this.#underWay) {
      const inside = isKeyWithin(fetch.key, key) && !(fetch.scope === 'entry' && fetch.key === key);
      if (inside) this.#void(fetch);
      else if (fetch.scope === 'tree' && isKeyWithin(key, fetch.key)) fetch.dropped.push(key);
    }
  }

  voidAll(): void {
    for (const fetch of this.#underWay) this.#void(fetch);
  }

  #void(fetch: Fetch): void {
    fetch.isVoid = true;
    this.#generation++;
  }
}

/** Returns the changes since the last call. */
export function takeChanges(fetch: Fetch): ReadonlyMap<string, Known | 'unsure'> {
  const { changed } = fetch;
  if (changed.size > 0) fetch.changed = new Map();
  return changed;
}

/** Doubts each name about which a listing says something else than a lookup meanwhile. `listed` returns what the listing says. */
export function doubtLooked(fetch: Fetch, listed: (key: string) => Known | undefined): void {
  for (const [key, known] of fetch.looked)
    if (stateOf(listed(key) ?? 'absent') !== stateOf(known)) doubt(fetch, key);
}

/** A state that was learnt since the request is shown until the replacement of the entry ends. */
function doubt(fetch: Fetch, key: string): void {
  if (!fetch.changed.has(key)) fetch.changed.set(key, 'unsure');
}

function covers({ scope, key }: Fetch, changedKey: string): boolean {
  if (scope === 'entry') return changedKey === key;
  if (scope === 'folder') return parentKeyOf(changedKey) === key;
  return changedKey !== key && isKeyWithin(changedKey, key);
}
