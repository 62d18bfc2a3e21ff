import type { EntryLocation } from '../../api/remote.ts';
import { BodyGone, type Journal, type PendingWrite } from '../../state/journal.ts';
import type { DriveState } from '../../state/state.ts';
import { ContentHasher } from '../../util/content-hash.ts';
import { splitName } from '../../util/file-name.ts';
import type { Log } from '../../util/log.ts';
import { join, keyOf, nameOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { FileIds } from '../file-ids.ts';
import type { Entry, FileEntry, Files, WriteMode } from '../files.ts';
import { failurePolicy } from './failure-policy.ts';
import { isNewId } from './overlay-entries.ts';
import type { PendingFile, PendingFiles } from './pending-files.ts';

export interface DeliveryDeps {
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
  constructor(private readonly deps: DeliveryDeps) {}

  /** Throws when the write has to be tried again. */
  async deliver(file: PendingFile, signal: AbortSignal): Promise<void> {
    try {
      await this.#send(file, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      const policy = failurePolicy(error, file.brokenCount);
      if (policy === 'folder-gone') await this.#followFolder(file, error, signal);
      else await this.#resolveFailure(file, error, signal);
    }
  }

  async #send(file: PendingFile, signal: AbortSignal): Promise<void> {
    const { write } = file;
    await this.#landed(file, file.landed ?? (await this.#store(write, write.path, modeOf(write), signal)));
  }

  async #resolveFailure(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const policy = failurePolicy(error, file.brokenCount);
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
    const { path, folderId } = file.write;
    const now = folderId === undefined ? undefined : await this.deps.locate(folderId, signal);
    if (now !== undefined && now !== 'outside' && keyOf(now) !== keyOf(parentOf(path))) {
      const there = await this.#settledAt(join(now, nameOf(path)), error, signal);
      // The write would hide a file that is newer.
      if (there && !isContinuedBy(there, file.write)) return this.#keepBoth(file, now, signal);
      await this.#moveWrites(file, now, error);
    }
    try {
      await this.#makeFolder(parentOf(file.write.path), signal);
      await this.#send(file, signal);
    } catch (second) {
      if (signal.aborted) throw second;
      await this.#resolveFailure(file, second, signal);
    }
  }

  /** Returns the entry at `path` in the tree below. Throws `error` when a pending write of `path` may be changing it. */
  async #settledAt(path: Path, error: unknown, signal: AbortSignal): Promise<Entry | undefined> {
    const { base, pending } = this.deps;
    const before = [...pending.at(path)];
    const there = await base.stat(path, signal);
    const now = pending.at(path);
    const isChanging = now.some(({ state, landed }) => state === 'sending' || landed !== undefined);
    if (isChanging || before.some((file) => !now.includes(file))) throw error;
    return there;
  }

  /** Moves `file` and the other writes of its path to `folder`. Throws `error` when `file` has to wait there. */
  async #moveWrites(file: PendingFile, folder: Path, error: unknown): Promise<void> {
    const { pending, journal, log } = this.deps;
    const { path } = file.write;
    // A request is about to remove or replace one of them, and expects it at its path.
    if (pending.at(path).some(({ state }) => state === 'suspended')) throw error;
    const moved = pending.move(path, join(folder, nameOf(path)));
    await Promise.all(moved.map(({ write }) => journal.change(write)));
    log.info('a pending write follows its folder, which was moved', { path, folder });
    if (!pending.isNext(file)) throw error;
  }

  async #makeFolder(folder: Path, signal: AbortSignal): Promise<void> {
    const { base, log } = this.deps;
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
    const { base } = this.deps;
    let folder = parentOf(file.write.path);
    if (folder === ROOT) return this.#lose(file, error);
    do folder = parentOf(folder);
    while (folder !== ROOT && (await base.stat(folder, signal))?.kind !== 'folder');
    await this.#storeBeside(file, folder, signal);
  }

  async #store(write: PendingWrite, path: Path, mode: WriteMode, signal: AbortSignal): Promise<FileEntry> {
    const { sizeBytes, modifiedMs } = write;
    const body = verifiedBody(this.deps.journal, write);
    const { entry } = await this.deps.base.write(path, body, { mode, sizeBytes, modifiedMs }, signal);
    if (entry.kind !== 'file') throw new Error('a write returned a folder');
    return entry;
  }

  /** Removes a write that has landed as `entry`; later writes of the path replace `entry`. */
  async #landed(file: PendingFile, entry: FileEntry): Promise<void> {
    const { journal, pending } = this.deps;
    const { id, path } = file.write;
    file.landed = entry;
    await this.#keepTime(file.write, entry);
    // A write that was accepted at another path than the others has an id of its own.
    const fileIds = [file, ...pending.at(path)].map(({ write }) => write.fileId);
    for (const fileId of new Set(fileIds)) await this.#takeProperties(fileId, entry.id);
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

  /** Gives the file with the id `to` the properties of a write that had the id `from`. */
  async #takeProperties(from: string, to: string): Promise<void> {
    if (isNewId(from)) await this.deps.ids.rename(from, to);
    else if (from !== to) await this.#copyProperties(from, to);
  }

  /**
   * Copies the properties to a new file, which a write has made because its file was moved away elsewhere. The moved
   * file keeps them too, as it may come back.
   */
  async #copyProperties(from: string, to: string): Promise<void> {
    const { properties } = this.deps.state;
    if (!(await properties.of([to])).has(to)) await properties.copy(from, to);
  }

  /** Sets the modification time, which may have been changed while the write was sent. */
  async #keepTime({ modifiedMs }: PendingWrite, entry: FileEntry): Promise<void> {
    if (Math.floor(entry.modifiedMs / 1000) === Math.floor(modifiedMs / 1000)) return;
    try {
      await this.deps.base.setModified(entry.path, modifiedMs);
    } catch (error) {
      // It has just been deleted.
      if (!(error instanceof FileError && error.fault === 'not-found')) throw error;
    }
  }

  /** Resolves a conflict with whatever is at the path now. */
  async #resolveConflict(file: PendingFile, error: unknown, signal: AbortSignal): Promise<void> {
    const { base } = this.deps;
    const { write } = file;
    const found = await base.stat(write.path, signal);
    const there = fileOf(found);
    // An earlier try has stored it, or another client has stored the same.
    if (there && isContentOf(there, write)) return this.#landed(file, there);
    // The file was deleted elsewhere: an edit survives that.
    if (!found && write.replaces !== undefined) return this.#sendAgain(file, undefined, error);
    if (!found) throw error;
    // The file it replaces, with a new revision because it was moved elsewhere.
    if (there && isReplacedBy(there, write) && there.rev !== write.replaces)
      return this.#sendAgain(file, there.rev, error);
    await this.#keepBoth(file, parentOf(write.path), signal);
  }

  /** Keeps a write beside the other entry that has taken its place in `folder`. */
  async #keepBoth(file: PendingFile, folder: Path, signal: AbortSignal): Promise<void> {
    const { sizeBytes, replaces } = file.write;
    if (sizeBytes === 0 && replaces === undefined) return this.#dropEmpty(file);
    await this.#storeBeside(file, folder, signal);
  }

  /** Throws `error`, so that the write is tried again, to replace `rev`; without one to make a new file. */
  async #sendAgain(file: PendingFile, rev: string | undefined, error: unknown): Promise<never> {
    file.write = { ...file.write, replaces: rev };
    await this.deps.journal.change(file.write);
    throw error;
  }

  /** Drops a new empty file, which has no content to lose. */
  async #dropEmpty(file: PendingFile): Promise<void> {
    await this.#forgetNew(file);
    await this.deps.journal.forget([file.write.id]);
    this.deps.pending.delete(file);
  }

  async #storeBeside(file: PendingFile, folder: Path, signal: AbortSignal): Promise<void> {
    const { journal, pending, state, log } = this.deps;
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
        const policy = signal.aborted ? 'retry' : failurePolicy(error, file.brokenCount);
        if (policy === 'pause-all' || policy === 'retry') throw error;
        if (policy === 'refused' || policy === 'folder-gone') {
          await this.#lose(file, error);
          return undefined;
        }
        const there = fileOf(await this.deps.base.stat(path, signal));
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
    const { journal, pending, log } = this.deps;
    const { write } = file;
    const reason = error instanceof Error ? error.message : String(error);
    const keptAt = await journal.lose(write, reason).catch(undefinedIfGone);
    await this.#forgetNew(file);
    pending.delete(file);
    // The journal removed it and then reported a failure.
    if (keptAt === undefined)
      return log.info('a pending write has been removed already', { path: write.path });
    log.error(
      'the storage service refuses an acknowledged write; its bytes are in the lost-and-found folder',
      {
        path: write.path,
        keptAt,
        reason,
      },
    );
  }

  /** Forgets the properties of a new file that does not land, unless another write continues it. */
  async #forgetNew(file: PendingFile): Promise<void> {
    const { pending, state } = this.deps;
    const { path, fileId } = file.write;
    const isContinued = pending.at(path).some((other) => other !== file && other.write.fileId === fileId);
    if (isNewId(fileId) && !isContinued) await state.properties.forget([fileId]);
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

