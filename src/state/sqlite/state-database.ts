import { statSync } from 'node:fs';
import { join } from 'node:path';
import { errorCodeOf } from '../../util/error-code.ts';
import { type Log, silentLog } from '../../util/log.ts';
import { makeFolder } from '../../util/make-folder.ts';
import { isSqliteError } from '../../util/sqlite/group-commit.ts';
import { type Migration, migrate, NewerSchema } from '../../util/sqlite/migrations.ts';
import { openSqlite } from '../../util/sqlite/open.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { syncDirectorySync } from '../../util/sync-directory.ts';
import { StateInUse, StateUnwritable } from '../errors.ts';
import { MIGRATIONS } from './migrations.ts';

const FILE_NAME = 'state.db';

/** Size of the write-ahead log that stays on disk after a burst of local files, in bytes. */
const LOG_BYTES_KEPT = 32 * 1024 * 1024;

/**
 * Opens the database in `directory`, which is created if missing, for this process alone, and upgrades its schema. The
 * lock ends with the process, also when it is killed. Throws `StateInUse`, `StateUnwritable`.
 */
export function openDatabase(
  directory: string,
  migrations: readonly Migration[] = MIGRATIONS,
  log: Log = silentLog,
): SqliteDatabase {
  makeDirectory(directory);
  let database: SqliteDatabase | undefined;
  try {
    database = openSqlite(join(directory, FILE_NAME), {
      pragmas: { journal_size_limit: LOG_BYTES_KEPT },
      onOrphanedLog: (keptAt) =>
        log.error('found a write-ahead log without its database; it is kept under another name', {
          keptAt,
        }),
    });
    migrate(database, migrations);
    // A new file is durable only when its directory is synced too.
    syncDirectorySync(directory);
    return database;
  } catch (error) {
    database?.close();
    throw asStateError(error, directory);
  }
}

/** Returns whether `directory` contains a database, sound or not. */
export function hasDatabase(directory: string): boolean {
  return (statSync(join(directory, FILE_NAME), { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** Returns the typed error for an error of SQLite; other errors stay unchanged. */
export function asStateError(error: unknown, directory: string): unknown {
  if (error instanceof NewerSchema)
    return new StateUnwritable(
      directory,
      `a newer davgate has written ${FILE_NAME}; run that version or give another --data-dir`,
    );
  if (!isSqliteError(error)) return error;
  if (error.code.startsWith('SQLITE_BUSY')) return new StateInUse(directory);
  const known = REASONS.find(([code]) => error.code.startsWith(code));
  return known ? new StateUnwritable(directory, known[1], error) : error;
}

/** Must not recommend anything that loses data: the database, its log and the files beside it belong together. */
const DAMAGED = `${FILE_NAME} is damaged or not a database of davgate; restore the directory from a backup, or, to start \
without it, move the whole directory away and keep it: what was acknowledged is in ${FILE_NAME}, ${FILE_NAME}-wal and the \
files beside them`;

const REASONS: readonly (readonly [code: string, reason: string])[] = [
  ['SQLITE_FULL', 'the disk is full; free some space'],
  ['SQLITE_READONLY', `${FILE_NAME} cannot be written; check its owner and permissions`],
  ['SQLITE_CANTOPEN', `${FILE_NAME} cannot be opened; check the owner and permissions of the directory`],
  ['SQLITE_PERM', `${FILE_NAME} cannot be opened; check the owner and permissions of the directory`],
  ['SQLITE_NOTADB', DAMAGED],
  ['SQLITE_CORRUPT', DAMAGED],
  ['SQLITE_IOERR', `the disk fails to read or write ${FILE_NAME}; check the disk`],
];

const SYSTEM_REASONS: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write there; check the owner and permissions',
  EPERM: 'this user may not write there; check the owner and permissions',
  EROFS: 'the file system is mounted read-only',
  ENOSPC: 'the disk is full; free some space',
  EEXIST: 'a file has that name; remove or rename it',
  ENOTDIR: 'part of the path is a file',
};

function makeDirectory(directory: string): void {
  try {
    // Locks show who works on which file, and local files are users' data: other users of the machine must not read
    // them.
    makeFolder(directory);
  } catch (error) {
    const code = errorCodeOf(error);
    throw new StateUnwritable(directory, SYSTEM_REASONS[code] ?? `the system says ${code || error}`, error);
  }
}
