import { renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type Log, silentLog } from '../../util/log.ts';
import { makeFolder, syncNames } from '../../util/make-folder.ts';
import { foldName } from '../../util/path.ts';
import { Sqlite, type SqliteDatabase } from '../../util/sqlite.ts';
import { StateInUse, StateUnwritable } from '../errors.ts';
import { MIGRATIONS, type Migration } from './migrations.ts';

const FILE_NAME = 'state.db';

/** What the write-ahead log may keep of the disk after a burst of set-aside files. */
const LOG_BYTES_KEPT = 32 * 1024 * 1024;

/**
 * Opens the database in `directory`, which is made when missing, for this process alone: every commit is on
 * disk when it returns, and the lock goes with the process, however that ends. `migrations` make its schema,
 * step by step. Throws `StateInUse`, `StateUnwritable`.
 */
export function openDatabase(
  directory: string,
  migrations: readonly Migration[] = MIGRATIONS,
  log: Log = silentLog,
): SqliteDatabase {
  makeDirectory(directory);
  let database: SqliteDatabase | undefined;
  try {
    keepOrphanedLog(directory, log);
    // No waiting for another process: it will hold the database for as long as it runs.
    database = new Sqlite(join(directory, FILE_NAME), { timeout: 0 });
    seize(database);
    migrate(database, directory, migrations);
    // A file that is new is only safe when its directory is on disk too.
    syncNames(directory);
    return database;
  } catch (error) {
    database?.close();
    throw asStateError(error, directory);
  }
}

/** Whether a database is in `directory`, good or bad. */
export function hasDatabase(directory: string): boolean {
  return (statSync(join(directory, FILE_NAME), { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/** The typed error for what SQLite said; anything that is not SQLite's stays as it is. */
export function asStateError(error: unknown, directory: string): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error;
  if (error.code.startsWith('SQLITE_BUSY')) return new StateInUse(directory);
  const known = REASONS.find(([code]) => error.code.startsWith(code));
  return known ? new StateUnwritable(directory, known[1], error) : error;
}

/** Must not advise anything that loses data: the database, its log and the files beside it belong together. */
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
  EEXIST: 'a file of that name is in the way',
  ENOTDIR: 'part of the path is a file',
};

function makeDirectory(directory: string): void {
  try {
    // Locks tell who works on what, and set-aside files are users' data: not for other users of the machine.
    makeFolder(directory);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new StateUnwritable(directory, SYSTEM_REASONS[code] ?? `the system says ${code || error}`, error);
  }
}

/**
 * SQLite deletes a write-ahead log whose database is missing or empty. That log may hold the only copy of what was
 * acknowledged last, so it gets another name first.
 */
function keepOrphanedLog(directory: string, log: Log): void {
  const walPath = join(directory, `${FILE_NAME}-wal`);
  const wal = statSync(walPath, { throwIfNoEntry: false });
  if (!wal || wal.size === 0 || hasDatabase(directory)) return;
  const keptAt = `${walPath}.kept-${wal.mtime.toISOString().replace(/[-:]|\.\d+/g, '')}`;
  renameSync(walPath, keptAt);
  log.error('a write-ahead log without its database was found: it is kept under another name', { keptAt });
}

function seize(database: SqliteDatabase): void {
  // Before the journal mode: an exclusive lock from the start keeps the log's index out of shared memory.
  database.pragma('locking_mode = EXCLUSIVE');
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.pragma('foreign_keys = ON');
  database.pragma(`journal_size_limit = ${LOG_BYTES_KEPT}`);
  database.exec('BEGIN IMMEDIATE; COMMIT');
}

/** Takes the steps of `migrations` that `database` has not seen yet. Throws `StateUnwritable`, naming `directory`. */
export function migrate(database: SqliteDatabase, directory: string, migrations = MIGRATIONS): void {
  const seen = Number(database.pragma('user_version', { simple: true }));
  if (seen > migrations.length)
    throw new StateUnwritable(
      directory,
      `a newer davgate has written ${FILE_NAME}; run that version or give another --data-dir`,
    );
  const steps = migrations.slice(seen);
  // A start that has nothing to write succeeds on a full disk.
  if (steps.length === 0) return;
  database.function('folded', { deterministic: true }, (key) => foldName(String(key)));
  database.transaction(() => {
    for (const step of steps)
      if (typeof step === 'string') database.exec(step);
      else step(database);
    database.pragma(`user_version = ${migrations.length}`);
  })();
}
