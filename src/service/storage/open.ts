import { randomBytes } from 'node:crypto';
import { dirname, join, resolve } from 'node:path';
import type { Clock } from '../../util/clock.ts';
import { errorCodeOf } from '../../util/error-code.ts';
import type { Log } from '../../util/log.ts';
import { makeFolder } from '../../util/make-folder.ts';
import type { MigrationProgress } from '../../util/sqlite/migrations.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { assembled } from './assembled.ts';
import { blockPlaces } from './blocks/block-places.ts';
import { BlockStore } from './blocks/block-store.ts';
import type { BucketAccess } from './blocks/bucket/bucket-address.ts';
import { Contents } from './blocks/contents.ts';
import { type Disk, localDisk } from './blocks/disk.ts';
import { DiskReserve, type Reserve } from './blocks/reserve.ts';
import { DataDirectoryError } from './errors.ts';
import { localStorage, markClosed } from './local-storage.ts';
import { SqliteCommitter } from './sqlite-committer.ts';
import type { Storage } from './storage.ts';
import { openDatabase } from './storage-database.ts';
import type { Store } from './tree/entry-writes.ts';
import { expectFinished } from './unfinished-copy.ts';

export interface StorageOptions {
  /**
   * Directory of `storage.sqlite` and of the folders `blocks` and `incoming`; created if missing. For one process at a
   * time.
   */
  readonly dataDirectory: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the id for a new file or folder: `id:` and 22 base64url characters, case-sensitive. */
  readonly mintId?: () => string;
  /** File system of the block files. */
  readonly disk?: Disk;
  /** A bucket for new blocks, instead of the data directory. Always the same one from its first use on. */
  readonly bucket?: BucketAccess;
  /** How long a commit may wait for earlier ones, in ms. Default: a second, as at the real service. */
  readonly commitWaitMs?: number;
  /** Rows of removed trees that one transaction clears away. Default: 200. */
  readonly removedRowsMax?: number;
  /** Rows of a large move or copy that one transaction creates; a smaller one is done at once. Default: 50. */
  readonly stagedRowsMax?: number;
}

/** Opens a data directory, which may be empty. Throws `DataDirectoryError`. */
export async function openStorage(options: StorageOptions): Promise<Storage> {
  const { dataDirectory, clock, log, disk = localDisk } = options;
  expectFinished(dataDirectory);
  await makeDirectory(dataDirectory, disk);
  const database = await openDatabase(join(dataDirectory, 'storage.sqlite'), {
    onProgress: upgradeReport(log),
    onOrphanedLog: (keptAt) =>
      log.error('found a write-ahead log without its database; it is kept under another name', {
        keptAt,
      }),
  });
  try {
    const settings = settingsOf(database);
    const { directoryTag, cursorKey } = settings;
    const contents = new Contents(database);
    const blocks = new BlockStore(
      await blockPlaces({ dataDirectory, disk, contents, directoryTag, access: options.bucket }),
      contents,
    );
    await blocks.prepare();
    markClosed(database, false, log);
    const parts = assembled({
      database,
      contents,
      blocks,
      directoryTag,
      cursorKey,
      mintId: options.mintId,
      clock,
      log,
      stagedRowsMax: options.stagedRowsMax,
      mustSearchBlocks: !settings.closedCleanly,
      commits: (ticks, committed) => {
        const committer = new SqliteCommitter(database, ticks, clock, committed, {
          waitMs: options.commitWaitMs,
          removedRows: options.removedRowsMax,
        });
        return { committer, reserve: new DiskReserve(dataDirectory, disk, committer) };
      },
    });
    const { store, reserve, background } = parts;
    background.start('removing deleted entries', clearAway(store, reserve));
    background.start('keeping space for removals', reserve.fill());
    return localStorage(parts);
  } catch (failure) {
    database.close();
    throw explained(failure, dataDirectory);
  }
}

/**
 * Logs the progress of the upgrade of a data directory. A large one takes a minute, during which no call is answered.
 */
function upgradeReport(log: Log): (progress: MigrationProgress) => void {
  const shown = (count: number) => count.toLocaleString('en-US');
  return ({ what, unit, done, total }) => {
    log.info(`upgrading the ${what}: ${shown(done)} of ${shown(total)} ${unit}`);
  };
}

/** Returns the error for the operator that a failure of the file system or of SQLite becomes. */
function explained(failure: unknown, dataDirectory: string): unknown {
  const code = errorCodeOf(failure);
  if (code === '') return failure;
  const { path = dataDirectory } = failure as NodeJS.ErrnoException; // the file system's own errors name it
  return new DataDirectoryError(
    'unusable',
    `${path} cannot be used (${code}): check the folder, its permissions and the free space on its disk`,
    { cause: failure },
  );
}

/** Creates the folder, and syncs its parents so that it survives a loss of power. */
async function makeDirectory(dataDirectory: string, disk: Disk): Promise<void> {
  const directory = resolve(dataDirectory);
  try {
    for (const made of makeFolder(directory)) await disk.syncFolder(dirname(made));
  } catch (failure) {
    throw new DataDirectoryError(
      'unusable',
      `${directory} cannot be created (${errorCodeOf(failure)}): use a folder that this user may write to`,
      { cause: failure },
    );
  }
}

interface Settings {
  readonly directoryTag: string;
  readonly cursorKey: Buffer;
  readonly closedCleanly: boolean;
}

/** Returns the settings of a data directory; creates them in a new one. */
function settingsOf(database: SqliteDatabase): Settings {
  const find = database.prepare<[string], { value: unknown }>('SELECT value FROM setting WHERE name = ?');
  const value = (name: string) => find.get(name)?.value;
  if (value('tag') === undefined) makeSettings(database);
  return {
    directoryTag: String(value('tag')),
    // Written as bytes by `makeSettings`.
    cursorKey: value('cursor-key') as Buffer,
    closedCleanly: value('closed') === 1,
  };
}

/** Creates the settings of a new directory: the tag in its revs and cursors, and the key that signs its cursors. */
function makeSettings(database: SqliteDatabase): void {
  const add = database.prepare('INSERT INTO setting (name, value) VALUES (?, ?)');
  database.transaction(() => {
    add.run('tag', randomBytes(4).toString('hex'));
    add.run('cursor-key', randomBytes(32));
    add.run('closed', 1);
  })();
}

/** Finishes removals, and undoes moves and copies, that the last end of the storage interrupted. */
async function clearAway({ stagings, removals, purge }: Store, reserve: Reserve): Promise<void> {
  await stagings.work(reserve);
  await removals.work(reserve);
  await purge.work(reserve);
}
