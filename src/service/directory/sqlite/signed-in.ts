import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { hashOfSecret } from '../../accounts/secrets.ts';
import { SIGNED_IN_MAX, type SignedIn, type SignedInBrowsers } from '../../oauth/signed-in.ts';

type Row = SignedIn & { readonly idHash: Uint8Array };

/** Returns the sign-ins in a database. */
export function signedInBrowsersIn(database: SqliteDatabase): SignedInBrowsers {
  const insert = database.prepare<[Row]>(
    `INSERT INTO signed_in (id_hash, account_id, password_hash, signed_in_for, expires_ms)
     VALUES (@idHash, @accountId, @passwordHash, @signedInFor, @expiresMs)`,
  );
  const dropOldest = database.prepare<[number]>(
    `DELETE FROM signed_in WHERE id_hash IN (
       SELECT id_hash FROM signed_in ORDER BY expires_ms DESC LIMIT -1 OFFSET ?)`,
  );
  const select = database.prepare<[Uint8Array, number], SignedIn>(
    `SELECT account_id AS accountId, password_hash AS passwordHash, signed_in_for AS signedInFor,
       expires_ms AS expiresMs
     FROM signed_in WHERE id_hash = ? AND expires_ms > ?`,
  );
  const spend = database.prepare<[Uint8Array]>("UPDATE signed_in SET signed_in_for = '' WHERE id_hash = ?");
  const remove = database.prepare<[Uint8Array]>('DELETE FROM signed_in WHERE id_hash = ?');
  const forget = database.prepare<[before: number, limit: number]>(
    `DELETE FROM signed_in WHERE id_hash IN (SELECT id_hash FROM signed_in WHERE expires_ms <= ? LIMIT ?)`,
  );
  const add = database.transaction((row: Row) => {
    insert.run(row);
    dropOldest.run(SIGNED_IN_MAX);
  });
  return {
    async add(id, signedIn) {
      add.immediate({ ...signedIn, idHash: hashOfSecret(id) });
    },
    find: async (nowMs, id) => select.get(hashOfSecret(id), nowMs),
    async spend(id) {
      spend.run(hashOfSecret(id));
    },
    async remove(id) {
      remove.run(hashOfSecret(id));
    },
    forgetOld: async (nowMs, limit) => forget.run(nowMs, limit).changes,
  };
}
