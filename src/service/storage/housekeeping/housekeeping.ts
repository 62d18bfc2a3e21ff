import type { Clock } from '../../../util/clock.ts';
import type { Log } from '../../../util/log.ts';
import type { Background } from '../background.ts';
import type { BlockFiles } from '../blocks/blocks.ts';
import type { Contents } from '../blocks/contents.ts';
import type { Graveyard } from '../blocks/purge.ts';
import type { Reserve } from '../blocks/reserve.ts';
import type { Operation } from '../committer.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { StorageError } from '../storage.ts';
import type { NameIndex } from '../tree/name-index.ts';
import type { Removals } from '../tree/removals.ts';
import type { Stagings } from '../tree/stagings.ts';
import type { Retention } from './retention.ts';

/** Contents looked at in one transaction for some that nothing holds. */
const WINDOW_CONTENTS = 1000;

interface Parts {
  readonly contents: Contents;
  readonly sessions: Sessions;
  readonly removals: Removals;
  readonly stagings: Stagings;
  readonly graveyard: Graveyard;
  readonly names: NameIndex;
  readonly retention: Retention;
  readonly files: BlockFiles;
  readonly reserve: Reserve;
  readonly background: Background;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * What the storage clears away by itself: upload sessions and history past their time, what was removed for ever,
 * and what a crash left. Each step is one short transaction in the line of all commits, so that no call waits for
 * more than one; under load the round is given up, and the next one goes on.
 */
export class Housekeeping {
  #round: Promise<void> | undefined;

  constructor(
    private readonly parts: Parts,
    /** Whether block files may be there that nothing needs: the storage was not closed properly. */
    private mustSearchFiles: boolean,
  ) {}

  /** Whether files may be there that nothing needs. */
  get isUnfinished(): boolean {
    const { background, files } = this.parts;
    return this.mustSearchFiles || background.hasFailed || files.hasLeftovers;
  }

  /** One round; who asks while one is under way waits for that. */
  tidy(): Promise<void> {
    this.#round ??= this.#tidy().finally(() => {
      this.#round = undefined;
    });
    return this.#round;
  }

  async #tidy(): Promise<void> {
    const { sessions, retention, removals, stagings, graveyard, names, reserve, clock } = this.parts;
    try {
      await this.#while(
        () => sessions.hasExpired(clock.now()),
        (transaction) => sessions.dropExpired(transaction),
      );
      await this.#while(
        () => retention.hasOldDeletions(clock.now()),
        (transaction) => retention.endDeletions(transaction),
      );
      await retention.endReplaced(clock.now());
      await stagings.work(reserve);
      await removals.work(reserve);
      await graveyard.work(reserve);
      await this.#while(
        () => graveyard.hasOldWords(clock.now()),
        (transaction) => graveyard.forgetOldWords(transaction),
      );
      await names.dropUnused(reserve);
      if (this.isUnfinished) await this.#clearAfterCrash();
      if (!reserve.isClosed) await reserve.fill();
    } catch (failure) {
      // Too busy, or closed meanwhile: there will be another round.
      if (!(failure instanceof StorageError) && !reserve.isClosed) throw failure;
    }
  }

  async #while(isDue: () => boolean, step: Operation<void>): Promise<void> {
    while (!this.parts.reserve.isClosed && isDue()) await this.parts.reserve.commit(step);
  }

  /** Removes contents that were only being read, and files that no block is known for. */
  async #clearAfterCrash(): Promise<void> {
    const { contents, files, reserve, background, log } = this.parts;
    // From here on each of these stands for something new.
    this.mustSearchFiles = true;
    background.hasFailed = false;
    files.hasLeftovers = false;
    for (let after: number | undefined = 0; after !== undefined; ) {
      const from: number = after;
      if (reserve.isClosed) return;
      const { unheld, last } = contents.unheld(from, WINDOW_CONTENTS);
      if (unheld.length > 0)
        await reserve.commit((transaction) => {
          for (const content of unheld) contents.collect(transaction, content);
        });
      after = last;
    }
    let removed = 0;
    for await (const hash of files.hashes()) {
      if (reserve.isClosed) return;
      // Whether a block or an upload needs the file is asked again at its removal, where nothing comes between.
      if (!/^[0-9a-f]{64}$/.test(hash) || files.isNeeded(hash)) continue;
      await files.remove(hash);
      removed++;
    }
    this.mustSearchFiles = false;
    log.info('what a crash or a failed removal left has been looked for', { removedBlocks: removed });
  }
}
