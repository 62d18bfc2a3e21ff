import { randomBytes } from 'node:crypto';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { type DriveState, SECRET_BYTES, type State } from '../state.ts';
import { sqliteAppPasswords } from './app-passwords.ts';
import { Commits } from './commits.ts';
import { sqliteIntents } from './intents.ts';
import { LOCAL_FILES_BYTES_MAX, sqliteLocalFiles } from './local-files.ts';
import { sqliteLocks } from './locks.ts';
import { sqliteOwners } from './owners.ts';
import { sqlitePlaceholders } from './placeholders.ts';
import { sqliteProperties } from './properties.ts';
import { sqliteReplacements } from './replacements.ts';
import { openDatabase } from './state-database.ts';
import { sqliteTimes } from './times.ts';
import { sqliteUploadLinks } from './upload-links.ts';

export interface SqliteStateOptions {
  /** The data directory; created if missing. One process at a time may use it. */
  readonly directory: string;
  /** Maximum size of all local files of one drive, in bytes. */
  readonly localFilesBytesMax?: number;
}

/**
 * Opens the state in an SQLite database. A resolved promise means that the change is on disk. Throws `StateInUse` and
 * `StateUnwritable`; changes throw the latter too when the disk fails.
 */
export function openSqliteState(options: SqliteStateOptions): State {
  return sqliteStateOn(openDatabase(options.directory), options);
}

/** Like `openSqliteState`, on an open database. */
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
      secret: () => commits.run(() => secretOf(database, drive)),
    };
  };
  const owners = sqliteOwners(database, commits);
  return {
    owners: {
      get: owners.get,
      async set(drive, owner) {
        await owners.set(drive, owner);
        // With another owner it is another drive.
        drives.delete(drive);
      },
    },
    appPasswords: sqliteAppPasswords(database, commits),
    uploadLinks: sqliteUploadLinks(database, commits),
    drive(name) {
      const state = drives.get(name) ?? openDrive(name);
      drives.set(name, state);
      return state;
    },
    trouble: () => undefined,
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

function secretOf(database: SqliteDatabase, drive: number): Uint8Array {
  database
    .prepare('UPDATE drives SET secret = ? WHERE drive = ? AND secret IS NULL')
    .run(randomBytes(SECRET_BYTES), drive);
  const row = database
    .prepare<[number], { secret: Uint8Array }>('SELECT secret FROM drives WHERE drive = ?')
    .get(drive);
  if (!row) throw new Error('the drive has no row in the table of drives');
  return row.secret;
}
