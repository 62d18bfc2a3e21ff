import Database from 'better-sqlite3';
import { MIGRATIONS } from '../../src/state/sqlite/migrations.ts';
import { sqliteStateOn } from '../../src/state/sqlite/state.ts';
import type { DriveState } from '../../src/state/state.ts';

/** The state of one drive, on the real stores with their database in memory: nothing to clean up. */
export function memoryState(): DriveState {
  const database = new Database(':memory:');
  for (const step of MIGRATIONS) database.exec(step);
  return sqliteStateOn(database, { directory: 'memory' }).drive('memory');
}
