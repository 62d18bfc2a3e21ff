import type { EntryLocation } from '../../api/remote.ts';
import { BodyGone, type Journal, type PendingWrite } from '../../state/journal.ts';
import type { DriveState } from '../../state/state.ts';
import { ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import { join, keyOf, nameOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Entry, FileEntry, Files, WriteMode } from '../files.ts';
import { conflictedCopyPath } from './conflicts.ts';
import { verdictOn } from './failure-policy.ts';
import type { FileIds } from './file-ids.ts';
import { isNewId } from './overlay-entries.ts';
import type { PendingFile, PendingFiles } from './pending-files.ts';

export interface LandingParts {
  /** The tree below the journal. */
  readonly base: Files;
  readonly journal: Journal;
  readonly pending: PendingFiles;
  readonly state: DriveState;
  readonly ids: FileIds;
  readonly log: Log;
  /** Where the folder with this id is now. */
  readonly locate: (folderId: string, signal: AbortSignal) => Promise<EntryLocation | undefined>;
}

/** Names that are tried for a conflicted copy. */
const COPIES_MAX = 100;

/** How a pending write gets to the service, or to where it is kept if that does not take it. */
export class Landing {
  constructor(private readonly parts: LandingParts) {}

  /** Throws when it is to be tried again. */
  async land(file: PendingFile, signal: AbortSignal): Promise<void> {
    try {
      await this.#send(file, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const verdict = verdictOn(error, file.failures);
      if (verdict === 'homeless') await this.#rehouse(file, error, signal);
      else await this.#settle(file, error, signal);
    }
  }

  async #send(file: PendingFile, signal: AbortSignal): Promise<void> {
    const { write } = file;
    await this.#landed(file, file.landed ?? (await this.#store(write, write.path, modeOf(write), signal)));
  }

  async #settle(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const verdict = verdictOn(error, file.failures);
    if (verdict === 'conflict') await this.#resolve(file, error, signal);
    else if (verdict === 'homeless') await this.#keepAbove(file, error, signal);
    else if (verdict === 'refused') await this.#lose(file, error);
    else throw error;
  }

  /**
   * The folder of a write has gone. If it was moved within the drive, what is written in it goes with it. If it was
   * deleted, or moved out of the drive's root, where davgate must not write, it is made again, as the service itself
   * would for an upload.
   */
  async #rehouse(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const { pending, journal, locate, log } = this.parts;
    const { path, folderId } = file.write;
    const folder = parentOf(path);
    const now = folderId === undefined ? undefined : await locate(folderId, signal);
    if (now !== undefined && now !== 'outside' && keyOf(now) !== keyOf(folder)) {
      const moved = pending.move(path, join(now, nameOf(path)));
      await Promise.all(moved.map(({ write }) => journal.change(write)));
      log.info('the folder of a write was moved elsewhere: the write goes with it', { path, folder: now });
      // One that was written there waits already, and is first.
      if (pending.first(file.write.path) !== file) throw error;
    }
    try {
      await this.#makeFolder(parentOf(file.write.path), signal);
      await this.#send(file, signal);
    } catch (second) {
      if (signal.aborted) throw second;
      await this.#settle(file, second, signal);
    }
  }

  async #makeFolder(folder: Path, signal: AbortSignal): Promise<void> {
    const { base, log } = this.parts;
    if (folder === ROOT || (await base.stat(folder, signal))?.kind === 'folder') return;
    await this.#makeFolder(parentOf(folder), signal);
    try {
      await base.createFolder(folder);
      log.info('a folder that is no longer in the drive is made again for a write', { folder });
    } catch (error) {
      // Somebody was quicker, or a file is there: the write itself finds out.
      if (!(error instanceof FileError && error.fault === 'exists')) throw error;
    }
  }

  /** Something that is no folder stands where the write's folder was: it is kept in the nearest folder above. */
  async #keepAbove(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const { base } = this.parts;
    let folder = parentOf(file.write.path);
    if (folder === ROOT) return this.#lose(file, error);
    do folder = parentOf(folder);
    while (folder !== ROOT && (await base.stat(folder, signal))?.kind !== 'folder');
    await this.#keepBeside(file, folder, signal);
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
    await this.#keepTime(file.write, entry);
    if (isNewId(fileId)) {
      ids.renamed(fileId, entry.id);
      await state.properties.rename(fileId, entry.id);
    } else if (entry.id !== fileId) await this.#copyProperties(fileId, entry.id);
    // What was accepted until now is in the journal before this, and nothing comes between.
    const later = pending.at(path).filter((other) => other !== file);
    for (const each of [file, ...later])
      each.write = {
        ...each.write,
        replaces: entry.rev,
        replacesHash: entry.contentHash,
        fileId: entry.id,
      };
    for (const each of later) pending.changed(each);
    await journal.forget(
      [id],
      later.map(({ write }) => write),
    );
    pending.delete(file);
  }

  /**
   * Others moved the file away that was to be written, so the write made a new one. The new one keeps the properties
   * that clients saw, and so does the file that was moved: it may come back.
   */
  async #copyProperties(from: string, to: string): Promise<void> {
    const { properties } = this.parts.state;
    if (!(await properties.of([to])).has(to)) await properties.copy(from, to);
  }

  /** Another time may have been set while it was sent. */
  async #keepTime({ modifiedMs }: PendingWrite, entry: FileEntry): Promise<void> {
    if (Math.floor(entry.modifiedMs / 1000) === Math.floor(modifiedMs / 1000)) return;
    try {
      await this.parts.base.setModified(entry.path, modifiedMs);
    } catch (error) {
      // Somebody has just deleted it.
      if (!(error instanceof FileError && error.fault === 'not-found')) throw error;
    }
  }

  /** Something else is at its place. What that is decides. */
  async #resolve(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const { base } = this.parts;
    const { write } = file;
    const found = await base.stat(write.path, signal);
    const there = fileOf(found);
    // Stored before a kill, or by somebody else.
    if (there && isContentOf(there, write)) return this.#landed(file, there);
    // Somebody has deleted what it was to replace: an edit outlives that.
    if (!found && write.replaces !== undefined) return this.#sendAgain(file, undefined, error);
    if (!found) throw error;
    // What it was to replace, under another revision: a move elsewhere gave it that.
    const isAsBefore = there?.contentHash !== undefined && there.contentHash === write.replacesHash;
    if (isAsBefore && there.rev !== write.replaces) return this.#sendAgain(file, there.rev, error);
    if (write.sizeBytes === 0 && write.replaces === undefined) return this.#giveWay(file);
    await this.#keepBeside(file, parentOf(write.path), signal);
  }

  /** Throws `error`, after which it is tried again: then to replace `rev`, or what is not there. */
  async #sendAgain(file: PendingFile, rev: string | undefined, error: unknown): Promise<never> {
    file.write = { ...file.write, replaces: rev };
    await this.parts.journal.change(file.write);
    throw error;
  }

  /** An empty new file has nothing that could be lost. */
  async #giveWay(file: PendingFile): Promise<void> {
    await this.#forgetNew(file);
    await this.parts.journal.forget([file.write.id]);
    this.parts.pending.delete(file);
  }

  async #keepBeside(file: PendingFile, folder: Path, signal: AbortSignal): Promise<void> {
    const { journal, pending, state, log } = this.parts;
    const { write } = file;
    const copy = await this.#storeCopy(file, folder, signal);
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
  async #storeCopy(file: PendingFile, folder: Path, signal: AbortSignal): Promise<FileEntry | undefined> {
    const { write } = file;
    for (let number = 1; number <= COPIES_MAX; number++) {
      const path = join(folder, nameOf(conflictedCopyPath(write, number)));
      try {
        return await this.#store(write, path, { if: 'absent' }, signal);
      } catch (error) {
        const verdict = signal.aborted ? 'later' : verdictOn(error, file.failures);
        if (verdict === 'trouble' || verdict === 'later') throw error;
        if (verdict === 'refused' || verdict === 'homeless') {
          await this.#lose(file, error);
          return undefined;
        }
        const there = fileOf(await this.parts.base.stat(path, signal));
        if (there && isContentOf(there, write)) return there;
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

function fileOf(entry: Entry | undefined): FileEntry | undefined {
  return entry?.kind === 'file' ? entry : undefined;
}

function isContentOf(file: FileEntry, write: PendingWrite): boolean {
  return file.contentHash === write.contentHash && file.sizeBytes === write.sizeBytes;
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
