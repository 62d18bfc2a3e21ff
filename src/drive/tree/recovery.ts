import { isApiFailure } from '../../api/errors.ts';
import type { Remote } from '../../api/remote.ts';
import type { Replacement, Replacements } from '../../state/replacements.ts';
import { type Clock, type Instant, remainingMs } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { isWithin, keyOf, numberedPath, type Path, parentOf } from '../../util/path.ts';
import { succeeds } from '../../util/succeeds.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import type { SharedChanges } from '../cache/shared-changes.ts';
import { placedIn } from '../cache/tree-cache.ts';
import type { Entry } from '../files.ts';
import { type Gateways, ownerOf } from '../gateways.ts';
import type { PathLocks } from '../path-locks.ts';
import type { OtherReplacements } from './other-replacements.ts';
import { RetryQueue } from './retry-queue.ts';

interface RecoveryDeps {
  /** Unguarded: recovery itself holds the lock that keeps other calls out. */
  readonly remote: Pick<Remote, 'stat' | 'move' | 'remove'>;
  readonly replacements: Replacements;
  readonly metadata: MetadataCache;
  /** Locks of whole operations. */
  readonly locks: PathLocks;
  /** Locks of single calls of the service. */
  readonly callLocks: PathLocks;
  readonly gateways: Pick<Gateways, 'inherits' | 'own' | 'newId'>;
  readonly others: OtherReplacements;
  readonly shared: Pick<SharedChanges, 'tellReplaced'> | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** Maximum number of names that are tried for an entry whose own name is taken. */
const NAMES_MAX = 100;

/** A replacement that has to be finished or undone. */
export interface Unfinished {
  readonly replacement: Replacement;
  /** Whether it is recorded. Then other gateways make no call for the place. */
  readonly isNoted: boolean;
  /** The place may be empty. Otherwise there is only something to clean up. */
  readonly isMissing: boolean;
  /** Whether `found`, at the place, is the new entry: then only the answer was lost. */
  readonly isPlaced: (found: Entry) => boolean;
  /**
   * Until when the service may still hide the old entry, although it has not yet: the answer to that call was lost. This is
   * not recorded for so long; after a kill the hidden entry is found by its name.
   */
  readonly mayComeUntil?: Instant;
}

/**
 * Finishes or undoes replacements that a kill or a lost connection interrupted, and retries until all are settled.
 * Until then no client may see the place empty.
 */
export class Recovery {
  /** Unfinished replacements by id. While it is empty, every path is settled. */
  readonly unfinished: ReadonlyMap<string, Unfinished>;
  readonly #queue: RetryQueue<Unfinished & { readonly id: string }>;

