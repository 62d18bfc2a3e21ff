import { closeSync, existsSync, openSync, renameSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { PACKAGE_ROOT } from '../package.ts';
import { Sqlite, type SqliteDatabase } from './sqlite.ts';

/** The first version of Node that loads the binary inside better-sqlite3's npm package; see `node20/compile.mjs`. */
const NODE_WITH_BINARY = 22;

export interface OpenOptions {
  /**
   * Whether other processes may open the file too; a statement then waits for theirs. Otherwise a second open fails at
   * once.
   */
  readonly isShared?: boolean;
  /** Further settings of the connection, for example `cache_size`. */
  readonly pragmas?: Readonly<Record<string, number>>;
  /** Called with the new name of a write-ahead log whose database was missing or empty. */
  readonly onOrphanedLog?: (keptAt: string) => void;
}

/**
 * Opens or creates the database `file`, readable by its owner only. A commit is on disk when it returns (`synchronous =
 * FULL`). Throws errors of SQLite and of the file system.
 */
export function openSqlite(file: string, options: OpenOptions = {}): SqliteDatabase {
  const { isShared = false, pragmas = {}, onOrphanedLog } = options;
  assertCompiled();
  if (!isShared) keepOrphanedLog(file, onOrphanedLog);
  makePrivate(file);
  const database = new Sqlite(file, isShared ? {} : { timeout: 0 });
  try {
    // Before the journal mode: an exclusive lock from the start keeps the log's index out of shared memory. The kernel
    // frees the lock with the process, so a kill leaves no stale one.
    if (!isShared) database.pragma('locking_mode = EXCLUSIVE');
    database.pragma('journal_mode = WAL');
    database.pragma('synchronous = FULL');
    database.pragma('foreign_keys = ON');
    for (const [name, value] of Object.entries(pragmas)) database.pragma(`${name} = ${value}`);
    planOnce(database);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Opens an existing database `file` for reading. With `isShared` another process may have it open; otherwise the first
 * statement takes the lock and, after a crash, recovers the log. Throws errors of SQLite.
 */
export function openSqliteToRead(file: string, { isShared = false } = {}): SqliteDatabase {
  assertCompiled();
  const database = new Sqlite(file, { fileMustExist: true, ...(isShared ? {} : { timeout: 0 }) });
  if (!isShared) database.pragma('locking_mode = EXCLUSIVE');
  planOnce(database);
  return database;
}

/**
 * Makes the statements of `database` keep their query plan. SQLite looks at the value of a parameter that is compared for
 * equality or limits the rows, and plans the query again whenever another value is bound: for a join that takes 50 µs
 * where the query takes 1 µs. It does not look behind a unary plus, which changes no value.
 */
function planOnce(database: SqliteDatabase): void {
  database.prepare = new Proxy(database.prepare, {
    apply: (prepare, self, [sql]: [string]) =>
      Reflect.apply(prepare, self, [sql.replace(/((?<![<>])=|\bLIMIT|\bOFFSET)\s*(?=[?@])/g, '$1 +')]),
  });
}

/** Without its own binary, better-sqlite3 would end a process on Node 20 with a segmentation fault. */
function assertCompiled(): void {
  if (Number.parseInt(process.versions.node, 10) >= NODE_WITH_BINARY) return;
  const library = dirname(createRequire(import.meta.url).resolve('better-sqlite3/package.json'));
  if (existsSync(join(library, 'build/Release/better_sqlite3.node'))) return;
  throw new Error(
    `SQLite is not compiled for Node ${process.versions.node}: install make, Python and a C++ compiler and run ` +
      `"npm --prefix ${PACKAGE_ROOT} run postinstall", or use Node ${NODE_WITH_BINARY} or later, which needs none`,
  );
}

/**
 * SQLite deletes a write-ahead log whose database is missing or empty. That log may hold the only copy of the last
 * commits, so it gets another name first.
 */
function keepOrphanedLog(file: string, onOrphanedLog: ((keptAt: string) => void) | undefined): void {
  const logFile = `${file}-wal`;
  const log = statSync(logFile, { throwIfNoEntry: false });
  if (!log || log.size === 0 || isFilled(file)) return;
  const keptAt = `${logFile}.kept-${log.mtime.toISOString().replace(/[-:]|\.\d+/g, '')}`;
  renameSync(logFile, keptAt);
  onOrphanedLog?.(keptAt);
}

function isFilled(file: string): boolean {
  return (statSync(file, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

/**
 * Creates `file` readable by its owner only, whatever the folder's permissions. An existing file is not opened: closing
 * any descriptor of it would free the locks that this process may hold on it (POSIX).
 */
function makePrivate(file: string): void {
  try {
    closeSync(openSync(file, 'wx', 0o600));
  } catch {
    // The file exists, or SQLite reports why it cannot be created.
  }
}
