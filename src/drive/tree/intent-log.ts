import { ApiError, isUndone, LATE_MS } from '../../api/errors.ts';
import type { Intent } from '../../state/intents.ts';
import type { DriveState } from '../../state/state.ts';
import { type Clock, elapsedMs, type Instant } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import { isWithin, type Path } from '../../util/path.ts';
import { succeeds } from '../../util/succeeds.ts';
import type { MetadataCache } from '../cache/metadata-cache.ts';
import { FileError } from '../errors.ts';
import type { Entry, Written } from '../files.ts';
import { type Gateways, ownerOf } from '../gateways.ts';
import type { LocalFiles } from '../local-files.ts';
import { companionOf } from '../names.ts';
import type { PathLocks } from '../path-locks.ts';
import type { KeptState } from './kept-state.ts';
import { RetryQueue } from './retry-queue.ts';

/** Log message for an intent that is retried. */
const FOLLOWS_LATER = 'properties, times or local files of a moved or copied file follow later';

interface IntentLogDeps {
  readonly state: Pick<DriveState, 'intents' | 'localFiles'>;
  readonly metadata: MetadataCache;
  readonly localFiles: LocalFiles;
  readonly keptState: KeptState;
  readonly locks: PathLocks;
  readonly gateways: Pick<Gateways, 'inherits'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** An intent that failed, or whose call at the service has an unknown outcome. */
interface Unfinished {
  readonly id: string;
  readonly to: Path;
  /** Requests wait for the first attempt only. */
  isTried: boolean;
  /** When the target was first found missing or incomplete. */
  missingSince: Instant | undefined;
}

/** The outcome of a move or copy. */
interface Performed {
  readonly written: Written;
  /** Why properties, times or local files did not follow at once; they follow later. */
  readonly failure?: unknown;
}

/**
 * A write-ahead log of the local side of a move or copy: properties and times for the copy, and the local files. After a
 * kill or a lost answer it looks at the target, and an entry that the service has made there gets what belongs to it.
 */
export class IntentLog {
  /** Intents that are left to carry out, by id. While it is empty, every path is settled. */
  readonly unfinished: ReadonlyMap<string, unknown>;
  readonly #queue: RetryQueue<Unfinished>;

