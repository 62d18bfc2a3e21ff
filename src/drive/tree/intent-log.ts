import { ApiError, isOutage } from '../../api/errors.ts';
import type { Intent } from '../../state/intents.ts';
import { elapsedMs, type Instant } from '../../util/clock.ts';
import { isWithin, type Path } from '../../util/path.ts';
import { SingleFlight } from '../../util/single-flight.ts';
import { succeeds } from '../../util/succeeds.ts';
import { FileError } from '../errors.ts';
import type { Entry, Written } from '../files.ts';
import { companionOf } from '../names.ts';
import type { KeptState } from './kept-state.ts';
import type { TreeParts } from './parts.ts';

/** Until what could not be carried out is tried again, in ms. */
const RETRY_MS = 10_000;

/** What the log says then. */
const FOLLOWS_LATER = 'properties, times or local files of a moved or copied file follow later';

/** How long the service may still be at work on a call that was cut off, in ms. */
const LATE_MS = 600_000;

/** An intent that could not be carried out, or whose call at the service may or may not have been done. */
interface Left {
  readonly id: string;
  readonly to: Path;
  /** Requests wait for the first try only. */
  isTried: boolean;
  /** When the target was first found missing or incomplete. */
  missingSince: Instant | undefined;
}

/** The outcome of a move or copy. */
interface Performed {
  readonly written: Written;
  /** Why what is kept on this machine did not go along at once; it follows later. */
  readonly failure?: unknown;
}

/**
 * A write-ahead log of what follows on this machine when the service has moved or copied something: properties and
 * times for the copy, and the local files. After a kill or a lost answer it looks at the target: what the service
 * has made there gets what belongs to it.
 */
export class IntentLog {
  readonly #left = new Map<string, Left>();
  readonly #tries = new SingleFlight<string, void>();
  readonly #stop = new AbortController();
  #working: Promise<void> | undefined;

  constructor(
    private readonly parts: Pick<TreeParts, 'state' | 'metadata' | 'localFiles' | 'locks' | 'clock' | 'log'>,
    private readonly keptState: KeptState,
  ) {}

  /** Takes up what the last run left. */
  async open(): Promise<void> {
    const { intents } = this.parts.state;
    for (const id of await intents.ids()) {
      const intent = await intents.get(id);
      if (intent) this.#leave(intent.id, intent.to);
    }
  }

  /** Notes `intents`, lets `work` make at `to` what they are about, and carries them out. Throws what `work` throws. */
  async perform(to: Path, intents: AsyncIterable<Intent>, work: () => Promise<Written>): Promise<Performed> {
    const ids = await this.#note(to, intents);
    let written: Written;
    try {
      written = await work();
    } catch (error) {
      if (isRefusal(error)) await this.#crossOut(ids, to);
      else for (const id of ids) this.#leave(id, to);
      throw error;
    }
    return { written, ...(await this.#follow(ids, to)) };
  }

  /** To be awaited before `path` is looked at or changed: what the last run left is given to what is there first. */
  async settled(path: Path): Promise<void> {
    if (this.#left.size === 0) return;
    for (const left of [...this.#left.values()]) {
      const concerns = isWithin(path, left.to) || isWithin(left.to, path);
      // A failure is logged, and no reason to show nothing.
      if (concerns && !left.isTried) await succeeds(this.#try(left));
    }
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#working;
  }

  async #note(to: Path, intents: AsyncIterable<Intent>): Promise<readonly string[]> {
    const ids: string[] = [];
    try {
      for await (const intent of intents) {
        ids.push(intent.id);
        await this.parts.state.intents.note(intent);
      }
      return ids;
    } catch (error) {
      await this.#crossOut(ids, to);
      throw error;
    }
  }

  /** Never throws: one that cannot be crossed out now is later, and does no harm. */
  async #crossOut(ids: readonly string[], to: Path): Promise<void> {
    if (ids.length === 0 || (await succeeds(this.parts.state.intents.crossOut(ids)))) return;
    for (const id of ids) this.#leave(id, to);
  }

  async #follow(ids: readonly string[], to: Path): Promise<Pick<Performed, 'failure'>> {
    const { state, log } = this.parts;
    try {
      for (const id of ids) {
        const intent = await state.intents.get(id);
        // What is not there any more has gone since.
        if (intent) await this.#carryOut(intent);
      }
      await this.#crossOut(ids, to);
      return {};
    } catch (failure) {
      const reason = String(failure);
      log.warn(FOLLOWS_LATER, { to, reason });
      for (const id of ids) this.#leave(id, to);
      return { failure };
    }
  }

  /** Returns whether all that it is about was there. */
  async #carryOut({ kind, from, to, takesLocalFiles, kept }: Intent): Promise<boolean> {
    if (takesLocalFiles && kind === 'copy') await this.#copyLocalFiles(from, to);
    if (takesLocalFiles && kind === 'move')
      for (const [old, place] of [[from, to] as const, [companionOf(from), companionOf(to)] as const])
        await this.#moveLocalFiles(old, place);
    return this.keptState.give(kept);
  }

  async #copyLocalFiles(from: Path, to: Path): Promise<void> {
    const { localFiles, state } = this.parts;
    if ((await state.localFiles.within(to)).length === 0) await localFiles.copy(from, to);
  }

  async #moveLocalFiles(from: Path, to: Path): Promise<void> {
    const { localFiles, state } = this.parts;
    if ((await state.localFiles.within(from)).length > 0) await localFiles.move(from, to);
  }

  #leave(id: string, to: Path): void {
    if (!this.#left.has(id)) this.#left.set(id, { id, to, isTried: false, missingSince: undefined });
    this.#start();
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
      for (const left of [...this.#left.values()])
        await this.#try(left).catch((error) =>
          log.warn(FOLLOWS_LATER, { to: left.to, reason: String(error) }),
        );
      if (this.#left.size > 0) await clock.sleep(RETRY_MS, this.#stop.signal).catch(() => {});
    }
  }

  #try(left: Left): Promise<void> {
    return this.#tries.run(left.id, async () => {
      try {
        if (await this.#isDone(left)) this.#left.delete(left.id);
      } finally {
        left.isTried = true;
      }
    });
  }

  /** Carries the intent out if the service has done its part; `false` while it may yet. */
  async #isDone(left: Left): Promise<boolean> {
    const { state, locks, metadata, clock } = this.parts;
    const intent = await state.intents.get(left.id);
    // Another gateway has carried it out.
    if (!intent) return true;
    return locks.shared([intent.from, intent.to], async () => {
      const found = await metadata.stat(intent.to);
      const isMade = found !== undefined && isOutcome(intent, found) && (await this.#carryOut(intent));
      if (!isMade) {
        left.missingSince ??= clock.instant();
        if (elapsedMs(clock, left.missingSince) < LATE_MS) return false;
      }
      await state.intents.crossOut([left.id]);
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

/** Whether it is certain that the service has not done what it was asked: it said so, or was never asked. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ApiError) return error.details.isUndone ?? !isOutage(error);
  return error instanceof FileError;
}
