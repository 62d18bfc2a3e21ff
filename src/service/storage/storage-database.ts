import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { setImmediate as otherEvents } from 'node:timers/promises';
import { errorCodeOf } from '../../util/error-code.ts';
import {
  type MigrationProgress,
  migrateInPieces,
  NewerSchema,
  schemaVersion,
} from '../../util/sqlite/migrations.ts';
import { openSqlite, openSqliteToRead } from '../../util/sqlite/open.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { DataDirectoryError } from './errors.ts';
import { MIGRATIONS } from './migrations.ts';
import { expectFinished } from './unfinished-copy.ts';
import { defineWordsOf } from './upgrade/name-index-upgrade.ts';

/** Size of the write-ahead log, in pages of 4 KiB, at which it moves to the main file: small blocks pass through it. */
const CHECKPOINT_PAGES = 4096;

/** Schema version that gave each namespace change numbers of its own, and a table that stands for them before it. */
const TICKS_SINCE = 12;
const NO_TICKS = `
  CREATE TEMP TABLE namespace AS
    SELECT *, (SELECT value FROM main.setting WHERE name = 'tick') AS tick FROM main.namespace`;

/** Schema version that gave blocks names, and a table that stands for them before it. */
const BLOCK_NAMES_SINCE = 13;
const NO_BLOCK_NAMES = 'CREATE TEMP TABLE block_name (block INTEGER PRIMARY KEY, name TEXT NOT NULL)';

/** Schema version that gave the pieces of blocks checksums, and a table that stands for them before it. */
const BLOCK_PIECES_SINCE = 11;
const NO_BLOCK_PIECES = 'CREATE TEMP TABLE block_pieces (block INTEGER PRIMARY KEY, checksums BLOB NOT NULL)';

/** Schema version that introduced staged moves and copies, and views that stand for their tables before it. */
const STAGINGS_SINCE = 9;
const NO_STAGINGS = `
  CREATE TEMP VIEW staging AS SELECT 0 AS first, 0 AS last, 0 AS ns, 0 AS copies, 0 AS published WHERE false;
  CREATE TEMP VIEW removal AS SELECT *, 0 AS moved FROM main.removal`;

/** Size of SQLite's page cache, in KiB; the OS caches the rest. */
const CACHE_KIB = 8 * 1024;

export interface StorageDatabaseOptions {
  /** Size of the page cache, in KiB. Default: 8 MiB. */
  readonly cacheKib?: number;
  /**
   * Whether it is a copy of another database: nothing in it is needed after a crash, and its rows, which come in any order,
   * refer to each other only once all are there.
   */
  readonly isCopy?: boolean;
  /** Called after each piece of an upgrade. */
  readonly onProgress?: (progress: MigrationProgress) => void;
  /** Called with the new name of a write-ahead log whose database was missing or empty. */
  readonly onOrphanedLog?: (keptAt: string) => void;
}

/**
 * Opens the metadata of a data directory for this process alone and upgrades its schema. An index of a million files
 * takes about twenty seconds, once; the process handles signals between its pieces. Throws `DataDirectoryError` when
 * another process has it open, a newer program made it, or it is damaged.
 */
export async function openDatabase(
  file: string,
  {
    cacheKib = CACHE_KIB,
    isCopy = false,
    onProgress = () => {},
    onOrphanedLog = () => {},
  }: StorageDatabaseOptions = {},
): Promise<SqliteDatabase> {
  let database: SqliteDatabase | undefined;
  try {
    database = openSqlite(file, {
      pragmas: {
        wal_autocheckpoint: CHECKPOINT_PAGES,
        cache_size: -cacheKib,
        ...(isCopy && { synchronous: 0, foreign_keys: 0 }),
      },
      onOrphanedLog,
    });
    for (const progress of migrateInPieces(database, MIGRATIONS)) {
      if (progress) onProgress(progress);
      await otherEvents();
    }
    return database;
  } catch (failure) {
    database?.close();
    throw explained(failure, file);
  }
}

/**
 * Opens the metadata of an existing data directory to read it. Throws `DataDirectoryError` as `openDatabase` does, and
 * when there is none or, with `isCurrent`, its schema is older than this program.
 */
export function openExisting(file: string, { isCurrent = false } = {}): SqliteDatabase {
  if (!existsSync(file))
    throw new DataDirectoryError('unusable', `${file} does not exist: name the folder of a storage service`);
  expectFinished(dirname(file));
  let database: SqliteDatabase | undefined;
  try {
    database = openSqliteToRead(file);
    // The first read takes the lock and, after a crash, recovers the log, as a start would.
    const version = schemaVersion(database, MIGRATIONS);
    if (isCurrent && version < MIGRATIONS.length)
      throw new DataDirectoryError(
        'unusable',
        `${file} was written by an older davgate: start the service once, which upgrades it`,
      );
    if (version < BLOCK_NAMES_SINCE) database.exec(NO_BLOCK_NAMES);
    if (version < BLOCK_PIECES_SINCE) database.exec(NO_BLOCK_PIECES);
    if (version < STAGINGS_SINCE) database.exec(NO_STAGINGS);
    if (version < TICKS_SINCE) database.exec(NO_TICKS);
    database.pragma('query_only = ON');
    defineWordsOf(database);
    return database;
  } catch (failure) {
    database?.close();
    throw explained(failure, file);
  }
}

/** Returns whether a database has all tables and columns of this program. */
export function isCurrent(database: SqliteDatabase): boolean {
  return schemaVersion(database, MIGRATIONS) === MIGRATIONS.length;
}

/** Returns the error for the operator that a failure to open becomes; davgate's own errors stay unchanged. */
function explained(failure: unknown, file: string): unknown {
  if (failure instanceof NewerSchema)
    return new DataDirectoryError(
      'newer',
      `${file} was written by a newer davgate (schema ${failure.version}, this one knows ${failure.knownVersion}): run that version`,
    );
  const code = errorCodeOf(failure);
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'))
    return new DataDirectoryError(
      'in-use',
      `${file} is in use by another process: stop that one, or give this one its own data directory`,
      { cause: failure },
    );
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT'))
    return new DataDirectoryError('damaged', `${file} is damaged: restore it from a backup`, {
      cause: failure,
    });
  if (code !== '')
    return new DataDirectoryError(
      'unusable',
      `${file} cannot be opened (${code}): check the folder and its permissions`,
      {
        cause: failure,
      },
    );
  return failure;
}
