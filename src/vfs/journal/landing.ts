import { BodyGone, type Journal, type PendingWrite } from '../../state/journal.ts';
import type { DriveState } from '../../state/state.ts';
import { ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import type { Path } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { FileEntry, Files, WriteMode } from '../files.ts';
import { conflictedCopyPath } from './conflicts.ts';
import { isNewId } from './entries.ts';
import type { FileIds } from './file-ids.ts';
import type { PendingFile, PendingFiles } from './pending-files.ts';
import { verdictOn } from './verdict.ts';

export interface LandingParts {
  /** The tree below the journal. */
  readonly base: Files;
  readonly journal: Journal;
  readonly pending: PendingFiles;
  readonly state: DriveState;
  readonly ids: FileIds;
  readonly log: Log;
}

/** Names that are tried for a conflicted copy. */
const COPIES_MAX = 100;

/** How a pending write gets to the service, or to where it is kept if that does not take it. */
export class Landing {
  constructor(private readonly parts: LandingParts) {}

  /** Throws when it is to be tried again. */
  async land(file: PendingFile, signal: AbortSignal): Promise<void> {
    const { write } = file;
    try {
      await this.#landed(file, file.landed ?? (await this.#store(write, write.path, modeOf(write), signal)));
    } catch (error) {
      if (signal.aborted) throw error;
      const verdict = verdictOn(error, file.failures);
      if (verdict === 'conflict') await this.#resolve(file, error, signal);
      else if (verdict === 'refused') await this.#lose(file, error);
      else throw error;
    }
  }

  async #store(write: PendingWrite, path: Path, mode: WriteMode, signal: AbortSignal): Promise<FileEntry> {
    const { sizeBytes, modifiedMs } = write;
    const body = wholeBody(this.parts.journal, write);
    const { entry } = await this.parts.base.write(path, body, { mode, sizeBytes, modifiedMs }, signal);
    if (entry.kind !== 'file') throw new Error('a write returned a folder');
    return entry;
  }

  /** It is `entry` now, and what comes after it is to replace that. */
  async #landed(file: PendingFile, entry: FileEntry): Promise<void> {
    const { journal, pending, state, ids } = this.parts;
    const { id, path, fileId } = file.write;
    file.landed = entry;
    if (isNewId(fileId)) {
      ids.renamed(fileId, entry.id);
      await state.properties.rename(fileId, entry.id);
    }
    // What was accepted until now is in the journal before this, and nothing comes between.
    const later = pending.at(path).filter((other) => other !== file);
    for (const each of [file, ...later])
      each.write = { ...each.write, replaces: entry.rev, fileId: entry.id };
    for (const each of later) pending.changed(each);
    await journal.forget(
      [id],
      later.map(({ write }) => write),
    );
    pending.delete(file);
  }

  /** Something else is at its place. What that is decides. */
  async #resolve(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const { base, journal } = this.parts;
    const { write } = file;
    const found = await base.stat(write.path, signal);
    // Stored before a kill, or by somebody else.
    if (isContentOf(found, write)) return this.#landed(file, found);
    if (!found && write.replaces !== undefined) {
      // Somebody has deleted what it was to replace: an edit outlives that.
      file.write = { ...write, replaces: undefined };
      await journal.change(file.write);
      throw error;
    }
    if (!found) throw error;
    if (write.sizeBytes === 0 && write.replaces === undefined) return this.#giveWay(file);
    await this.#keepBeside(file, signal);
  }

  /** An empty new file has nothing that could be lost. */
  async #giveWay(file: PendingFile): Promise<void> {
    await this.#forgetNew(file);
    await this.parts.journal.forget([file.write.id]);
    this.parts.pending.delete(file);
  }

  async #keepBeside(file: PendingFile, signal: AbortSignal): Promise<void> {
    const { journal, pending, state, log } = this.parts;
    const { write } = file;
    const copy = await this.#storeCopy(file, signal);
    if (!copy) return;
    await state.properties.copy(write.fileId, copy.id);
    await this.#forgetNew(file);
    await journal.forget([write.id]);
    pending.delete(file);
    log.warn('a file was changed elsewhere before a write of it had landed: both are kept', {
      path: write.path,
      copy: copy.path,
    });
  }

  /** `undefined` when it could not be kept at the service and has been lost there. */
  async #storeCopy(file: PendingFile, signal: AbortSignal): Promise<FileEntry | undefined> {
    const { write } = file;
    for (let number = 1; number <= COPIES_MAX; number++) {
      const path = conflictedCopyPath(write, number);
      try {
        return await this.#store(write, path, { if: 'absent' }, signal);
      } catch (error) {
        const verdict = signal.aborted ? 'later' : verdictOn(error, file.failures);
        if (verdict === 'trouble' || verdict === 'later') throw error;
        if (verdict === 'refused') {
          await this.#lose(file, error);
          return undefined;
        }
        const found = await this.parts.base.stat(path, signal);
        if (isContentOf(found, write)) return found;
      }
    }
    await this.#lose(file, new Error(`the file was changed elsewhere, and no name beside it is free`));
    return undefined;
  }

  async #lose(file: PendingFile, error: unknown): Promise<void> {
    const { journal, pending, log } = this.parts;
    const { write } = file;
    const reason = error instanceof Error ? error.message : String(error);
    const keptAt = await journal.lose(write, reason);
    await this.#forgetNew(file);
    pending.delete(file);
    log.error(
      'the storage service refuses a write that was acknowledged: it is in the lost-and-found folder',
      {
        path: write.path,
        keptAt,
        reason,
      },
    );
  }

  /** What was said of a file that comes to nothing, unless another write goes on with it. */
  async #forgetNew({ write }: PendingFile): Promise<void> {
    const { pending, state } = this.parts;
    if (isNewId(write.fileId) && pending.at(write.path).length <= 1)
      await state.properties.forget([write.fileId]);
  }
}

function modeOf({ replaces }: PendingWrite): WriteMode {
  return replaces === undefined ? { if: 'absent' } : { if: 'rev', rev: replaces };
}

function isContentOf(found: { readonly kind: string } | undefined, write: PendingWrite): found is FileEntry {
  const file = found as Partial<FileEntry> | undefined;
  return (
    file?.kind === 'file' && file.contentHash === write.contentHash && file.sizeBytes === write.sizeBytes
  );
}

/** The bytes of `write`, which end only if they are what was acknowledged. */
export async function* wholeBody(journal: Journal, write: PendingWrite): AsyncIterable<Uint8Array> {
  const hasher = new ContentHasher();
  try {
    for await (const piece of journal.read(write.id)) {
      hasher.update(piece);
      yield piece;
    }
  } catch (error) {
    if (!(error instanceof BodyGone)) throw error;
    throw new FileError('checksum', `the bytes of ${write.path} are gone from the journal`, { cause: error });
  }
  if (hasher.digest() !== write.contentHash)
    throw new FileError('checksum', `the bytes of ${write.path} were damaged in the journal`);
}
