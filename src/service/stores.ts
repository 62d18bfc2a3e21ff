import { statfs } from 'node:fs/promises';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Directory } from './directory/directory.ts';
import { openSqliteDirectory } from './directory/sqlite/sqlite-directory.ts';
import type { BucketAccess } from './storage/blocks/bucket/bucket-address.ts';
import { openStorage, type StorageOptions } from './storage/open.ts';
import type { Storage } from './storage/storage.ts';

/** Where a service keeps its data. */
export interface StoreOptions {
  /**
   * Directory of this process alone, created if missing: of all durable data or, with `metadata`, of the credentials of the
   * default account and of what is not needed after a restart.
   */
  readonly dataDirectory: string;
  /** The PostgreSQL database with the accounts and the metadata, which several services share: `postgres://…`. */
  readonly metadata?: string;
  /** The blocks of files: a bucket or, with `metadata`, a folder that the services share. */
  readonly blocks?: BucketAccess | { readonly folder: string };
  /**
   * With `metadata`: how long a block is kept after nothing refers to it, in ms. At least a day; the longest time that any
   * service was given counts.
   */
  readonly keepDeletedBlocksMs?: number;
  readonly clock: Clock;
  readonly log: Log;
  /** How long a commit may wait for those before it, in ms; 1,000 by default, as at the real service. */
  readonly commitWaitMs?: number;
  /** How many rows of a large move, copy or removal one transaction takes, where that differs from the default. */
  readonly steps?: Pick<StorageOptions, 'stagedRowsMax' | 'removedRowsMax'>;
}

/** The data of a service, open. */
export interface Stores {
  readonly storage: Storage;
  readonly directory: Directory;
  /** Whether no other process serves the same data. */
  readonly isAlone: boolean;
  /** Returns the free space for files, in bytes. */
  freeBytes(): Promise<number>;
  close(): Promise<void>;
}

/**
 * Opens the data of a service. Throws `DataDirectoryError`, `BucketError`, or `PostgresError`, and leaves nothing open.
 */
export async function openStores(options: StoreOptions): Promise<Stores> {
  return options.metadata === undefined
    ? await openDataDirectory(options)
    : await openShared(options, options.metadata);
}

async function openDataDirectory(options: StoreOptions): Promise<Stores> {
  const { dataDirectory, blocks, clock, log, commitWaitMs, steps } = options;
  if (blocks && 'folder' in blocks) throw new Error('blocks in a folder need metadata in a database');
  const bucket = blocks && { bucket: blocks };
  const waiting = commitWaitMs === undefined ? {} : { commitWaitMs };
  const storage = await openStorage({ dataDirectory, clock, log, ...waiting, ...bucket, ...steps });
  try {
    const { directory, close } = openSqliteDirectory(dataDirectory);
    return {
      storage,
      directory,
      isAlone: true,
      freeBytes: () => freeBytesOf(dataDirectory),
      async close() {
        await close();
        await storage.close();
      },
    };
  } catch (failure) {
    await storage.close();
    throw failure;
  }
}

async function openShared(options: StoreOptions, url: string): Promise<Stores> {
  const { dataDirectory, blocks, keepDeletedBlocksMs, clock, log, commitWaitMs, steps } = options;
  if (!blocks) throw new Error('metadata in a database need blocks in a bucket or a shared folder');
  // Few services need what these load.
  const { openPool } = await import('./postgres/connect.ts');
  const { openPostgresDirectory } = await import('./directory/postgres/postgres-directory.ts');
  const { expectDurable, expectReliable } = await import('./postgres/requirements.ts');
  const { openPostgresStorage } = await import('./storage/postgres/postgres-storage.ts');
  const pool = openPool(url, log, { accept: expectDurable });
  try {
    await expectReliable(pool);
    const { directory, close } = await openPostgresDirectory(pool);
    const waiting = commitWaitMs === undefined ? {} : { commitWaitMs };
    const kept = keepDeletedBlocksMs === undefined ? {} : { keepDeletedBlocksMs };
    const scratch = { scratchDirectory: dataDirectory, ...waiting, ...steps };
    const storage = await openPostgresStorage({ pool, blocks, clock, log, ...kept, ...scratch });
    return {
      storage,
      directory,
      isAlone: false,
      // A bucket has no end.
      freeBytes: async () =>
        'folder' in blocks ? await freeBytesOf(blocks.folder) : Number.MAX_SAFE_INTEGER,
      async close() {
        await close();
        await storage.close();
        await pool.end();
      },
    };
  } catch (failure) {
    await pool.end();
    throw failure;
  }
}

async function freeBytesOf(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}
