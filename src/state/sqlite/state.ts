import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { LOCAL_FILES_BYTES_MAX } from '../local-files.ts';
import type { DriveState, State } from '../state.ts';
import { Commits } from './commits.ts';
import { sqliteIntents } from './intents.ts';
import { sqliteLocalFiles } from './local-files.ts';
import { sqliteLocks } from './locks.ts';
import { sqliteOwners } from './owners.ts';
import { sqlitePlaceholders } from './placeholders.ts';
import { sqliteProperties } from './properties.ts';
import { sqliteReplacements } from './replacements.ts';
import { openDatabase } from './state-database.ts';
import { sqliteTimes } from './times.ts';

export interface SqliteStateOptions {
  /** The data directory; made when missing. One process at a time may use it. */
  readonly directory: string;
  /** What the local files of one drive may take together. */
  readonly localFilesBytesMax?: number;
}

/**
 * Opens the state in an SQLite database. What a promise has acknowledged is on disk. Throws `StateInUse`,
 * `StateUnwritable`; the latter also from any change when the disk fails later.
 */
export function openSqliteState(options: SqliteStateOptions): State {
  return sqliteStateOn(openDatabase(options.directory), options);
}

/** As `openSqliteState`, on a database that is open. */
export function sqliteStateOn(database: SqliteDatabase, options: SqliteStateOptions): State {
  const commits = new Commits(database, options.directory);
  const drives = new Map<string, DriveState>();
  const openDrive = (name: string): DriveState => {
    const drive = driveNumber(database, name);
    return {
      locks: sqliteLocks(database, drive, commits),
      properties: sqliteProperties(database, drive, commits),
      localFiles: sqliteLocalFiles(
        database,
        drive,
        commits,
        options.localFilesBytesMax ?? LOCAL_FILES_BYTES_MAX,
      ),
      placeholders: sqlitePlaceholders(database, drive, commits),
      times: sqliteTimes(database, drive, commits),
      replacements: sqliteReplacements(database, drive, commits),
      intents: sqliteIntents(database, drive, commits),
    };
  };
  const owners = sqliteOwners(database, commits);
  return {
    owners: {
      get: owners.get,
      async set(drive, owner) {
        await owners.set(drive, owner);
        // Another account's is another drive.
        drives.delete(drive);
      },
    },
    drive(name) {
      const state = drives.get(name) ?? openDrive(name);
      drives.set(name, state);
      return state;
    },
    async close() {
      commits.close();
      database.close();
    },
  };
}

function driveNumber(database: SqliteDatabase, name: string): number {
  database.prepare('INSERT OR IGNORE INTO drives (name) VALUES (?)').run(name);
  const row = database
    .prepare<[string], { drive: number }>('SELECT drive FROM drives WHERE name = ?')
    .get(name);
  if (!row) throw new Error(`the drive "${name}" is not in the table it was just put into`);
  return row.drive;
}
