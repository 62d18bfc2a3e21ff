import BetterSqlite3 from 'better-sqlite3';

/** The class of databases, and `SqliteError`. `open.ts` opens databases, with the special case of Node 20. */
export const Sqlite = BetterSqlite3;

/** An open database. */
export type SqliteDatabase = BetterSqlite3.Database;
