import { createRequire } from 'node:module';
import type BetterSqlite3 from 'better-sqlite3';

/** An open database. */
export type SqliteDatabase = BetterSqlite3.Database;

/** The first version of Node that better-sqlite3 13 is made for. */
const NODE_OF_13 = 22;

/**
 * SQLite. Two versions of one library: 12 is the last for Node 20, and from Node 24.19 on it ends the process
 * when the collector frees a statement (`RemoveEnvironmentCleanupHook: (env) != nullptr`); 13 does not, and crashes
 * on Node 20.
 */
export const Sqlite: typeof BetterSqlite3 = createRequire(import.meta.url)(
  Number.parseInt(process.versions.node, 10) >= NODE_OF_13 ? 'better-sqlite3-13' : 'better-sqlite3',
);
