import { closeSync, fsyncSync, openSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Database } from 'better-sqlite3';
import { makeFolder } from '../../util/make-folder.ts';
import { Sqlite } from '../../util/sqlite.ts';
import { StateInUse, StateUnwritable } from '../errors.ts';
import { MIGRATIONS } from './migrations.ts';

export type SqliteDatabase = Database;

const FILE_NAME = 'state.db';

/** What the write-ahead log may keep of the disk after a burst of set-aside files. */
const LOG_BYTES_KEPT = 32 * 1024 * 1024;

/**
 * Opens the database in `directory`, which is made when missing, for this process alone: every commit is on
 * disk when it returns, and the lock goes with the process, however that ends. `migrations` make its schema,
 * step by step. Throws `StateInUse`, `StateUnwritable`.
 */
export function openDatabase(directory: string, migrations: readonly string[] = MIGRATIONS): SqliteDatabase {
  makeDirectory(directory);
  let database: SqliteDatabase | undefined;
  try {
    // No waiting for another process: it will hold the database for as long as it runs.
    database = new Sqlite(join(directory, FILE_NAME), { timeout: 0 });
    seize(database);
    migrate(database, directory, migrations);
    syncDirectory(directory);
    return database;
  } catch (error) {
    database?.close();
    throw asStateError(error, directory);
  }
}

/** The typed error for what SQLite said; anything that is not SQLite's stays as it is. */
export function asStateError(error: unknown, directory: string): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error;
  if (error.code.startsWith('SQLITE_BUSY')) return new StateInUse(directory);
  const known = REASONS.find(([code]) => error.code.startsWith(code));
  return known ? new StateUnwritable(directory, known[1], error) : error;
}

const REASONS: readonly (readonly [code: string, reason: string])[] = [
  ['SQLITE_FULL', 'the disk is full; free some space'],
  ['SQLITE_READONLY', `${FILE_NAME} cannot be written; check its owner and permissions`],
  ['SQLITE_CANTOPEN', `${FILE_NAME} cannot be opened; check the owner and permissions of the directory`],
  ['SQLITE_PERM', `${FILE_NAME} cannot be opened; check the owner and permissions of the directory`],
  ['SQLITE_NOTADB', `${FILE_NAME} is not a database of davgate; move it away or give another --data-dir`],
  ['SQLITE_CORRUPT', `${FILE_NAME} is damaged; restore it from a backup or move it away`],
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
    for (const made of makeFolder(directory)) syncDirectory(dirname(made));
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    throw new StateUnwritable(directory, SYSTEM_REASONS[code] ?? `the system says ${code || error}`, error);
  }
}

/** A file that is new is only safe when its directory is on disk too. */
function syncDirectory(directory: string): void {
  const descriptor = openSync(directory, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
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

function migrate(database: SqliteDatabase, directory: string, migrations: readonly string[]): void {
  const seen = Number(database.pragma('user_version', { simple: true }));
  if (seen > migrations.length)
    throw new StateUnwritable(
      directory,
      `a newer davgate has written ${FILE_NAME}; run that version or give another --data-dir`,
    );
  const steps = migrations.slice(seen);
  database.transaction(() => {
    for (const step of steps) database.exec(step);
    database.pragma(`user_version = ${migrations.length}`);
  })();
}