  constructor(private readonly deps: RecoveryDeps) {
    const { clock, log } = deps;
    this.#queue = new RetryQueue({
      clock,
      attempt: ({ id, replacement }) => this.#recover(id, replacement.path),
      failed: ({ replacement: { path } }, error) =>
        log.warn('an interrupted move or copy is not recovered yet; davgate tries again', {
          path,
          reason: String(error),
        }),
    });
    this.unfinished = this.#queue.items;
  }

  /** Whether an entry may be missing in the cache. */
  get mayMiss(): boolean {
    return [...this.unfinished.values()].some(({ isMissing }) => isMissing);
  }

  /** Queues the replacements that an earlier run left unfinished, and those of gateways that were killed. */
  async takeOver(): Promise<void> {
    const { replacements, gateways, others } = this.deps;
    const before = others.ids;
    const all = await replacements.all();
    others.endMissed(before, all);
    for (const replacement of all) {
      const { id, path } = replacement;
      const owner = ownerOf(id);
      if (this.unfinished.has(id)) continue;
      if (gateways.inherits(owner)) {
        this.add({ replacement, isNoted: true, isMissing: true, isPlaced: () => false });
        others.end(id);
      } else if (owner === undefined || owner !== gateways.own) others.expect(id, path);
    }
    // The end of one that has just begun here may have been told before it began.
    const begun = others.ids.filter((id) => !before.includes(id));
    if (begun.length > 0) others.endMissed(begun, await replacements.all());
  }

  add(unfinished: Unfinished): void {
    this.#queue.put({ ...unfinished, id: unfinished.replacement.id });
  }

  /**
   * Takes over an entry that came to `waitingAt` with the folder around it. If another entry is at `path`, the hidden one is
   * deleted if `mayDiscard`, and otherwise gets a free name beside it.
   */
  async adopt(
    place: Pick<Replacement, 'path' | 'waitingAt'>,
    { mayDiscard }: { readonly mayDiscard: boolean },
  ): Promise<void> {
    const { replacements, gateways } = this.deps;
    const replacement = { id: gateways.newId(), ...place, purpose: 'replace' } as const;
    // A failure fails nothing: this process recovers it nevertheless.
    await succeeds(replacements.note(replacement));
    this.add({ replacement, isNoted: true, isMissing: true, isPlaced: () => mayDiscard });
  }

  /**
   * Gives the hidden entry at `waitingAt` the name `path`, or a free name beside it. Does nothing if it is gone. Throws why
   * the service refuses.
   */
  async restore(waitingAt: Path, path: Path): Promise<void> {
    await this.#inTurn(path, () => this.#bringBack({ waitingAt, path }, () => false));
  }

  /**
   * Recovers what concerns `path`, and is awaited before `path` is read or changed. An `entry` may be missing itself or
   * lie in a missing folder; a `folder` may also miss a child; a `tree` is changed with everything below it, so that
   * nothing may be left to clean up in it. Throws why recovery is impossible now.
   */
  async settle(path: Path, what: 'entry' | 'folder' | 'tree'): Promise<void> {
    for (const unfinished of [...this.#queue.items.values()]) {
      const { replacement, isMissing, mayComeUntil } = unfinished;
      const isLate = mayComeUntil !== undefined;
      const isChanged = what === 'tree';
      const concerns =
        isWithin(path, replacement.path) ||
        (what === 'folder' && keyOf(parentOf(replacement.path)) === keyOf(path)) ||
        (isChanged && isWithin(replacement.path, path));
      if (!concerns || !(isMissing || isLate || isChanged)) continue;
      const attempt = this.#queue.try(unfinished);
      // Nothing was hidden at the last look: what is cached can be shown while the service is away.
      await (isLate && !isMissing ? succeeds(attempt) : attempt);
    }
  }

  /** Records that an unfinished replacement of `path` has succeeded after all: the entry `newId` exists. */
  async replaced(path: Path, newId: string): Promise<void> {
    for (const unfinished of [...this.#queue.items.values()]) {
      const { purpose, path: place } = unfinished.replacement;
      if (purpose !== 'replace' || keyOf(place) !== keyOf(path)) continue;
      const replacement = { ...unfinished.replacement, replacement: newId };
      this.#queue.put({ ...unfinished, replacement });
      if (unfinished.isNoted) await this.deps.replacements.note(replacement);
    }
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  #recover(id: string, path: Path): Promise<void> {
    return this.#inTurn(path, async () => {
      const { replacements, shared, clock } = this.deps;
      const unfinished = this.unfinished.get(id);
      // Another request may have recovered it meanwhile.
      if (!unfinished) return;
      const { replacement, isNoted, isPlaced, mayComeUntil } = unfinished;
      const isNew = (found: Entry) => found.id === replacement.replacement || isPlaced(found);
      const wasHidden = await this.#bringBack(replacement, isNew);
      if (isNoted) {
        await replacements.remove(id);
        await shared?.tellReplaced(id);
      }
      if (wasHidden || !mayComeUntil || remainingMs(clock, mayComeUntil) <= 0) this.#queue.remove(id);
      else this.add({ ...unfinished, isNoted: false, isMissing: false });
    });
  }

  #inTurn<T>(path: Path, work: () => Promise<T>): Promise<T> {
    const { locks, callLocks } = this.deps;
    return locks.exclusive([path], () => callLocks.exclusive([path], work));
  }

  /**
   * Moves a hidden entry to its place if that is empty. Deletes it if `isNew` says that its replacement is there. Returns
   * whether one was hidden.
   */
  async #bringBack(
    { path, waitingAt }: Pick<Replacement, 'path' | 'waitingAt'>,
    isNew: (found: Entry) => boolean,
  ): Promise<boolean> {
    const { remote, log } = this.deps;
    const waiting = await remote.stat(waitingAt);
    if (!waiting) return false;
    const found = await remote.stat(path);
    if (!found) await this.#putBack(waiting, path);
    else if (isNew(found)) await discard(remote, waitingAt);
    else await this.#moveToFreeName(waitingAt, path, waiting.id);
    log.info('recovered an interrupted move or copy', { path });
    return true;
  }

  /** Moves `waiting` back to `path`. Cached answers that showed the empty place become invalid. */
  async #putBack(waiting: Entry, path: Path): Promise<void> {
    const { remote, metadata } = this.deps;
    const change = metadata.begin([path], { tree: waiting.kind === 'folder' });
    let entry: Entry | undefined;
    try {
      entry = placedIn(parentOf(path), await remote.move(waiting.path, path, undefined, waiting.id));
    } finally {
      await change.end(entry ? [[path, entry]] : []);
    }
  }

  /** Gives an entry whose place is taken a numbered name: neither of the two may be lost. */
  async #moveToFreeName(from: Path, wanted: Path, id: string): Promise<void> {
    for (let number = 1; ; number++) {
      const to = numberedPath(wanted, number);
      const change = this.deps.metadata.begin([to], { tree: true });
      try {
        await this.deps.remote.move(from, to, undefined, id);
        await change.end([]);
        this.deps.log.warn(
          'kept a file that was to be replaced under another name, because a new file has its name',
          {
            to,
          },
        );
        return;
      } catch (error) {
        await change.failed(error);
        if (number === NAMES_MAX || !isApiFailure(error, 'conflict-file', 'conflict-folder')) throw error;
      }
    }
  }
}

/** Deletes a replaced entry; it can be restored at the service. */
export async function discard(remote: Pick<Remote, 'remove'>, waitingAt: Path): Promise<void> {
  try {
    await remote.remove(waitingAt, { permanent: false });
  } catch (error) {
    if (!isApiFailure(error, 'not-found')) throw error;
  }
}
