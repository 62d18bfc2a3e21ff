import { randomUUID } from 'node:crypto';
import type { Relocation } from '../state/relocations.ts';
import { join, nameOf, type Path, parentOf } from '../util/path.ts';
import { isApiFailure } from './errors.ts';
import type { Entry } from './files.ts';
import { waitingName } from './names.ts';
import type { TreeParts } from './parts.ts';

type StepAsideParts = Pick<TreeParts, 'remote' | 'state' | 'clock' | 'log'>;

/** Until what could not be put right is tried again. */
const RETRY_MS = 10_000;

/** Free names that are tried for what cannot have its own. */
const NAMES_MAX = 100;

/**
 * The service never overwrites with a move or copy. So what is in the way steps aside under a hidden name
 * beside its place, noted durably before it does: whatever happens then, it is put back or has been replaced.
 */
export class StepAside {
  readonly #stop = new AbortController();
  #repairing: Promise<void> | undefined;
  /** Those whose makers are still at work. */
  readonly #underWay = new Set<string>();

  constructor(private readonly parts: StepAsideParts) {}

  /**
   * Puts at the place of `old` what `place` makes there, and then removes `old` so that it can be recovered.
   * When `place` fails, `old` is back. `isPlaced` tells whether what was found there is what `place` made.
   */
  async replace(
    old: Entry,
    place: () => Promise<Entry>,
    isPlaced: (found: Entry) => boolean,
  ): Promise<Entry> {
    return this.#noted(old.path, 'replace', async (waitingAt) => {
      await this.#leave(old, waitingAt);
      const entry = await this.#placeOrPutBack(old.path, waitingAt, place, isPlaced);
      // Failing here fails nothing: the old one is out of sight, and it is tried again.
      const isClear = await this.#discard(waitingAt).then(
        () => true,
        () => false,
      );
      return { entry, isClear };
    });
  }

  /** Renames `entry` to `to`, which differs from its name in letter case only. */
  async renameCase(entry: Entry, to: Path): Promise<Entry> {
    const { remote } = this.parts;
    return this.#noted(to, 'rename', async (waitingAt) => {
      await remote.move(entry.path, waitingAt, undefined, entry.id);
      try {
        return { entry: await remote.move(waitingAt, to, undefined, entry.id), isClear: true };
      } catch (error) {
        await remote.move(waitingAt, entry.path, undefined, entry.id);
        throw error;
      }
    });
  }

  /** Finishes or undoes what a kill or a lost connection left half done; goes on trying until all is right. */
  repair(): Promise<void> {
    this.#repairing ??= this.#repairAll().finally(() => {
      this.#repairing = undefined;
    });
    return this.#repairing;
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#repairing;
  }

  async #noted(
    path: Path,
    purpose: Relocation['purpose'],
    work: (waitingAt: Path) => Promise<{ readonly entry: Entry; readonly isClear: boolean }>,
  ): Promise<Entry> {
    const { relocations } = this.parts.state;
    const id = randomUUID();
    const waitingAt = join(parentOf(path), waitingName(id));
    this.#underWay.add(id);
    await relocations.note({ id, path, waitingAt, purpose });
    let isClear = false;
    try {
      const done = await work(waitingAt);
      isClear = done.isClear;
      return done.entry;
    } catch (error) {
      // A refusal of the first step left nothing behind, of which the service is asked.
      isClear = await this.#isNothingAt(waitingAt);
      throw error;
    } finally {
      this.#underWay.delete(id);
      if (isClear) await relocations.crossOut(id);
      else this.repair().catch(() => {});
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
        const found = isApiFailure(second, 'conflict-file', 'conflict-folder') && (await remote.stat(path));
        // The answer was lost, not the work.
        if (found && isPlaced(found)) return found;
        log.warn('what was in the way of a move or copy is not back yet', { reason: String(second) });
      }
      throw error;
    }
  }

  /** What was replaced can be recovered at the service. */
  async #discard(waitingAt: Path): Promise<void> {
    try {
      await this.parts.remote.remove(waitingAt, { permanent: false });
    } catch (error) {
      if (!isApiFailure(error, 'not-found')) throw error;
    }
  }

  async #isNothingAt(path: Path): Promise<boolean> {
    try {
      return (await this.parts.remote.stat(path)) === undefined;
    } catch {
      return false;
    }
  }

  async #repairAll(): Promise<void> {
    const { clock, state, log } = this.parts;
    while (!this.#stop.signal.aborted) {
      const noted = (await state.relocations.all()).filter(({ id }) => !this.#underWay.has(id));
      if (noted.length === 0) return;
      try {
        for (const relocation of noted) await this.#repairOne(relocation);
      } catch (error) {
        log.warn('a move that was cut short is not put right yet', { reason: String(error) });
        await clock.sleep(RETRY_MS, this.#stop.signal).catch(() => {});
      }
    }
  }

  async #repairOne({ id, path, waitingAt, purpose }: Relocation): Promise<void> {
    const { remote, state, log } = this.parts;
    const waiting = await remote.stat(waitingAt);
    if (waiting) {
      if (!(await remote.stat(path))) await remote.move(waitingAt, path, undefined, waiting.id);
      else if (purpose === 'replace') await this.#discard(waitingAt);
      else await this.#moveToFreeName(waitingAt, path, waiting.id);
      log.info('a move that was cut short has been put right', { path });
    }
    await state.relocations.crossOut(id);
  }

  /** What was being renamed must not be lost because something else has its name now. */
  async #moveToFreeName(from: Path, wanted: Path, id: string): Promise<void> {
    for (let number = 1; ; number++) {
      const name = nameOf(wanted);
      const dot = name.lastIndexOf('.') > 0 ? name.lastIndexOf('.') : name.length;
      const to = join(parentOf(wanted), `${name.slice(0, dot)} (${number})${name.slice(dot)}`);
      try {
        await this.parts.remote.move(from, to, undefined, id);
        return;
      } catch (error) {
        if (number === NAMES_MAX || !isApiFailure(error, 'conflict-file', 'conflict-folder')) throw error;
      }
    }
  }
}
