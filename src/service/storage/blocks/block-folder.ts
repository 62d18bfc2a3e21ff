import { join } from 'node:path';
import { errorCodeOf } from '../../../util/error-code.ts';
import { type BlockPlace, LostBlockError } from './block-place.ts';
import type { Disk } from './disk.ts';

/** Error codes of the file system that mean lost bytes. */
const LOSS: Readonly<Record<string, string>> = {
  ENOENT: 'its file is missing',
  EIO: 'the disk cannot read it',
};

/**
 * Returns the folder `blocks` of a data directory, in which a block's name is its hash. It has no folders, so that one
 * fsync of it makes all recent blocks durable; simultaneous callers share that fsync.
 */
export function blockFolder(dataDirectory: string, disk: Disk): BlockPlace {
  const folder = join(dataDirectory, 'blocks');
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;

  function startSync(): Promise<void> {
    next = undefined;
    running = disk.syncFolder(folder).finally(() => {
      running = undefined;
    });
    return running;
  }

  return {
    isRemote: false,
    async prepare() {
      await disk.makeFolder(folder);
      await disk.syncFolder(dataDirectory);
    },
    newName: (hash) => hash,
    async keep(name, { path, file }) {
      await file.sync();
      await file.close();
      await disk.rename(path, join(folder, name));
    },
    sync() {
      if (!running) return startSync();
      // The sync under way may have begun before the caller's rename: wait for one that begins after it.
      next ??= running.then(startSync, startSync);
      return next;
    },
    async read(name, sizeBytes, into, start) {
      try {
        return await disk.read(join(folder, name), sizeBytes, into, start);
      } catch (failure) {
        const why = LOSS[errorCodeOf(failure)];
        throw why === undefined ? failure : new LostBlockError(why, { cause: failure });
      }
    },
    remove: (name) => disk.remove(join(folder, name)),
    async *names() {
      try {
        yield* disk.names(folder);
      } catch (failure) {
        if (errorCodeOf(failure) !== 'ENOENT') throw failure;
      }
    },
    close: () => Promise.resolve(),
  };
}
