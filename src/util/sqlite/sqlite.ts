import BetterSqlite3 from 'better-sqlite3';

/** The class of databases, and `SqliteError`. Databases are opened by `open.ts`, which knows what Node 20 needs. */
export const Sqlite = BetterSqlite3;

/** An open database. */
export type SqliteDatabase = BetterSqlite3.Database;
