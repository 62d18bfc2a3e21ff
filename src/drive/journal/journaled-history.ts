import { keyOf, type Path } from '../../util/path.ts';
import type { History } from '../history.ts';
import type { PathLocks } from '../path-locks.ts';
import type { PendingFiles } from './pending-files.ts';
import type { Sender } from './sender.ts';

interface JournaledHistoryDeps {
  /** The history of the tree below the journal. */
  readonly base: History;
  readonly pending: PendingFiles;
  readonly sender: Sender;
  /** Changes of one path take turns. */
  readonly turns: PathLocks;
}

/**
 * The history of a drive with a journal. A pending write is no version yet: it lands first, so that it is among the
 * versions and a restore does not lose it.
 */
export function createJournaledHistory({ base, pending, sender, turns }: JournaledHistoryDeps): History {
  /** Resolves when no write is pending at `path` and below. Throws what hinders a write. */
  const landed = async (path: Path): Promise<void> => {
    if (pending.files > 0) await sender.flush(pending.within(path));
  };
  const afterLanding = <T>(path: Path, work: () => Promise<T>): Promise<T> =>
    turns.exclusive([path], async () => {
      await landed(path);
      return work();
    });
  return {
    async versions(path, signal) {
      await landed(path);
      return base.versions(path, signal);
    },
    version: (path, rev, signal) => base.version(path, rev, signal),
    read: (file, range, signal) => base.read(file, range, signal),
    restore: (path, rev) => afterLanding(path, () => base.restore(path, rev)),
    async trash(folder, signal) {
      const { items, leftOut } = await base.trash(folder, signal);
      const present = new Set(pending.in(folder).map((file) => keyOf(file.path)));
      return { items: items.filter(({ path }) => !present.has(keyOf(path))), leftOut };
    },
    undelete: (path) => afterLanding(path, () => base.undelete(path)),
  };
}
