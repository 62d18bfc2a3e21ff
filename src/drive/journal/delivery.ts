import type { EntryLocation } from '../../api/remote.ts';
import { BodyGone, type Journal, type PendingWrite } from '../../state/journal.ts';
import type { DriveState } from '../../state/state.ts';
import { ContentHasher } from '../../util/content-hash.ts';
import type { Log } from '../../util/log.ts';
import { join, keyOf, nameOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Entry, FileEntry, Files, WriteMode } from '../files.ts';
import { failurePolicy } from './failure-policy.ts';
import type { FileIds } from './file-ids.ts';
import { isNewId } from './overlay-entries.ts';
import type { PendingFile, PendingFiles } from './pending-files.ts';

export interface DeliveryParts {
  /** The tree below the journal. */
  readonly base: Files;
  readonly journal: Journal;
  readonly pending: PendingFiles;
  readonly state: DriveState;
  readonly ids: FileIds;
  readonly log: Log;
  /** Returns where the folder with this id is at the service. */
  readonly locate: (folderId: string, signal: AbortSignal) => Promise<EntryLocation | undefined>;
}

/** Maximum number of names that are tried for a conflicted copy. */
const COPIES_MAX = 100;

/** Maximum length of a name at the service, in characters. */
const NAME_LENGTH_MAX = 255;

/** Delivers pending writes to the service, or to the lost-and-found folder when the service refuses them. */
export class Delivery {
  constructor(private readonly parts: DeliveryParts) {}

  /** Throws when the write has to be tried again. */
  async deliver(file: PendingFile, signal: AbortSignal): Promise<void> {
    try {
      await this.#send(file, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const policy = failurePolicy(error, file.failures);
      if (policy === 'folder-gone') await this.#followFolder(file, error, signal);
      else await this.#resolveFailure(file, error, signal);
    }
  }

