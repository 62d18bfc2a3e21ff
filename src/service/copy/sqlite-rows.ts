import { setImmediate as otherEvents } from 'node:timers/promises';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { Row } from '../storage/postgres/tables.ts';
import type { Rows } from './sides.ts';

/** Returns the rows of a SQLite database. Nothing is written to it while a query is read. */
export function sqliteRows(database: SqliteDatabase): Rows {
  return {
    dialect: 'sqlite',
    async *read(query, atOnce) {
      let rows: Row[] = [];
      for (const row of database.prepare<[], Row>(query).raw().iterate()) {
        rows.push(row);
        if (rows.length < atOnce) continue;
        yield rows;
        rows = [];
        await otherEvents();
      }
      if (rows.length > 0) yield rows;
    },
  };
}
