import { isApiFailure } from '../../api/errors.ts';
import type { Remote } from '../../api/remote.ts';
import type { Replacement } from '../../state/replacements.ts';
import { isWithin, keyOf, numberedPath, type Path, parentOf } from '../../util/path.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import { placedIn } from '../cache/tree-cache.ts';
import type { Entry } from '../files.ts';
import type { Gaps } from '../guarded-remote.ts';
import type { TreeParts } from './parts.ts';

type RecoveryParts = Pick<TreeParts, 'remote' | 'locks' | 'state' | 'metadata' | 'clock' | 'log'> & {
  readonly gaps: Gaps;
};

/** Until what could not be put right is tried again. */
const RETRY_MS = 10_000;

/** Free names that are tried for what cannot have its own. */
const NAMES_MAX = 100;

/** What is left to be done for a relocation. */
export interface Left {
  readonly relocation: Replacement;
  /** Nothing is where something should be; else all there is to do is to clear up. */
  readonly isMissing: boolean;
  /** Whether `found`, at the place, is what was put there: the answer was lost, and not the work. */
  readonly isPlaced: (found: Entry) => boolean;
}

/**
 * Finishes or undoes what a kill or a lost connection left half done, and goes on trying until all is right.
 * Until then nobody who asks is to see the gap.
 */
export class Recovery {
  readonly #left = new Map<string, Left>();
  readonly #flights = new SingleFlight<string, void>();
  readonly #stop = new AbortController();
  #working: Promise<void> | undefined;

  constructor(private readonly parts: RecoveryParts) {}

  /** Takes up what the last run left. */
  async open(): Promise<void> {
    const noted = await this.parts.state.replacements.all();
    for (const relocation of noted) this.add({ relocation, isMissing: true, isPlaced: () => false });
  }

  add(left: Left): void {
    this.#left.set(left.relocation.id, left);
    this.#start();
  }

  /**
   * To be awaited before `path` is looked at or changed: what is missing there is put back first. An `entry` may
   * be missing itself or lie in what is; a `folder` may also miss a child; a `tree` is about to be changed with
   * all below it, so that nothing may wait in it. Throws why it cannot be done now.
   */
  async putRight(path: Path, what: 'entry' | 'folder' | 'tree'): Promise<void> {
    if (this.#left.size === 0) return;
    for (const { relocation, isMissing } of [...this.#left.values()]) {
      const isChanged = what === 'tree';
      const concerns =
        isWithin(path, relocation.path) ||
        (what === 'folder' && keyOf(parentOf(relocation.path)) === keyOf(path)) ||
        (isChanged && isWithin(relocation.path, path));
      if (concerns && (isMissing || isChanged)) await this.#repair(relocation);
    }
  }

  /** What was to be replaced at `path` before, and could not be, has been by `replacement` after all. */
  async replaced(path: Path, replacement: string): Promise<void> {
    for (const left of [...this.#left.values()]) {
      if (left.relocation.purpose !== 'replace' || keyOf(left.relocation.path) !== keyOf(path)) continue;
      const relocation = { ...left.relocation, replacement };
      this.#left.set(relocation.id, { ...left, relocation });
      await this.parts.state.replacements.note(relocation);
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#working;
  }

  #start(): void {
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
      // Something may have come after the last look.
      if (this.#left.size > 0 && !this.#stop.signal.aborted) this.#start();
    });
  }

  async #work(): Promise<void> {
    const { clock, log } = this.parts;
    while (this.#left.size > 0 && !this.#stop.signal.aborted) {
      try {
        for (const { relocation } of [...this.#left.values()]) await this.#repair(relocation);
      } catch (error) {
        log.warn('a move that was cut short is not put right yet', { reason: String(error) });
        await clock.sleep(RETRY_MS, this.#stop.signal).catch(() => {});
      }
    }
  }

  #repair(relocation: Replacement): Promise<void> {
    const { gaps, locks } = this.parts;
    const paths = [relocation.path];
    return this.#flights.run(relocation.id, () =>
      locks.exclusive(paths, () => gaps.open(paths, () => this.#repairOne(relocation.id))),
    );
  }

  async #repairOne(id: string): Promise<void> {
    const { remote, state, log } = this.parts;
    const left = this.#left.get(id);
    // Somebody else may have done it meanwhile.
    if (!left) return;
    const { path, waitingAt, replacement } = left.relocation;
    const waiting = await remote.stat(waitingAt);
    if (waiting) {
      const found = await remote.stat(path);
      if (!found) await this.#putBack(waiting, path);
      else if (found.id === replacement || left.isPlaced(found)) await discard(remote, waitingAt);
      else await this.#moveToFreeName(waitingAt, path, waiting.id);
      log.info('a move that was cut short has been put right', { path });
    }
    await state.replacements.crossOut(id);
    this.#left.delete(id);
  }

  /** What has been learnt of the gap meanwhile is not to be believed any more. */
  async #putBack(waiting: Entry, path: Path): Promise<void> {
    const { remote, metadata } = this.parts;
    const change = metadata.begin([path], { tree: waiting.kind === 'folder' });
    let entry: Entry | undefined;
    try {
      entry = placedIn(parentOf(path), await remote.move(waiting.path, path, undefined, waiting.id));
    } finally {
      change.end(entry ? [[path, entry]] : []);
    }
  }

  /** What was being renamed, or was to be replaced, must not be lost because something else has its name now. */
  async #moveToFreeName(from: Path, wanted: Path, id: string): Promise<void> {
    for (let number = 1; ; number++) {
      const to = numberedPath(wanted, number);
      try {
        await this.parts.remote.move(from, to, undefined, id);
        this.parts.metadata.forget(to);
        this.parts.log.warn('another file has the name of one that was to be replaced: both are kept', {
          to,
        });
        return;
      } catch (error) {
        if (number === NAMES_MAX || !isApiFailure(error, 'conflict-file', 'conflict-folder')) throw error;
      }
    }
  }
}

/** What was replaced can be recovered at the service. */
export async function discard(remote: Pick<Remote, 'remove'>, waitingAt: Path): Promise<void> {
  try {
    await remote.remove(waitingAt, { permanent: false });
  } catch (error) {
    if (!isApiFailure(error, 'not-found')) throw error;
  }
}
