import type { Availability, EntryLocation } from '../../api/remote.ts';
import type { Journal } from '../../state/journal.ts';
import type { DriveState } from '../../state/state.ts';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { Path } from '../../util/path.ts';
import type { Announcer } from '../changes.ts';
import type { Fault } from '../errors.ts';
import type { FileIds } from '../file-ids.ts';
import type { Files, FolderEntry, NameSearch, Thumbnails } from '../files.ts';
import type { History } from '../history.ts';
import { PathLocks } from '../path-locks.ts';
import type { Spool } from '../spool/spool.ts';
import { JOURNAL_LIMITS, JournalCapacity, type JournalLimits } from './capacity.ts';
import { Delivery } from './delivery.ts';
import { Intake } from './intake.ts';
import { createJournaledFiles } from './journaled-files.ts';
import { createJournaledHistory } from './journaled-history.ts';
import { JournaledRemover } from './journaled-remover.ts';
import { Overlay } from './overlay.ts';
import { isNewId, OverlayEntries } from './overlay-entries.ts';
import { PendingFile, PendingFiles } from './pending-files.ts';
import { createPendingSearch } from './pending-search.ts';
import { createPendingThumbnails } from './pending-thumbnails.ts';
import { Sender } from './sender.ts';

export interface WriteBackDeps {
  /** The tree below, whose writes are committed at the service when they return. */
  readonly base: Files & { readonly history: History };
  /** The search of the tree below. */
  readonly nameSearch: NameSearch;
  readonly thumbnails: Thumbnails;
  readonly journal: Journal;
  readonly state: DriveState;
  readonly ids: FileIds;
  readonly clock: Clock;
  readonly log: Log;
  /** Spools the bodies that bypass the journal while the service is slow. */
  readonly spool?: Spool | undefined;
  /** How long a new empty file waits for its body, in ms. */
  readonly bodyWaitMs: number;
  /** Whether writes of this path bypass the journal: local files, and names that the service may refuse. */
  readonly goesThrough: (path: Path) => boolean;
  /** Returns where the folder with this id is at the service. */
  readonly locate: (folderId: string, signal: AbortSignal) => Promise<EntryLocation | undefined>;
  /** Records that a name was added to `folder` or removed. */
  readonly touch: (folder: FolderEntry) => void;
  readonly availability: Availability;
  /** Whether deletions are permanent. */
  readonly isDeletionPermanent: () => boolean;
  /** Forgets properties and times of the files with these ids, which were at `path`. */
  readonly forgetKept: (path: Path, ids: readonly string[]) => Promise<void>;
  readonly changes: Pick<Announcer, 'write'>;
  readonly limits?: Partial<JournalLimits>;
}

/** How much waits in the journal of a drive. */
export interface JournalDepth {
  readonly files: number;
  readonly bytes: number;
  /** Files in the lost-and-found folder, which the service has refused. */
  readonly lostFiles: number;
  /** The reason of failed writes; absent when none has failed. */
  readonly trouble?: Fault;
}

/** Administration of single pending writes. */
export interface PendingWrites {
  /** Returns why the last try of the write with this id failed. */
  problemOf(id: string): string | undefined;
  /** Sends it now, after the earlier writes of its path. Throws the failure. */
  retry(id: string): Promise<void>;
  /** Removes it with its bytes. Returns whether it was still pending. */
  discard(id: string): Promise<boolean>;
}

/** A drive whose writes are acknowledged when they are in the journal. */
export interface WriteBack {
  readonly files: Files;
  readonly nameSearch: NameSearch;
  readonly history: History;
  readonly thumbnails: Thumbnails;
  readonly pending: PendingWrites;
  /** Returns the revisions of the pending files below `folder`, by path. */
  revisionsBelow(folder: Path): ReadonlyMap<Path, string>;
  depth(): JournalDepth;
  /** Sends what it can until `over`; other writes are sent after the next start. */
  close(over: AbortSignal): Promise<void>;
}

/** Opens the journal with the pending writes of the last run. */
export async function openWriteBack(deps: WriteBackDeps): Promise<WriteBack> {
  const { base, journal, clock, log, changes } = deps;
  const pending = new PendingFiles((path) => changes.write(path));
  const shown = new OverlayEntries();
  const turns = new PathLocks();
  const delivery = new Delivery({ ...deps, pending });
  const { availability } = deps;
  const sender = new Sender({
    pending,
    clock,
    log,
    availability,
    deliver: (file, signal) => delivery.deliver(file, signal),
  });
  const overlay = new Overlay(base, journal, pending, shown);
  const capacity = new JournalCapacity(pending, { ...JOURNAL_LIMITS, ...deps.limits });
  const intake = new Intake({ ...deps, pending, overlay, sender, shown, capacity, turns });
  const { goesThrough, isDeletionPermanent, forgetKept, spool } = deps;
  const remover = new JournaledRemover({ base, journal, pending, sender, isDeletionPermanent, forgetKept });
  const files = createJournaledFiles({
    ...{ base, pending, overlay, intake, remover, sender, shown, capacity, turns, goesThrough },
    spool,
  });
  const depth = (): JournalDepth => {
    const { files, bytes, problem } = pending;
    return { files, bytes, lostFiles: journal.lostFiles, ...(problem && { trouble: problem.fault }) };
  };

  for (const write of await journal.all()) {
    // Due at once, because no body follows.
    const file = new PendingFile({ ...write, dueMs: 0 }, write.sizeBytes);
    file.wasSent = true;
    pending.add(file);
  }
  if (pending.files > 0) log.info('pending writes of the last run are in the journal', { ...depth() });
  for (const file of pending.all()) sender.offer(file);
  return {
    files,
    nameSearch: createPendingSearch(deps.nameSearch, pending, shown),
    history: createJournaledHistory({ base: base.history, pending, sender, turns }),
    thumbnails: createPendingThumbnails(deps.thumbnails, base, pending),
    pending: pendingWrites({ ...deps, pending, sender, turns }),
    revisionsBelow: (folder) => pending.revisionsBelow(folder),
    depth,
    async close(over) {
      await sender.close(over);
      if (pending.files > 0) log.warn('writes stay in the journal until the next start', { ...depth() });
    },
  };
}

interface PendingWritesDeps extends Pick<WriteBackDeps, 'journal' | 'forgetKept'> {
  readonly pending: PendingFiles;
  readonly sender: Sender;
  readonly turns: PathLocks;
}

function pendingWrites({ journal, forgetKept, pending, sender, turns }: PendingWritesDeps): PendingWrites {
  const find = (id: string): PendingFile | undefined => {
    for (const file of pending.all()) if (file.write.id === id) return file;
    return undefined;
  };
  const forget = async (file: PendingFile): Promise<boolean> => {
    await sender.settled([file]);
    const { id, fileId, path } = file.write;
    if (!find(id) || file.state !== 'waiting') return false;
    file.state = 'suspended';
    sender.withdraw(file);
    try {
      await journal.forget([id]);
    } catch (error) {
      file.state = 'waiting';
      sender.offer(file);
      throw error;
    }
    sender.remove(file);
    const next = pending.first(path);
    if (next) sender.offer(next);
    else if (isNewId(fileId)) await forgetKept(path, [fileId]);
    return true;
  };
  return {
    problemOf: (id) => find(id)?.problem?.message,
    async retry(id) {
      const file = find(id);
      if (!file) return;
      const queue = pending.at(file.write.path);
      await sender.flush(queue.slice(0, queue.indexOf(file) + 1));
    },
    async discard(id) {
      const file = find(id);
      return file ? turns.exclusive([file.write.path], () => forget(file)) : false;
    },
  };
}
