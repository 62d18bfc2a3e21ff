import type { Pool } from 'pg';
import { hashOfSecret } from '../../accounts/secrets.ts';
import { SIGNED_IN_MAX, type SignedIn, type SignedInBrowsers } from '../../oauth/signed-in.ts';
import { deleteUnlocked, findRow } from '../../postgres/queries.ts';

/** The rows beyond the latest $1. */
const OLDEST =
  'id_hash IN (SELECT id_hash FROM davgate.signed_in ORDER BY expires_ms DESC, id_hash OFFSET $1)';

/** Returns the sign-ins in a database. */
export function signedInBrowsersIn(pool: Pool): SignedInBrowsers {
  return {
    async add(id, { accountId, passwordHash, signedInFor, expiresMs }) {
      await pool.query(
        `INSERT INTO davgate.signed_in (id_hash, account_id, password_hash, signed_in_for, expires_ms)
         VALUES ($1, $2, $3, $4, $5)`,
        [hashOfSecret(id), accountId, passwordHash, signedInFor, expiresMs],
      );
      // Not in one transaction: of several processes, the last one to come here sees the rows of all.
      await deleteUnlocked(pool, {
        table: 'signed_in',
        key: 'id_hash',
        condition: OLDEST,
        values: [SIGNED_IN_MAX],
      });
    },
    find: (nowMs, id) =>
      findRow<SignedIn>(
        pool,
        `SELECT account_id AS "accountId", password_hash AS "passwordHash", signed_in_for AS "signedInFor",
           expires_ms AS "expiresMs"
         FROM davgate.signed_in WHERE id_hash = $1 AND expires_ms > $2`,
        hashOfSecret(id),
        nowMs,
      ),
    async spend(id) {
      await pool.query("UPDATE davgate.signed_in SET signed_in_for = '' WHERE id_hash = $1", [
        hashOfSecret(id),
      ]);
    },
    async remove(id) {
      await pool.query('DELETE FROM davgate.signed_in WHERE id_hash = $1', [hashOfSecret(id)]);
    },
    forgetOld: (nowMs, limit) =>
      deleteUnlocked(
        pool,
        { table: 'signed_in', key: 'id_hash', condition: 'expires_ms <= $1', values: [nowMs] },
        limit,
      ),
  };
}
