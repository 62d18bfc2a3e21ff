import type { Pool } from 'pg';
import { rowsOf } from '../../postgres/queries.ts';
import type { ItemRow, ItemRows } from '../item-rows.ts';

/** Returns the rows of a table in a database that belong to items. */
export function itemRowsIn(pool: Pool, table: 'tags' | 'copy_references' | 'links'): ItemRows {
  return {
    all: (afterSequence, limit) =>
      rowsOf<ItemRow>(
        pool,
        `SELECT sequence, account_id AS "accountId", item_id AS "itemId" FROM davgate.${table}
         WHERE sequence > $1 ORDER BY sequence LIMIT $2`,
        afterSequence,
        limit,
      ),
    async forget(row) {
      await pool.query(`DELETE FROM davgate.${table} WHERE sequence = $1`, [row.sequence]);
    },
  };
}
