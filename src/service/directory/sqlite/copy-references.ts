import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import {
  type CopyReference,
  type CopyReferences,
  newReference,
  REFERENCE_LIFETIME_MS,
} from '../copy-references.ts';

/** Returns the copy references in a database. */
export function copyReferencesIn(database: SqliteDatabase): CopyReferences {
  const insert = database.prepare<[string, string, string, number]>(
    `INSERT INTO copy_references (reference, account_id, item_id, expires_ms) VALUES (?, ?, ?, ?)
     ON CONFLICT (account_id, item_id) DO UPDATE SET expires_ms = excluded.expires_ms`,
  );
  const columns = 'reference, account_id AS accountId, item_id AS itemId, expires_ms AS expiresMs';
  const byItem = database.prepare<[string, string], CopyReference>(
    `SELECT ${columns} FROM copy_references WHERE account_id = ? AND item_id = ?`,
  );
  const byText = database.prepare<[string, number], CopyReference>(
    `SELECT ${columns} FROM copy_references WHERE reference = ? AND expires_ms > ?`,
  );
  const ofItem = database.transaction((nowMs: number, accountId: string, itemId: string) => {
    insert.run(newReference(), accountId, itemId, nowMs + REFERENCE_LIFETIME_MS);
    const made = byItem.get(accountId, itemId);
    if (!made) throw new Error('a copy reference that was just made is not there');
    return made;
  });
  return {
    ofItem: async (nowMs, accountId, itemId) => ofItem.immediate(nowMs, accountId, itemId),
    find: async (nowMs, reference) => byText.get(reference, nowMs),
  };
}
