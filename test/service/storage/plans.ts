import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openDatabase } from '../../../src/service/storage/storage-database.ts';
import type { SqliteDatabase } from '../../../src/util/sqlite/sqlite.ts';
import { temporaryFolder } from './opened.ts';

/**
 * Returns the query plan of every statement that `use` prepares in a new database, by its SQL, a step in each line. What `use`
 * prepares in `unheard`, the same database, does not count.
 */
export async function plansOf(
  use: (database: SqliteDatabase, unheard: SqliteDatabase) => unknown,
  isCopy = false,
): Promise<readonly (readonly [sql: string, plan: string])[]> {
  const database = await openDatabase(join(await temporaryFolder(), 'storage.sqlite'), { isCopy });
  onTestFinished(() => void database.close());
  const sources = new Set<string>();
  const listening = Object.create(database) as SqliteDatabase;
  listening.prepare = ((sql: string) => {
    sources.add(sql);
    return database.prepare(sql);
  }) as typeof database.prepare;
  use(listening, database);
  return [...sources].map((sql) => [sql, planOf(database, sql)]);
}

function planOf(database: SqliteDatabase, sql: string): string {
  // Any value does: the plan does not depend on it.
  const values = [...sql.matchAll(/@(\w+)|\?/g)].map(([, name]) => name);
  const named = Object.fromEntries(values.flatMap((name) => (name ? [[name, 1]] : [])));
  const rows = database
    .prepare<unknown[], { detail: string }>(`EXPLAIN QUERY PLAN ${sql}`)
    .all(...values.filter((name) => name === undefined).map(() => 1), named);
  return rows.map(({ detail }) => detail).join('\n');
}