/** Returns whether `file` has the content that `write` replaces: a move at the service changes only its revision. */
function isReplacedBy(file: FileEntry, write: PendingWrite): boolean {
  return file.contentHash !== undefined && file.contentHash === write.replacesHash;
}

/** Returns whether `write` is the next version of `there`, or has landed as `there`. */
function isContinuedBy(there: Entry, write: PendingWrite): boolean {
  if (there.kind !== 'file') return false;
  return there.rev === write.replaces || isReplacedBy(there, write) || isContentOf(there, write);
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
    throw unreadable(write, error);
  }
  if (hasher.digest() !== write.contentHash)
    throw new FileError('checksum', `the bytes of ${write.path} were damaged in the journal`);
}

function undefinedIfGone(error: unknown): undefined {
  if (!(error instanceof BodyGone)) throw error;
}

/** Returns the failure of a write whose body the journal could not read. A failing disk is `broken`, which has a limit. */
function unreadable({ path }: PendingWrite, cause: unknown): FileError {
  if (cause instanceof BodyGone)
    return new FileError('checksum', `the bytes of ${path} are missing from the journal`, { cause });
  const why = cause instanceof Error ? cause.message : String(cause);
  return new FileError('broken', `the bytes of ${path} cannot be read from the journal: ${why}`, { cause });
}

/**
 * Returns the path of a conflicted copy, named as the service's own programs do. The same write always gets the same
 * names, so that its copy is recognised after a kill.
 */
function conflictedCopyPath({ path, acceptedMs }: PendingWrite, number: number): Path {
  const name = splitName(nameOf(path));
  const when = new Date(acceptedMs).toISOString().slice(0, 19).replace('T', ' ').replaceAll(':', '.');
  const mark = ` (conflicted copy ${when}${number > 1 ? ` ${number}` : ''})`;
  const extension = cut(name.extension, NAME_LENGTH_MAX - mark.length);
  const stem = cut(name.stem, NAME_LENGTH_MAX - mark.length - extension.length);
  return join(parentOf(path), `${stem}${mark}${extension}`);
}

/** Cuts `text`, but never in the middle of a character. */
function cut(text: string, lengthMax: number): string {
  return text.slice(0, lengthMax).replace(/[\ud800-\udbff]$/, '');
}
