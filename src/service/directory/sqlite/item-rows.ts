import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { ItemRow, ItemRows } from '../item-rows.ts';

/** Returns the rows of a table in a database that belong to items. */
export function itemRowsIn(database: SqliteDatabase, table: 'tags' | 'copy_references' | 'links'): ItemRows {
  const after = database.prepare<[number, number], ItemRow>(
    `SELECT sequence, account_id AS accountId, item_id AS itemId FROM ${table}
     WHERE sequence > ? ORDER BY sequence LIMIT ?`,
  );
  const remove = database.prepare<[number]>(`DELETE FROM ${table} WHERE sequence = ?`);
  return {
    all: async (afterSequence, limit) => after.all(afterSequence, limit),
    async forget(row) {
      remove.run(row.sequence);
    },
  };
}
