import { ApiError, isApiFailure, isUndone, LATE_MS } from '../../api/errors.ts';
import type { Remote } from '../../api/remote.ts';
import type { Replacement, Replacements } from '../../state/replacements.ts';
import { type Clock, instantIn } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { join, nameOf, type Path, parentOf } from '../../util/path.ts';
import { succeeds } from '../../util/succeeds.ts';
import type { SharedChanges } from '../cache/shared-changes.ts';
import type { Entry } from '../files.ts';
import type { Gateways } from '../gateways.ts';
import { waitingName } from '../names.ts';
import type { PathLocks } from '../path-locks.ts';
import { discard, type Recovery, type Unfinished } from './recovery.ts';

interface ReplacerDeps {
  /** Unguarded: the replacer itself holds the lock that keeps other calls out. */
  readonly remote: Remote;
  readonly replacements: Replacements;
  /** Locks of single calls of the service. */
  readonly callLocks: PathLocks;
  readonly recovery: Recovery;
  readonly gateways: Pick<Gateways, 'newId'>;
  readonly shared: Pick<SharedChanges, 'tellReplacing' | 'tellReplaced'> | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** How a new entry gets to the place of an old one. */
export interface Placement {
  readonly place: (remote: Remote) => Promise<Entry>;
  /** Whether `found`, at the place, is the entry that `place` makes. */
  readonly isPlaced: (found: Entry) => boolean;
  /** The new entry's id, if it has one already. */
  readonly id?: string;
}

/** Carries out a noted replacement. Calls `left` when the old entry has its hidden name. */
type Work = (noted: Replacement, left: () => void) => Promise<Outcome>;

interface Outcome {
  readonly entry: Entry;
  readonly replacement: Replacement;
  /** Whether the hidden name is free again. */
  readonly isClear: boolean;
}

/**
 * Replaces entries by moves and copies, although the service never overwrites with them. The old entry first moves to a
 * hidden name beside its place. This is noted durably before, so that after any interruption it is either replaced or
 * back at its place.
 */
export class Replacer {
  constructor(private readonly deps: ReplacerDeps) {}

  /**
   * Replaces `old` by the entry that `placement` makes of `from`, and deletes `old` recoverably. When that fails, `old`
   * is back at its place.
   */
  async replace(old: Entry, from: Path, placement: Placement): Promise<Entry> {
    const { remote, callLocks, replacements, recovery } = this.deps;
    const { id } = placement;
    const purpose = { purpose: 'replace', ...(id !== undefined && { replacement: id }) } as const;
    const replaceNoted: Work = async (noted, left) => {
      const { waitingAt } = noted;
      await this.#leave(old, waitingAt);
      left();
      const entry = await this.#placeOrPutBack(old.path, waitingAt, placement);
      const replaced = { ...noted, replacement: entry.id };
      // Without this note a kill before `old` is removed leaves no proof that its replacement came.
      if (id === undefined) await succeeds(replacements.note(replaced));
      await succeeds(recovery.replaced(old.path, entry.id));
      // A failure here fails nothing: the old entry is hidden, and recovery deletes it later.
      return { entry, replacement: replaced, isClear: await succeeds(discard(remote, waitingAt)) };
    };
    // Until the hidden entry is gone: a copy of a folder above would copy it too.
    const replaceInTurn: Work = (...noted) =>
      callLocks.exclusive([old.path, from], () => replaceNoted(...noted));
    return this.#noted(old.path, purpose, replaceInTurn, placement.isPlaced);
  }

  /** Renames `entry` to `to`, which differs from its name in letter case only. */
  async renameCase(entry: Entry, to: Path): Promise<Entry> {
    const { remote, callLocks } = this.deps;
    const rename: Work = async (noted, left) => {
      const { waitingAt } = noted;
      await remote.move(entry.path, waitingAt, undefined, entry.id);
      left();
      try {
        const renamed = await remote.move(waitingAt, to, undefined, entry.id);
        return { entry: renamed, replacement: noted, isClear: true };
      } catch (error) {
        await remote.move(waitingAt, entry.path, undefined, entry.id);
        throw error;
      }
    };
    const purpose = { purpose: 'rename' } as const;
    return this.#noted(to, purpose, (...noted) => callLocks.exclusive([to], () => rename(...noted)));
  }

  async #noted(
    path: Path,
    purpose: Pick<Replacement, 'purpose' | 'replacement'>,
    work: Work,
    isPlaced: Placement['isPlaced'] = () => false,
  ): Promise<Entry> {
    const { replacements, gateways, shared, clock } = this.deps;
    const id = gateways.newId();
    const waitingAt = join(parentOf(path), waitingName(id, nameOf(path)));
    const noted: Replacement = { id, path, waitingAt, ...purpose };
    await replacements.note(noted);
    let hasLeft = false;
    try {
      await shared?.tellReplacing(id, path);
      const done = await work(noted, () => {
        hasLeft = true;
      });
      await this.#end(done.replacement, { isClear: done.isClear, isMissing: false, isPlaced: () => false });
      return done.entry;
    } catch (error) {
      const isClear = await this.#isNothingAt(waitingAt);
      // After a conflict the entry there belongs to another client.
      const isNew = (found: Entry) => hasLeft && !isConflict(error) && isPlaced(found);
      // A refused first step changes nothing at the service; one whose answer was lost may still do.
      const mayCome = !hasLeft && error instanceof ApiError && !isUndone(error);
      const late = mayCome && { mayComeUntil: instantIn(clock, LATE_MS) };
      await this.#end(noted, { isClear, isMissing: !isClear, isPlaced: isNew, ...late });
      throw error;
    }
  }

  /** Ends a replacement. Never throws: recovery removes a remaining record, and the new entry stays in place. */
  async #end(
    noted: Replacement,
    { isClear, ...left }: { readonly isClear: boolean } & Omit<Unfinished, 'replacement' | 'isNoted'>,
  ): Promise<void> {
    const isNoted = !(isClear && (await succeeds(this.deps.replacements.remove(noted.id))));
    if (isNoted || left.mayComeUntil) this.deps.recovery.add({ replacement: noted, isNoted, ...left });
    if (!left.isMissing) await this.deps.shared?.tellReplaced(noted.id);
  }

  /** Moves `old` to its temporary path. Does nothing if it no longer exists. */
  async #leave(old: Entry, waitingAt: Path): Promise<void> {
    try {
      await this.deps.remote.move(old.path, waitingAt, undefined, old.id);
    } catch (error) {
      if (!isApiFailure(error, 'not-found')) throw error;
    }
  }

  async #placeOrPutBack(path: Path, waitingAt: Path, { place, isPlaced }: Placement): Promise<Entry> {
    const { remote, log } = this.deps;
    try {
      return await place(remote);
    } catch (error) {
      try {
        await remote.move(waitingAt, path);
      } catch (second) {
        const found = isConflict(second) && (await remote.stat(path));
        // Only the answer was lost. A conflict means that another client made the entry; a folder does not show who did.
        if (found && !isConflict(error) && isPlaced(found)) return found;
        log.warn('cannot put back the old target of a failed move or copy yet; davgate tries again', {
          reason: String(second),
        });
      }
      throw error;
    }
  }

  async #isNothingAt(path: Path): Promise<boolean> {
    try {
      return (await this.deps.remote.stat(path)) === undefined;
    } catch {
      return false;
    }
  }
}

function isConflict(error: unknown): boolean {
  return isApiFailure(error, 'conflict-file', 'conflict-folder');
}
