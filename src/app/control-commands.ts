import type { OpenDrive } from '../drive/drive.ts';
import { FileError } from '../drive/errors.ts';
import type { Files } from '../drive/files.ts';
import type { ControlOptions } from '../http/control.ts';
import { systemClock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Path } from '../util/path.ts';
import type { ServedDrive } from './drives.ts';
import {
  createJournalAdmin,
  type JournalAdmin,
  type JournaledDrive,
  type RunningWrites,
} from './journal-admin.ts';
import { createLockAdmin, type LockedDrive } from './lock-admin.ts';

/** Returns the commands of `davgate locks` and `davgate journal` on the drives of a running gateway. */
export function controlCommands(
  drives: ReadonlyMap<string, ServedDrive>,
  log: Log,
): Pick<ControlOptions, 'commands' | 'journal'> {
  const locked = new Map<string, LockedDrive>();
  const journaled = new Map<string, JournaledDrive>();
  for (const [name, { files, journal }] of drives) {
    locked.set(name, { locks: files.state.locks, commitPlaceholder: commitOn(files, log) });
    if (journal) journaled.set(name, { journal, running: runningWrites(files) });
  }
  return {
    commands: createLockAdmin(locked, systemClock),
    journal: createJournalAdmin(journaled, systemClock),
  };
}

/** Lists and handles the pending and lost writes of one drive; `undefined` if it has no journal. */
export function keptWritesOf(name: string, { files, journal }: ServedDrive): JournalAdmin | undefined {
  if (!journal) return undefined;
  return createJournalAdmin(new Map([[name, { journal, running: runningWrites(files) }]]), systemClock);
}

function runningWrites({ pending, write }: OpenDrive): RunningWrites {
  return {
    problemOf: (id) => pending?.problemOf(id),
    retry: async (id) => pending?.retry(id),
    discard: async (id) => (await pending?.discard(id)) ?? false,
    write: async (path, bytes, sizeBytes) => {
      await write(path, bytes, { mode: { if: 'absent' }, sizeBytes });
    },
  };
}

/**
 * Returns a function that commits the placeholder under a lock. If that fails, the state keeps it, and the lock can still be
 * removed.
 */
function commitOn(files: Files, log: Log): (path: Path) => Promise<void> {
  return async (path) => {
    try {
      await files.commitPlaceholder(path);
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
      log.warn('cannot commit a placeholder yet', { fault: error.fault, reason: error.message });
    }
  };
}
