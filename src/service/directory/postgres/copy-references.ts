import type { Pool } from 'pg';
import { findRow, rowsOf } from '../../postgres/queries.ts';
import {
  type CopyReference,
  type CopyReferences,
  newReference,
  REFERENCE_LIFETIME_MS,
} from '../copy-references.ts';

const COLUMNS = 'reference, account_id AS "accountId", item_id AS "itemId", expires_ms AS "expiresMs"';

/** Returns the copy references in a database. */
export function copyReferencesIn(pool: Pool): CopyReferences {
  return {
    async ofItem(nowMs, accountId, itemId) {
      const [made] = await rowsOf<CopyReference>(
        pool,
        `INSERT INTO davgate.copy_references (reference, account_id, item_id, expires_ms) VALUES ($1, $2, $3, $4)
         ON CONFLICT (account_id, item_id) DO UPDATE SET expires_ms = excluded.expires_ms RETURNING ${COLUMNS}`,
        newReference(),
        accountId,
        itemId,
        nowMs + REFERENCE_LIFETIME_MS,
      );
      if (!made) throw new Error('a copy reference that was just made is not there');
      return made;
    },
    find: (nowMs, reference) =>
      findRow<CopyReference>(
        pool,
        `SELECT ${COLUMNS} FROM davgate.copy_references WHERE reference = $1 AND expires_ms > $2`,
        reference,
        nowMs,
      ),
  };
}
