import { randomUUID } from 'node:crypto';
import type { Remote } from '../api/remote.ts';
import type { Relocation } from '../state/relocations.ts';
import { join, type Path, parentOf } from '../util/path.ts';
import { isApiFailure } from './errors.ts';
import type { Entry } from './files.ts';
import type { Gaps } from './gaps.ts';
import { waitingName } from './names.ts';
import type { TreeParts } from './parts.ts';
import { discard, type Repairs } from './repairs.ts';

/**
 * The service never overwrites with a move or copy. So what is in the way steps aside under a hidden name
 * beside its place, noted durably before it does: whatever happens then, it is put back or has been replaced.
 */
export class StepAside {
  constructor(
    private readonly parts: Pick<TreeParts, 'state' | 'log'> & {
      readonly remote: Remote;
      readonly gaps: Gaps;
    },
    private readonly repairs: Repairs,
  ) {}

  /**
   * Puts at the place of `old` what `place` makes there of `from`, and then removes `old` so that it can be recovered.
   * When `place` fails, `old` is back. `isPlaced` tells whether what was found there is what `place` made.
   */
  async replace(
    old: Entry,
    from: Path,
    place: (remote: Remote) => Promise<Entry>,
    isPlaced: (found: Entry) => boolean,
  ): Promise<Entry> {
    const { remote, gaps } = this.parts;
    return this.#noted(old.path, 'replace', async (waitingAt) => {
      const entry = await gaps.open([old.path, from], async () => {
        await this.#leave(old, waitingAt);
        return this.#placeOrPutBack(old.path, waitingAt, () => place(remote), isPlaced);
      });
      // Failing here fails nothing: the old one is out of sight, and it is tried again.
      const isClear = await discard(remote, waitingAt).then(
        () => true,
        () => false,
      );
      return { entry, isClear };
    });
  }

  /** Renames `entry` to `to`, which differs from its name in letter case only. */
  async renameCase(entry: Entry, to: Path): Promise<Entry> {
    const { remote, gaps } = this.parts;
    const rename = async (waitingAt: Path) => {
      await remote.move(entry.path, waitingAt, undefined, entry.id);
      try {
        return { entry: await remote.move(waitingAt, to, undefined, entry.id), isClear: true };
      } catch (error) {
        await remote.move(waitingAt, entry.path, undefined, entry.id);
        throw error;
      }
    };
    return this.#noted(to, 'rename', (waitingAt) => gaps.open([to], () => rename(waitingAt)));
  }

  async #noted(
    path: Path,
    purpose: Relocation['purpose'],
    work: (waitingAt: Path) => Promise<{ readonly entry: Entry; readonly isClear: boolean }>,
  ): Promise<Entry> {
    const { relocations } = this.parts.state;
    const id = randomUUID();
    const waitingAt = join(parentOf(path), waitingName(id));
    const relocation = { id, path, waitingAt, purpose };
    await relocations.note(relocation);
    let isClear = false;
    let isMissing = true;
    try {
      const done = await work(waitingAt);
      isClear = done.isClear;
      isMissing = false;
      return done.entry;
    } catch (error) {
      // A refusal of the first step left nothing behind, of which the service is asked.
      isClear = await this.#isNothingAt(waitingAt);
      throw error;
    } finally {
      if (isClear) await relocations.crossOut(id);
      else this.repairs.add(relocation, { isMissing });
    }
  }

  /** When it is gone already nothing is in the way. */
  async #leave(old: Entry, waitingAt: Path): Promise<void> {
    try {
      await this.parts.remote.move(old.path, waitingAt, undefined, old.id);
    } catch (error) {
      if (!isApiFailure(error, 'not-found')) throw error;
    }
  }

  async #placeOrPutBack(
    path: Path,
    waitingAt: Path,
    place: () => Promise<Entry>,
    isPlaced: (found: Entry) => boolean,
  ): Promise<Entry> {
    const { remote, log } = this.parts;
    try {
      return await place();
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