  constructor(private readonly deps: IntentLogDeps) {
    const { clock, log } = deps;
    this.#queue = new RetryQueue({
      clock,
      attempt: (unfinished) => this.#attempt(unfinished),
      failed: ({ to }, error) => log.warn(FOLLOWS_LATER, { to, reason: String(error) }),
    });
    this.unfinished = this.#queue.items;
  }

  /** Queues the intents that an earlier run left unfinished, and those of gateways that were killed. */
  async takeOver(): Promise<void> {
    const { state, gateways } = this.deps;
    const { intents } = state;
    for (const id of await intents.ids()) {
      if (this.#queue.items.has(id) || !gateways.inherits(ownerOf(id))) continue;
      const intent = await intents.get(id);
      if (intent) this.#leave(intent.id, intent.to);
    }
  }

  /** Records `intents`, lets `work` move or copy to `to`, and carries them out. Throws the error of `work`. */
  async perform(to: Path, intents: AsyncIterable<Intent>, work: () => Promise<Written>): Promise<Performed> {
    const ids = await this.#note(to, intents);
    let written: Written;
    try {
      written = await work();
    } catch (error) {
      if (isRefusal(error)) await this.#removeIntents(ids, to);
      else for (const id of ids) this.#leave(id, to);
      throw error;
    }
    return { written, ...(await this.#follow(ids, to)) };
  }

  /** Attempts the intents of an earlier run that concern `path`. Must be awaited before `path` is read or changed. */
  async settle(path: Path): Promise<void> {
    for (const unfinished of [...this.#queue.items.values()]) {
      const concerns = isWithin(path, unfinished.to) || isWithin(unfinished.to, path);
      // A failure is logged by the queue, and is no reason to fail the request.
      if (concerns && !unfinished.isTried) await succeeds(this.#queue.try(unfinished));
    }
  }

  async close(): Promise<void> {
    await this.#queue.close();
  }

  async #note(to: Path, intents: AsyncIterable<Intent>): Promise<readonly string[]> {
    const ids: string[] = [];
    try {
      for await (const intent of intents) {
        ids.push(intent.id);
        await this.deps.state.intents.note(intent);
      }
      return ids;
    } catch (error) {
      await this.#removeIntents(ids, to);
      throw error;
    }
  }

  /** Removes finished intents. Never throws: a remaining intent is removed later and does no harm. */
  async #removeIntents(ids: readonly string[], to: Path): Promise<void> {
    if (ids.length === 0 || (await succeeds(this.deps.state.intents.remove(ids)))) return;
    for (const id of ids) this.#leave(id, to);
  }

  async #follow(ids: readonly string[], to: Path): Promise<Pick<Performed, 'failure'>> {
    const { state, log } = this.deps;
    try {
      for (const id of ids) {
        const intent = await state.intents.get(id);
        // Another gateway has carried it out.
        if (intent) await this.#carryOut(intent);
      }
      await this.#removeIntents(ids, to);
      return {};
    } catch (failure) {
      const reason = String(failure);
      log.warn(FOLLOWS_LATER, { to, reason });
      for (const id of ids) this.#leave(id, to);
      return { failure };
    }
  }

  /** Returns whether everything the intent is about was found. */
  async #carryOut({ kind, from, to, takesLocalFiles, kept }: Intent): Promise<boolean> {
    if (takesLocalFiles && kind === 'copy') await this.#copyLocalFiles(from, to);
    if (takesLocalFiles && kind === 'move')
      for (const [old, place] of [[from, to] as const, [companionOf(from), companionOf(to)] as const])
        await this.#moveLocalFiles(old, place);
    return this.deps.keptState.give(kept);
  }

  async #copyLocalFiles(from: Path, to: Path): Promise<void> {
    const { localFiles, state } = this.deps;
    if ((await state.localFiles.within(to)).length === 0) await localFiles.copy(from, to);
  }

  async #moveLocalFiles(from: Path, to: Path): Promise<void> {
    const { localFiles, state } = this.deps;
    if ((await state.localFiles.within(from)).length > 0) await localFiles.move(from, to);
  }

  #leave(id: string, to: Path): void {
    if (!this.#queue.items.get(id)) this.#queue.put({ id, to, isTried: false, missingSince: undefined });
  }

  async #attempt(unfinished: Unfinished): Promise<void> {
    try {
      if (await this.#isDone(unfinished)) this.#queue.remove(unfinished.id);
    } finally {
      unfinished.isTried = true;
    }
  }

  /** Carries the intent out if the service has done its part. Returns `false` while the service may still do it. */
  async #isDone(unfinished: Unfinished): Promise<boolean> {
    const { state, locks, metadata, clock } = this.deps;
    const intent = await state.intents.get(unfinished.id);
    // Another gateway has carried it out.
    if (!intent) return true;
    return locks.shared([intent.from, intent.to], async () => {
      const found = await metadata.stat(intent.to);
      const isMade = found !== undefined && isOutcome(intent, found) && (await this.#carryOut(intent));
      if (!isMade) {
        unfinished.missingSince ??= clock.instant();
        if (elapsedMs(clock, unfinished.missingSince) < LATE_MS) return false;
      }
      await state.intents.remove([unfinished.id]);
      return true;
    });
  }
}

function isOutcome({ outcome }: Intent, found: Entry): boolean {
  if (found.kind !== outcome.kind) return false;
  if (outcome.id !== undefined) return found.id === outcome.id;
  if (outcome.otherIds.includes(found.id)) return false;
  return found.kind === 'folder' || found.contentHash === outcome.contentHash;
}

/** Returns whether the service has certainly done nothing: it refused, or received no call. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ApiError) return isUndone(error);
  return error instanceof FileError;
}
