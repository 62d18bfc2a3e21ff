import { MIGRATIONS } from '../../src/state/sqlite/migrations.ts';
import { sqliteStateOn } from '../../src/state/sqlite/state.ts';
import type { DriveState } from '../../src/state/state.ts';
import { migrate } from '../../src/util/sqlite/migrations.ts';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';

/** Returns the state of one drive in the real stores, with a database in memory. */
export function memoryState(): DriveState {
  const database = new Sqlite(':memory:');
  migrate(database, MIGRATIONS);
  return sqliteStateOn(database, { directory: 'memory' }).drive('memory');
}
