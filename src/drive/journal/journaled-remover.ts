import type { Journal } from '../../state/journal.ts';
import type { Path } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Files, RemoveOptions } from '../files.ts';
import { isNewId, tagOf } from './overlay-entries.ts';
import type { PendingFiles } from './pending-files.ts';
import type { Sender } from './sender.ts';

interface JournaledRemoverDeps {
  /** The tree below the journal. */
  readonly base: Files;
  readonly journal: Journal;
  readonly pending: PendingFiles;
  readonly sender: Sender;
  readonly isDeletionPermanent: () => boolean;
  /** Forgets properties and times of the files with these ids, which were at `path`. */
  readonly forgetKept: (path: Path, ids: readonly string[]) => Promise<void>;
}

/** Removes files and folders that may have pending writes. */
export class JournaledRemover {
  constructor(private readonly deps: JournaledRemoverDeps) {}

  /** Removes `path`. Pending writes are dropped unsent, unless they must be recoverable from the service's trash. */
  async remove(path: Path, options: RemoveOptions): Promise<void> {
    const { base, pending, sender } = this.deps;
    const { rev, recoverable } = options;
    if (rev !== undefined) {
      // The service compares revisions, so the file has to land first.
      await sender.flush(pending.within(path));
      const entry = await base.stat(path);
      if (entry?.kind !== 'file' || tagOf(entry) !== rev) throw notAsExpected(path);
      return base.remove(path, { recoverable, rev: entry.rev });
    }
    if (pending.files === 0 || pending.within(path).length === 0) return base.remove(path, options);
    if (!recoverable && this.deps.isDeletionPermanent()) return this.#cancel(path, options);
    await sender.flush(pending.within(path));
    return base.remove(path, options);
  }

  async #cancel(path: Path, options: RemoveOptions): Promise<void> {
    const { base, journal, pending, sender, forgetKept } = this.deps;
    try {
      await this.#suspend(path);
      const isBelow = (await base.stat(path)) !== undefined;
      // The tree below first: if it fails, the journal still has the file.
      if (isBelow || pending.at(path).length === 0) await base.remove(path, options);
      const files = pending.within(path);
      const newIds = files.map(({ write }) => write.fileId).filter(isNewId);
      await journal.forget(files.map(({ write }) => write.id));
      for (const file of files) sender.remove(file);
      await forgetKept(path, newIds);
    } catch (error) {
      for (const file of pending.within(path)) {
        if (file.state === 'suspended') file.state = 'waiting';
        sender.offer(file);
      }
      throw error;
    }
  }

  /** Suspends all writes at `path` and below, and waits for the end of those being sent. */
  async #suspend(path: Path): Promise<void> {
    const { pending, sender } = this.deps;
    for (;;) {
      const files = pending.within(path);
      for (const file of files.filter(({ state }) => state === 'waiting')) {
        file.state = 'suspended';
        sender.withdraw(file);
      }
      const sending = files.filter(({ state }) => state === 'sending');
      if (sending.length === 0) return;
      await sender.settled(sending);
    }
  }
}

/** Returns the error for a path whose revision differs from the one that the client expects. */
export function notAsExpected(path: Path): FileError {
  return new FileError('changed', `${path} was changed meanwhile`);
}
