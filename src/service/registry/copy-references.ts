import { randomBytes } from 'node:crypto';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';

/** A text with which any account can copy the item. */
export interface CopyReference {
  readonly reference: string;
  readonly accountId: string;
  readonly itemId: string;
  readonly expiresMs: number;
}

export interface CopyReferences {
  /** Returns the item's reference: the same at each call. */
  ofItem(nowMs: number, accountId: string, itemId: string): CopyReference;
  /** Returns `undefined` for an unknown or expired reference. */
  find(nowMs: number, reference: string): CopyReference | undefined;
}

/** Size of a reference, in bytes: 128 bits cannot be guessed. */
const REFERENCE_BYTES = 16;

/** Lifetime of a reference, in ms: thirty years, as at the real service. */
const LIFETIME_MS = 30 * 365 * 24 * 60 * 60 * 1000;

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
  return {
    ofItem: database.transaction((nowMs: number, accountId: string, itemId: string) => {
      const reference = randomBytes(REFERENCE_BYTES).toString('base64url');
      insert.run(reference, accountId, itemId, nowMs + LIFETIME_MS);
      const made = byItem.get(accountId, itemId);
      if (!made) throw new Error('a copy reference that was just made is not there');
      return made;
    }).immediate,
    find: (nowMs, reference) => byText.get(reference, nowMs),
  };
}
