import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';

/** A row that belongs to a file or folder, and is removed once the item cannot be restored. */
export interface ItemRow {
  /** Larger for each later row. */
  readonly sequence: number;
  readonly accountId: string;
  readonly itemId: string;
}

/** The rows of one table that belong to items, for housekeeping. */
export interface ItemRows {
  /** Returns rows of all accounts after the one numbered `afterSequence`, oldest first. */
  all(afterSequence: number, limit: number): readonly ItemRow[];
  forget(row: ItemRow): void;
}

export function itemRowsIn(database: SqliteDatabase, table: 'tags' | 'copy_references' | 'links'): ItemRows {
  const after = database.prepare<[number, number], ItemRow>(
    `SELECT sequence, account_id AS accountId, item_id AS itemId FROM ${table}
     WHERE sequence > ? ORDER BY sequence LIMIT ?`,
  );
  const remove = database.prepare<[number]>(`DELETE FROM ${table} WHERE sequence = ?`);
  return {
    all: (afterSequence, limit) => after.all(afterSequence, limit),
    forget(row) {
      remove.run(row.sequence);
    },
  };
}
