import { MIGRATIONS } from '../../../src/service/storage/migrations.ts';
import { migrate } from '../../../src/util/sqlite/migrations.ts';
import { Sqlite, type SqliteDatabase } from '../../../src/util/sqlite/sqlite.ts';

/** The last schema in which all namespaces shared one sequence of change numbers. */
const SHARED_NUMBERS = 11;

const TABLES = ['revision', 'entry', 'doomed', 'removal', 'staging'];

/** Gives a database of today's schema that of version 11, with the same rows. */
export function toVersion11(database: SqliteDatabase): void {
  const old = new Sqlite(':memory:');
  migrate(old, MIGRATIONS.slice(0, SHARED_NUMBERS));
  database.pragma('foreign_keys = OFF');
  for (const table of TABLES)
    database.exec(`CREATE TEMP TABLE kept_${table} AS SELECT * FROM ${table}; DROP TABLE ${table}`);
  for (const table of TABLES) {
    const definitions = old
      .prepare('SELECT sql FROM sqlite_master WHERE tbl_name = ? AND sql IS NOT NULL ORDER BY type DESC')
      .pluck()
      .all(table);
    for (const sql of definitions) database.exec(String(sql));
    const columns = old.prepare('SELECT group_concat(name) FROM pragma_table_info(?)').pluck().get(table);
    database.exec(`INSERT INTO main.${table} (${columns}) SELECT ${columns} FROM kept_${table}`);
  }
  database.exec(`
    INSERT INTO setting SELECT 'tick', coalesce(max(tick), 0) FROM namespace;
    ALTER TABLE namespace DROP COLUMN tick`);
  database.pragma(`user_version = ${SHARED_NUMBERS}`);
  old.close();
}
