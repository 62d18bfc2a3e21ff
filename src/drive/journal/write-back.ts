import type { Availability, EntryLocation } from '../../api/remote.ts';
import type { Journal } from '../../state/journal.ts';
import type { DriveState } from '../../state/state.ts';
import type { Clock } from '../../util/clock.ts';
import type { Log } from '../../util/log.ts';
import type { Path } from '../../util/path.ts';
import type { Fault } from '../errors.ts';
import type { Files, FolderEntry } from '../files.ts';
import { Gaps } from '../guarded-remote.ts';
import { JOURNAL_LIMITS, type JournalLimits, JournalRoom } from './capacity.ts';
import { Landing } from './delivery.ts';
import { FileIds } from './file-ids.ts';
import { Accepting } from './intake.ts';
import { createJournaledFiles } from './journaled-files.ts';
import { PendingReading } from './overlay.ts';
import { isNewId, ShownEntries } from './overlay-entries.ts';
import { PendingFile, PendingFiles } from './pending-files.ts';
import { Drain } from './sender.ts';

export interface WriteBackParts {
  /** The tree below, whose writes are at the service when they return. */
  readonly base: Files;
  readonly journal: Journal;
  readonly state: DriveState;
  readonly clock: Clock;
  readonly log: Log;
  /** How long an empty file waits for its body, ms. */
  readonly holdMs: number;
  /** What is never at the service or may be refused by it: its writes go straight to the tree below. */
  readonly goesThrough: (path: Path) => boolean;
  /** Where the folder with this id is now, as the service says. */
  readonly locate: (folderId: string, signal: AbortSignal) => Promise<EntryLocation | undefined>;
  /** A name has come to `folder`, or has gone. */
  readonly touch: (folder: FolderEntry) => void;
  readonly availability: Availability;
  /** Whether what is deleted is gone for good. */
  readonly isDeletionPermanent: () => boolean;
  /** Forgets what was kept for the files with these ids, which were at `path`. */
  readonly forgetKept: (path: Path, ids: readonly string[]) => Promise<void>;
  readonly limits?: Partial<JournalLimits>;
}

/** What waits in the journal of a drive. */
export interface JournalDepth {
  readonly files: number;
  readonly bytes: number;
  /** In the lost-and-found folder: refused by the service. */
  readonly lostFiles: number;
  /** What hinders writes that were tried; `undefined`: nothing is known to. */
  readonly trouble?: Fault;
}

/** What a person may do with single pending writes. */
export interface PendingWrites {
  /** What hinders the write with this id, as far as it was tried. */
  problemOf(id: string): string | undefined;
  /** Sends it now, after those before it. Throws what hinders it. */
  retry(id: string): Promise<void>;
  /** Forgets it with its bytes. Whether it was still there. */
  discard(id: string): Promise<boolean>;
}

/** A drive whose writes are acknowledged when they are in the journal. */
export interface WriteBack {
  readonly files: Files;
  /** As the protocol is to use it: properties are found under the id that a file was shown with. */
  readonly state: DriveState;
  readonly pending: PendingWrites;
  depth(): JournalDepth;
  /** Sends what it can until `over`; the rest is sent after the next start. */
  close(over: AbortSignal): Promise<void>;
}

/** Takes up what the last run left, and goes on from there. */
export async function openWriteBack(parts: WriteBackParts): Promise<WriteBack> {
  const { base, journal, state, clock, log } = parts;
  const pending = new PendingFiles();
  const shown = new ShownEntries();
  const ids = new FileIds();
  const turns = new Gaps();
  const landing = new Landing({ ...parts, pending, ids });
  const { availability } = parts;
  const drain = new Drain({
    pending,
    clock,
    log,
    availability,
    land: (file, signal) => landing.land(file, signal),
  });
  const reading = new PendingReading(base, journal, pending, shown);
  const room = new JournalRoom(pending, { ...JOURNAL_LIMITS, ...parts.limits });
  const accepting = new Accepting({ ...parts, pending, reading, drain, shown, room, turns });
  const files = createJournaledFiles({ ...parts, pending, reading, accepting, drain, shown, room, turns });
  const depth = (): JournalDepth => {
    const { files, bytes, problem } = pending;
    return { files, bytes, lostFiles: journal.lostFiles, ...(problem && { trouble: problem.fault }) };
  };

  for (const write of await journal.all()) {
    // Due at once: no body is to follow any more.
    const file = new PendingFile({ ...write, dueMs: 0 }, write.sizeBytes);
    file.wasSent = true;
    pending.add(file);
  }
  if (pending.files > 0) log.info('writes of the last run wait in the journal', { ...depth() });
  for (const file of pending.all()) drain.offer(file);
  return {
    files,
    state: ids.follow(state),
    pending: pendingWrites({ ...parts, pending, drain, turns }),
    depth,
    async close(over) {
      await drain.close(over);
      if (pending.files > 0) log.warn('writes stay in the journal until the next start', { ...depth() });
    },
  };
}

interface PendingWritesParts extends Pick<WriteBackParts, 'journal' | 'forgetKept'> {
  readonly pending: PendingFiles;
  readonly drain: Drain;
  readonly turns: Gaps;
}

function pendingWrites({ journal, forgetKept, pending, drain, turns }: PendingWritesParts): PendingWrites {
  const find = (id: string): PendingFile | undefined => {
    for (const file of pending.all()) if (file.write.id === id) return file;
    return undefined;
  };
  const forget = async (file: PendingFile): Promise<boolean> => {
    await drain.settled([file]);
    const { id, fileId, path } = file.write;
    if (!find(id) || file.state !== 'waiting') return false;
    file.state = 'kept';
    drain.withdraw(file);
    try {
      await journal.forget([id]);
    } catch (error) {
      file.state = 'waiting';
      drain.offer(file);
      throw error;
    }
    pending.delete(file);
    const next = pending.first(path);
    if (next) drain.offer(next);
    else if (isNewId(fileId)) await forgetKept(path, [fileId]);
    return true;
  };
  return {
    problemOf: (id) => find(id)?.problem?.message,
    async retry(id) {
      const file = find(id);
      if (!file) return;
      const queue = pending.at(file.write.path);
      await drain.flush(queue.slice(0, queue.indexOf(file) + 1));
    },
    async discard(id) {
      const file = find(id);
      return file ? turns.open([file.write.path], () => forget(file)) : false;
    },
  };
}
