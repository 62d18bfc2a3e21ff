import type { Clock } from '../../../util/clock.ts';
import type { Log } from '../../../util/log.ts';
import type { Background } from '../background.ts';
import type { BlockStore } from '../blocks/block-store.ts';
import type { Contents } from '../blocks/contents.ts';
import type { Purge } from '../blocks/purge.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { Operation } from '../committer.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { StorageError } from '../storage.ts';
import type { NameIndex } from '../tree/name-index.ts';
import type { Stagings } from '../tree/stagings.ts';
import type { TreeRemovals } from '../tree/tree-removals.ts';
import type { Retention } from './retention.ts';

/** Contents that one transaction examines for unreferenced ones. */
const WINDOW_CONTENTS = 1000;

interface HousekeepingDeps {
  readonly contents: Contents;
  readonly sessions: Sessions;
  readonly removals: TreeRemovals;
  readonly stagings: Stagings;
  readonly purge: Purge;
  readonly names: Pick<NameIndex, 'dropUnused'>;
  readonly retention: Retention;
  readonly blocks: BlockStore;
  readonly reserve: Reserve;
  readonly background: Background;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * How a round has ended: with all that was due done, at the limit of its time with more history to look through, or early,
 * because the storage is too busy or closed.
 */
export type RoundEnd = 'complete' | 'limited' | 'early';

/**
 * Removes expired upload sessions, expired history, permanently removed entries, and leftovers of a crash. Each step is
 * one short transaction in the queue of all commits, so that no call waits for more than one. Under load a round gives
 * up, and the next one continues.
 */
export class Housekeeping {
  #round: Promise<RoundEnd> | undefined;

  constructor(
    private readonly deps: HousekeepingDeps,
    /** Whether the storage was not closed properly, so that unreferenced blocks may exist. */
    private mustSearchBlocks: boolean,
  ) {}

  /** Whether unreferenced blocks may exist. */
  get isUnfinished(): boolean {
    const { background, blocks } = this.deps;
    return this.mustSearchBlocks || background.hasFailed || blocks.hasLeftovers;
  }

  /** Runs one round, or waits for the one under way. */
  tidy(): Promise<RoundEnd> {
    this.#round ??= this.#tidy().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #tidy(): Promise<RoundEnd> {
    const { sessions, retention, removals, stagings, purge, names, reserve, clock } = this.deps;
    try {
      await this.#while(
        () => sessions.hasExpired(clock.now()),
        (transaction) => sessions.dropExpired(transaction),
      );
      await this.#while(
        () => retention.hasOldDeletions(clock.now()),
        (transaction) => retention.endDeletions(transaction),
      );
      const isAtEnd = await retention.endReplaced(clock.now());
      await stagings.work(reserve);
      await removals.work(reserve);
      await purge.work(reserve);
      await this.#while(
        () => purge.hasStaleTombstones(clock.now()),
        (transaction) => purge.dropStaleTombstones(transaction),
      );
      await names.dropUnused(reserve);
      if (this.isUnfinished) await this.#clearAfterCrash();
      if (reserve.isClosed) return 'early';
      await reserve.fill();
      return isAtEnd ? 'complete' : 'limited';
    } catch (failure) {
      // Too busy, or closed meanwhile: the next round continues.
      if (!(failure instanceof StorageError) && !reserve.isClosed) throw failure;
      return 'early';
    }
  }

  async #while(isDue: () => boolean, step: Operation<void>): Promise<void> {
    while (!this.deps.reserve.isClosed && isDue()) await this.deps.reserve.commit(step);
  }

  /** Removes contents that only readers had referenced, and blocks without a row. */
  async #clearAfterCrash(): Promise<void> {
    const { contents, blocks, reserve, background, log } = this.deps;
    // Reset first, so that a value set during the search counts for the next one.
    this.mustSearchBlocks = true;
    background.hasFailed = false;
    blocks.hasLeftovers = false;
    for (let after: number | undefined = 0; after !== undefined; ) {
      const from: number = after;
      if (reserve.isClosed) return;
      const { contents: unreferenced, last } = contents.unreferenced(from, WINDOW_CONTENTS);
      if (unreferenced.length > 0)
        await reserve.commit((transaction) => {
          for (const content of unreferenced) contents.collect(transaction, content);
        });
      after = last;
    }
    let removed = 0;
    for await (const name of blocks.names()) {
      if (reserve.isClosed) return;
      // `remove` checks again, without a pause, whether a row or an upload needs the block.
      if (blocks.isNeeded(name)) continue;
      await blocks.remove(name);
      removed++;
    }
    this.mustSearchBlocks = false;
    log.info('searched for blocks that a crash or a failed removal left behind', {
      removedBlocks: removed,
    });
  }
}
