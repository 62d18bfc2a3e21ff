import { randomUUID } from 'node:crypto';
import { isApiFailure } from '../../api/errors.ts';
import type { Remote } from '../../api/remote.ts';
import type { Replacement } from '../../state/replacements.ts';
import { join, type Path, parentOf } from '../../util/path.ts';
import { succeeds } from '../../util/succeeds.ts';
import type { Entry } from '../files.ts';
import type { Gaps } from '../guarded-remote.ts';
import { waitingName } from '../names.ts';
import type { TreeParts } from './parts.ts';
import { discard, type Left, type Recovery } from './recovery.ts';

/** What takes the place of something else. */
export interface Placement {
  readonly place: (remote: Remote) => Promise<Entry>;
  /** Whether `found`, at the place, is what `place` makes. */
  readonly isPlaced: (found: Entry) => boolean;
  /** Of what takes the place, where it has one already. */
  readonly id?: string;
}

interface Outcome {
  readonly entry: Entry;
  readonly relocation: Replacement;
  /** Nothing waits beside its place any more. */
  readonly isClear: boolean;
}

/**
 * The service never overwrites with a move or copy. So what is in the way steps aside under a hidden name
 * beside its place, noted durably before it does: whatever happens then, it is put back or has been replaced.
 */
export class Replacer {
  constructor(
    private readonly parts: Pick<TreeParts, 'state' | 'log'> & {
      readonly remote: Remote;
      readonly gaps: Gaps;
    },
    private readonly repairs: Recovery,
  ) {}

  /**
   * Puts at the place of `old` what `replacement` makes there of `from`, and then removes `old` so that it can be
   * recovered. When that fails, `old` is back.
   */
  async replace(old: Entry, from: Path, replacement: Placement): Promise<Entry> {
    const { remote, gaps, state } = this.parts;
    const { id } = replacement;
    let hasLeft = false;
    const isPlaced = (found: Entry) => hasLeft && replacement.isPlaced(found);
    const purpose = { purpose: 'replace', ...(id !== undefined && { replacement: id }) } as const;
    const replaceNoted = async (relocation: Replacement) => {
      const { waitingAt } = relocation;
      const entry = await gaps.open([old.path, from], async () => {
        await this.#leave(old, waitingAt);
        hasLeft = true;
        return this.#placeOrPutBack(old.path, waitingAt, replacement);
      });
      const replaced = { ...relocation, replacement: entry.id };
      // Without this note a kill before `old` is removed leaves no proof that its replacement came.
      if (id === undefined) await succeeds(state.replacements.note(replaced));
      await succeeds(this.repairs.replaced(old.path, entry.id));
      // Failing here fails nothing: the old one is out of sight, and it is tried again.
      return { entry, relocation: replaced, isClear: await succeeds(discard(remote, waitingAt)) };
    };
    return this.#noted(old.path, purpose, replaceNoted, isPlaced);
  }

  /** Renames `entry` to `to`, which differs from its name in letter case only. */
  async renameCase(entry: Entry, to: Path): Promise<Entry> {
    const { remote, gaps } = this.parts;
    const rename = async (relocation: Replacement) => {
      const { waitingAt } = relocation;
      await remote.move(entry.path, waitingAt, undefined, entry.id);
      try {
        const renamed = await remote.move(waitingAt, to, undefined, entry.id);
        return { entry: renamed, relocation, isClear: true };
      } catch (error) {
        await remote.move(waitingAt, entry.path, undefined, entry.id);
        throw error;
      }
    };
    const purpose = { purpose: 'rename' } as const;
    return this.#noted(to, purpose, (relocation) => gaps.open([to], () => rename(relocation)));
  }

  async #noted(
    path: Path,
    purpose: Pick<Replacement, 'purpose' | 'replacement'>,
    work: (relocation: Replacement) => Promise<Outcome>,
    isPlaced: Placement['isPlaced'] = () => false,
  ): Promise<Entry> {
    const { replacements } = this.parts.state;
    const id = randomUUID();
    const waitingAt = join(parentOf(path), waitingName(id));
    const relocation: Replacement = { id, path, waitingAt, ...purpose };
    await replacements.note(relocation);
    try {
      const done = await work(relocation);
      await this.#end(done.relocation, { isClear: done.isClear, isMissing: false, isPlaced: () => false });
      return done.entry;
    } catch (error) {
      // A refusal of the first step left nothing behind, of which the service is asked.
      const isClear = await this.#isNothingAt(waitingAt);
      // After a conflict it is somebody else's.
      await this.#end(relocation, {
        isClear,
        isMissing: !isClear,
        isPlaced: (found) => !isInTheWay(error) && isPlaced(found),
      });
      throw error;
    }
  }

  /** Never throws: a note that cannot be crossed out now is later, and changes nothing of what was done. */
  async #end(
    relocation: Replacement,
    { isClear, ...left }: { readonly isClear: boolean } & Omit<Left, 'relocation'>,
  ): Promise<void> {
    const isDone = isClear && (await succeeds(this.parts.state.replacements.crossOut(relocation.id)));
    if (!isDone) this.repairs.add({ relocation, ...left });
  }

  /** When it is gone already nothing is in the way. */
  async #leave(old: Entry, waitingAt: Path): Promise<void> {
    try {
      await this.parts.remote.move(old.path, waitingAt, undefined, old.id);
    } catch (error) {
      if (!isApiFailure(error, 'not-found')) throw error;
    }
  }

  async #placeOrPutBack(path: Path, waitingAt: Path, { place, isPlaced }: Placement): Promise<Entry> {
    const { remote, log } = this.parts;
    try {
      return await place(remote);
    } catch (error) {
      try {
        await remote.move(waitingAt, path);
      } catch (second) {
        const found = isInTheWay(second) && (await remote.stat(path));
        // The answer was lost, not the work. After a conflict it is somebody else's: a folder does not tell.
        if (found && !isInTheWay(error) && isPlaced(found)) return found;
        log.warn('what was in the way of a move or copy is not back yet', { reason: String(second) });
      }
      throw error;
    }
  }

  async #isNothingAt(path: Path): Promise<boolean> {
    try {
      return (await this.parts.remote.stat(path)) === undefined;
    } catch {
      return false;
    }
  }
}

function isInTheWay(error: unknown): boolean {
  return isApiFailure(error, 'conflict-file', 'conflict-folder');
}
