import { MIGRATIONS } from '../../src/state/sqlite/migrations.ts';
import { sqliteStateOn } from '../../src/state/sqlite/state.ts';
import type { DriveState } from '../../src/state/state.ts';
import { migrate } from '../../src/util/sqlite/migrations.ts';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';

/** The state of one drive, on the real stores with their database in memory: nothing to clean up. */
export function memoryState(): DriveState {
  const database = new Sqlite(':memory:');
  migrate(database, MIGRATIONS);
  return sqliteStateOn(database, { directory: 'memory' }).drive('memory');
}
