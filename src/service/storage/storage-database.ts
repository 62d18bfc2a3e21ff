import { closeSync, existsSync, openSync } from 'node:fs';
import { setImmediate as otherEvents } from 'node:timers/promises';
import { Sqlite, type SqliteDatabase } from '../../util/sqlite.ts';
import { codeOf, DataDirectoryError } from './errors.ts';
import { MIGRATIONS } from './migrations.ts';
import { defineWordsOf } from './tree/name-upgrade.ts';
import type { UpgradeProgress } from './upgrade/progress.ts';

/** Pages of 4 KiB that the log may hold before they move to the main file: 16 MiB, as small blocks pass through it. */
const CHECKPOINT_PAGES = 4096;

/** The steps of the schema from which on large moves and copies are staged, and what stands for that before. */
const STAGINGS_SINCE = 9;
const NO_STAGINGS = `
  CREATE TEMP VIEW staging AS SELECT 0 AS first, 0 AS last, 0 AS ns, 0 AS copies, 0 AS published WHERE false;
  CREATE TEMP VIEW removal AS SELECT *, 0 AS moved FROM main.removal`;

/** Page cache, KiB; what is not in it the system's own cache has. */
const CACHE_KIB = 8 * 1024;

/**
 * Opens the metadata of a data directory for this process alone and brings its schema up to date.
 * Throws `DataDirectoryError` when another process has it, a newer program made it, or it is damaged.
 */
export async function openDatabase(
  file: string,
  onProgress: (progress: UpgradeProgress) => void = () => {},
): Promise<SqliteDatabase> {
  let database: SqliteDatabase | undefined;
  try {
    makePrivate(file);
    database = new Sqlite(file, { timeout: 0 });
    // Exclusive: the kernel frees the lock with the process, so a kill leaves no stale lock file.
    database.pragma('locking_mode = EXCLUSIVE');
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = FULL');
    database.pragma('foreign_keys = ON');
    database.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
    database.pragma(`cache_size = -${CACHE_KIB}`);
    await migrate(database, file, onProgress);
    return database;
  } catch (failure) {
    database?.close();
    throw explained(failure, file);
  }
}

/**
 * Opens the metadata of a data directory that is there, to look at it and change nothing. Throws
 * `DataDirectoryError` as `openDatabase` does, and when there is none.
 */
export function openExisting(file: string): SqliteDatabase {
  if (!existsSync(file))
    throw new DataDirectoryError('unusable', `${file} is not there: name the folder of a storage service`);
  let database: SqliteDatabase | undefined;
  try {
    database = new Sqlite(file, { timeout: 0, fileMustExist: true });
    database.pragma('locking_mode = EXCLUSIVE');
    // Reading takes the lock and, after a crash, brings the log in: what a start would do as well.
    const taken = Number(database.pragma('user_version', { simple: true }));
    checkVersion(taken, file);
    if (taken < STAGINGS_SINCE) database.exec(NO_STAGINGS);
    database.pragma('query_only = ON');
    defineWordsOf(database);
    return database;
  } catch (failure) {
    database?.close();
    throw explained(failure, file);
  }
}

/**
 * The data is for its user alone, whatever the folder's rights. A file that is there is not touched: closing
 * any handle on it would free the locks this process may hold on it (POSIX).
 */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch (failure) {
    if (codeOf(failure) !== 'EEXIST') throw failure;
  }
}

/**
 * Takes the steps of `MIGRATIONS` that are missing, all in one transaction. Each rewrites what it must while nobody can
 * be served: an index of a million files takes some twenty seconds, once, and tells how far it is. Between two pieces of
 * the work signals are heard: a process that ends there leaves the directory as it was, and the next one begins again.
 */
async function migrate(
  database: SqliteDatabase,
  file: string,
  onProgress: (progress: UpgradeProgress) => void,
): Promise<void> {
  // Taking the write lock at once is what finds a second process.
  database.exec('BEGIN IMMEDIATE');
  const taken = Number(database.pragma('user_version', { simple: true }));
  checkVersion(taken, file);
  for (const step of MIGRATIONS.slice(taken)) {
    if (typeof step === 'string') database.exec(step);
    else
      for (const progress of step(database)) {
        onProgress(progress);
        await otherEvents();
      }
    await otherEvents();
  }
  // On a full disk even an old directory must open: nothing is written without need.
  if (taken < MIGRATIONS.length) database.pragma(`user_version = ${MIGRATIONS.length}`);
  database.exec('COMMIT');
}

function checkVersion(taken: number, file: string): void {
  if (taken > MIGRATIONS.length)
    throw new DataDirectoryError(
      'newer',
      `${file} was written by a newer davgate (schema ${taken}, this one knows ${MIGRATIONS.length}): run that version`,
    );
}

/** The failure to open, in words for whoever starts the program. */
function explained(failure: unknown, file: string): unknown {
  const code = codeOf(failure);
  if (code.startsWith('SQLITE_BUSY') || code.startsWith('SQLITE_LOCKED'))
    return new DataDirectoryError(
      'in-use',
      `${file} is in use by another process: stop that one, or give this one its own data directory`,
      { cause: failure },
    );
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT'))
    return new DataDirectoryError('damaged', `${file} is damaged: put it back from a backup`, {
      cause: failure,
    });
  if (code !== '')
    return new DataDirectoryError(
      'unusable',
      `${file} cannot be opened (${code}): check the folder and its rights`,
      {
        cause: failure,
      },
    );
  return failure;
}
