import { sqliteStateOn } from '../../src/state/sqlite/state.ts';
import { migrate } from '../../src/state/sqlite/state-database.ts';
import type { DriveState } from '../../src/state/state.ts';
import { Sqlite } from '../../src/util/sqlite.ts';

/** The state of one drive, on the real stores with their database in memory: nothing to clean up. */
export function memoryState(): DriveState {
  const database = new Sqlite(':memory:');
  migrate(database, 'memory');
  return sqliteStateOn(database, { directory: 'memory' }).drive('memory');
}
