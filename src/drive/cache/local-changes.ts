import { type Instant, msBetween } from '../../util/clock.ts';
import { ROOT } from '../../util/path.ts';
import type { Known } from './folder-cache.ts';
import { KeyTree, parentKeyOf } from './key-tree.ts';

/** What the change feed says of a place, weighed against what we did there ourselves. */
export type Verdict =
  /** It is newer than all we did. */
  | 'apply'
  /** It is older than what we did, or we are at it. */
  | 'ignore'
  /** It may be either: only the service knows. */
  | 'doubt';

/** How long the feed may be late: until then it may still tell of what was before a change of ours. */
const FEED_LAG_MS = 60_000;

/** Own changes that are remembered while the feed stands still; it is doubted altogether when it returns. */
const REMEMBERED_MAX = 50_000;

/** What one place was made by us: what the feed says of it is judged by this for a while. */
interface Guard {
  /** Revisions that we made, or that were there before: each is unique, so hearing of one is old news. */
  readonly revs: Set<string>;
  /** All that was below has changed too. */
  readonly tree: boolean;
  readonly since: Instant;
}

/** A change of ours that is under way at one place. */
export interface Ongoing {
  readonly key: string;
  readonly tree: boolean;
  /** What the feed says meanwhile comes of the change itself and is not to be shown. */
  readonly shield: boolean;
  /** Revisions older than whatever the change makes. */
  readonly olderRevs: Set<string>;
  /** Another change of ours was under way at the same time, and which came last is not known. */
  overlapped: boolean;
  /** What the feed has said meanwhile of this place. */
  readonly seen: Set<string>;
  /** Whether the feed has told meanwhile of something new below. */
  seenBelow: boolean;
}

/** What a place is, as one word; two places in the same state are equal in all that a client can see. */
export function stateOf(known: Known): string {
  if (known === 'absent') return 'absent';
  return known.kind === 'file' ? `rev ${known.rev}` : `folder ${known.id}`;
}

/** The changes that we make ourselves, under way and done, so that nothing older is believed after them. */
export class LocalChanges {
  readonly #ongoing = new Map<string, Set<Ongoing>>();
  /** The order is that of `since`. */
  readonly #guards = new Map<string, Guard>();
  readonly #guarded = new KeyTree();
  /** Guards of whole trees. */
  #treeGuards = 0;

  /** A change of `key` begins; `before` is what is known to be there. */
  begin(
    key: string,
    before: Known | undefined,
    how: { readonly tree: boolean; readonly shield: boolean },
  ): Ongoing {
    const olderRevs = new Set(this.#guards.get(key)?.revs);
    if (before !== undefined) olderRevs.add(stateOf(before));
    olderRevs.delete('absent');
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
   * The change is done and has made `outcome`, as far as is known. Returns what may be believed to be there
   * now: `undefined` when only the service knows.
   */
  end(ongoing: Ongoing, outcome: Known | undefined, now: Instant): Known | undefined {
    const { key, tree, olderRevs } = ongoing;
    this.#forget(ongoing);
    if (outcome !== 'absent') this.#disturbAbove(key);
    const known = outcome !== undefined && isUndisturbed(ongoing, outcome) ? outcome : undefined;
    const revs = new Set<string>();
    if (known !== undefined) {
      for (const rev of olderRevs) revs.add(rev);
      if (known !== 'absent' && known.kind === 'file') revs.add(stateOf(known));
    }
    this.#remember(key, { revs, tree, since: now });
    return known;
  }

  /** The change was not made. Whether what was known is so still; if not, `end` has to be called. */
  cancel(ongoing: Ongoing): boolean {
    // What the feed said of a shielded place was not taken over.
    if (ongoing.shield && (ongoing.seen.size > 0 || ongoing.seenBelow)) return false;
    this.#forget(ongoing);
    return true;
  }

  /** What to make of the feed's word that `known` is at `key`. */
  judge(key: string, known: Known): Verdict {
    const state = stateOf(known);
    let verdict = this.#judgeByOngoing(key, known, state);
    const guard = this.#guards.get(key);
    if (guard && verdict === 'apply') verdict = guard.revs.has(state) ? 'ignore' : 'doubt';
    if (verdict === 'apply' && this.#treeGuards > 0 && this.#liesBelowGuard(key)) verdict = 'doubt';
    // A folder that went before we put something into it has been made again by that.
    if (verdict === 'apply' && known === 'absent' && this.#guarded.within(key).length > 0) verdict = 'doubt';
    return verdict;
  }

  /** The feed has told all that had happened by then. */
  reached(reached: Instant): void {
    for (const [key, guard] of this.#guards) {
      if (msBetween(guard.since, reached) < FEED_LAG_MS) return;
      this.#dropGuard(key, guard);
    }
  }

  #judgeByOngoing(key: string, known: Known, state: string): Verdict {
    let verdict: Verdict = 'apply';
    for (const ongoing of this.#ongoing.get(key) ?? []) {
      if (!ongoing.olderRevs.has(state)) ongoing.seen.add(state);
      if (ongoing.shield) verdict = 'ignore';
    }
    if (this.#ongoing.size === 0) return verdict;
    for (let above = key; above !== ROOT; ) {
      above = parentKeyOf(above);
      for (const ongoing of this.#ongoing.get(above) ?? []) {
        if (known !== 'absent') ongoing.seenBelow = true;
        if (ongoing.shield && ongoing.tree) verdict = 'ignore';
      }
    }
    return verdict;
  }

  // Something was made in a tree that is being moved or removed: whether before or after is not known.
  #disturbAbove(key: string): void {
    if (this.#ongoing.size === 0) return;
    for (let above = key; above !== ROOT; ) {
      above = parentKeyOf(above);
      for (const ongoing of this.#ongoing.get(above) ?? []) if (ongoing.tree) ongoing.overlapped = true;
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

function isUndisturbed({ overlapped, seen, seenBelow, tree }: Ongoing, outcome: Known): boolean {
  if (overlapped || (tree && outcome === 'absent' && seenBelow)) return false;
  for (const state of seen) if (state !== stateOf(outcome)) return false;
  return true;
}