  async #send(file: PendingFile, signal: AbortSignal): Promise<void> {
    const { write } = file;
    await this.#landed(file, file.landed ?? (await this.#store(write, write.path, modeOf(write), signal)));
  }

  async #resolveFailure(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const policy = failurePolicy(error, file.failures);
    if (policy === 'conflict') await this.#resolveConflict(file, error, signal);
    else if (policy === 'folder-gone') await this.#storeAbove(file, error, signal);
    else if (policy === 'refused') await this.#lose(file, error);
    else throw error;
  }

  /**
   * Sends a write whose folder is gone. If the folder was moved within the drive, its writes follow it. If it was
   * deleted, or moved out of the drive's root, where davgate must not write, it is made again, as the service itself
   * does for an upload.
   */
  async #followFolder(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const { pending, journal, locate, log } = this.parts;
    const { path, folderId } = file.write;
    const folder = parentOf(path);
    const now = folderId === undefined ? undefined : await locate(folderId, signal);
    if (now !== undefined && now !== 'outside' && keyOf(now) !== keyOf(folder)) {
      const moved = pending.move(path, join(now, nameOf(path)));
      await Promise.all(moved.map(({ write }) => journal.change(write)));
      log.info('a pending write follows its folder, which was moved', { path, folder: now });
      // Another write of the new path comes first.
      if (pending.first(file.write.path) !== file) throw error;
    }
    try {
      await this.#makeFolder(parentOf(file.write.path), signal);
      await this.#send(file, signal);
    } catch (second) {
      if (signal.aborted) throw second;
      await this.#resolveFailure(file, second, signal);
    }
  }

  async #makeFolder(folder: Path, signal: AbortSignal): Promise<void> {
    const { base, log } = this.parts;
    if (folder === ROOT || (await base.stat(folder, signal))?.kind === 'folder') return;
    await this.#makeFolder(parentOf(folder), signal);
    try {
      await base.createFolder(folder);
      log.info('a folder that is gone is made again for a pending write', { folder });
    } catch (error) {
      // Another client was quicker, or a file is there: the write finds out.
      if (!(error instanceof FileError && error.fault === 'exists')) throw error;
    }
  }

  /** Stores a write in the nearest folder above when a file has taken the place of its folder. */
  async #storeAbove(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const { base } = this.parts;
    let folder = parentOf(file.write.path);
    if (folder === ROOT) return this.#lose(file, error);
    do folder = parentOf(folder);
    while (folder !== ROOT && (await base.stat(folder, signal))?.kind !== 'folder');
    await this.#storeBeside(file, folder, signal);
  }

  async #store(write: PendingWrite, path: Path, mode: WriteMode, signal: AbortSignal): Promise<FileEntry> {
    const { sizeBytes, modifiedMs } = write;
    const body = verifiedBody(this.parts.journal, write);
    const { entry } = await this.parts.base.write(path, body, { mode, sizeBytes, modifiedMs }, signal);
    if (entry.kind !== 'file') throw new Error('a write returned a folder');
    return entry;
  }

  /** Removes a write that has landed as `entry`; later writes of the path replace `entry`. */
  async #landed(file: PendingFile, entry: FileEntry): Promise<void> {
    const { journal, pending, state, ids } = this.parts;
    const { id, path, fileId } = file.write;
    file.landed = entry;
    await this.#keepTime(file.write, entry);
    if (isNewId(fileId)) {
      ids.renamed(fileId, entry.id);
      await state.properties.rename(fileId, entry.id);
    } else if (entry.id !== fileId) await this.#copyProperties(fileId, entry.id);
    // There is no await between here and the journal: no write of the path is missed.
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
   * Copies the properties to a new file, which a write has made because its file was moved away elsewhere. The moved
   * file keeps them too, as it may come back.
   */
  async #copyProperties(from: string, to: string): Promise<void> {
    const { properties } = this.parts.state;
    if (!(await properties.of([to])).has(to)) await properties.copy(from, to);
  }

  /** Sets the modification time, which may have been changed while the write was sent. */
  async #keepTime({ modifiedMs }: PendingWrite, entry: FileEntry): Promise<void> {
    if (Math.floor(entry.modifiedMs / 1000) === Math.floor(modifiedMs / 1000)) return;
    try {
      await this.parts.base.setModified(entry.path, modifiedMs);
    } catch (error) {
      // It has just been deleted.
      if (!(error instanceof FileError && error.fault === 'not-found')) throw error;
    }
  }

  /** Resolves a conflict with whatever is at the path now. */
  async #resolveConflict(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const { base } = this.parts;
    const { write } = file;
    const found = await base.stat(write.path, signal);
    const there = fileOf(found);
    // An earlier try has stored it, or another client has stored the same.
    if (there && isContentOf(there, write)) return this.#landed(file, there);
    // The file was deleted elsewhere: an edit survives that.
    if (!found && write.replaces !== undefined) return this.#sendAgain(file, undefined, error);
    if (!found) throw error;
    // The file it replaces, with a new revision because it was moved elsewhere.
    const isAsBefore = there?.contentHash !== undefined && there.contentHash === write.replacesHash;
    if (isAsBefore && there.rev !== write.replaces) return this.#sendAgain(file, there.rev, error);
    if (write.sizeBytes === 0 && write.replaces === undefined) return this.#dropEmpty(file);
    await this.#storeBeside(file, parentOf(write.path), signal);
  }

  /** Throws `error`, so that the write is tried again, to replace `rev`; without one to make a new file. */
  async #sendAgain(file: PendingFile, rev: string | undefined, error: unknown): Promise<never> {
    file.write = { ...file.write, replaces: rev };
    await this.parts.journal.change(file.write);
    throw error;
  }

  /** Drops a new empty file, which has no content to lose. */
  async #dropEmpty(file: PendingFile): Promise<void> {
    await this.#forgetNew(file);
    await this.parts.journal.forget([file.write.id]);
    this.parts.pending.delete(file);
  }

  async #storeBeside(file: PendingFile, folder: Path, signal: AbortSignal): Promise<void> {
    const { journal, pending, state, log } = this.parts;
    const { write } = file;
    const copy = await this.#storeCopy(file, folder, signal);
    if (!copy) return;
    await state.properties.copy(write.fileId, copy.id);
    await this.#forgetNew(file);
    await journal.forget([write.id]);
    pending.delete(file);
    log.warn('a file was changed elsewhere before its pending write landed; both are kept', {
      path: write.path,
      copy: copy.path,
    });
  }

  /** Returns the copy; `undefined` when the service refuses it and it is in the lost-and-found folder. */
  async #storeCopy(file: PendingFile, folder: Path, signal: AbortSignal): Promise<FileEntry | undefined> {
    const { write } = file;
    for (let number = 1; number <= COPIES_MAX; number++) {
      const path = join(folder, nameOf(conflictedCopyPath(write, number)));
      try {
        return await this.#store(write, path, { if: 'absent' }, signal);
      } catch (error) {
        const policy = signal.aborted ? 'retry' : failurePolicy(error, file.failures);
        if (policy === 'pause-all' || policy === 'retry') throw error;
        if (policy === 'refused' || policy === 'folder-gone') {
          await this.#lose(file, error);
          return undefined;
        }
        const there = fileOf(await this.parts.base.stat(path, signal));
        if (there && isContentOf(there, write)) return there;
      }
    }
    await this.#lose(
      file,
      new Error('the file was changed elsewhere, and no name for a conflicted copy is free'),
    );
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
      'the storage service refuses an acknowledged write; its bytes are in the lost-and-found folder',
      {
        path: write.path,
        keptAt,
        reason,
      },
    );
  }

  /** Forgets the properties of a new file that does not land, unless a later write continues it. */
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

/** Yields the bytes of `write`; they end without an error only if they are the bytes that were acknowledged. */
export async function* verifiedBody(journal: Journal, write: PendingWrite): AsyncIterable<Uint8Array> {
  const hasher = new ContentHasher();
  try {
    for await (const piece of journal.read(write.id)) {
      hasher.update(piece);
      yield piece;
    }
  } catch (error) {
    if (!(error instanceof BodyGone)) throw error;
    throw new FileError('checksum', `the bytes of ${write.path} are missing from the journal`, {
      cause: error,
    });
  }
  if (hasher.digest() !== write.contentHash)
    throw new FileError('checksum', `the bytes of ${write.path} were damaged in the journal`);
}

/**
 * Returns the path of a conflicted copy, named as the service's own programs do. The same write always gets the same
 * names, so that its copy is recognised after a kill.
 */
function conflictedCopyPath({ path, acceptedMs }: PendingWrite, number: number): Path {
  const name = nameOf(path);
  const dot = name.lastIndexOf('.') > 0 ? name.lastIndexOf('.') : name.length;
  const when = new Date(acceptedMs).toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '.');
  const mark = ` (conflicted copy ${when}${number > 1 ? ` ${number}` : ''})`;
  const extension = cut(name.slice(dot), NAME_LENGTH_MAX - mark.length);
  const stem = cut(name.slice(0, dot), NAME_LENGTH_MAX - mark.length - extension.length);
  return join(parentOf(path), `${stem}${mark}${extension}`);
}

/** Cuts `text`, but never in the middle of a character. */
function cut(text: string, lengthMax: number): string {
  return text.slice(0, lengthMax).replace(/[\ud800-\udbff]$/, '');
}
