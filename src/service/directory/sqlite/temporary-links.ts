import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { hashOfSecret, newSecret } from '../../accounts/secrets.ts';
import { OVER_KEPT_MS, type TemporaryLinks, type TemporaryTarget } from '../../links/temporary-links.ts';

/** Values of the column `used`. */
const UNUSED = 0;
const USED = 1;
const CLAIMED = 2;

/** Returns the temporary links in a database. */
export function temporaryLinksIn(database: SqliteDatabase): TemporaryLinks {
  const insert = database.prepare<[Uint8Array, string, number]>(
    'INSERT INTO temporary_links (token_hash, target, expires_ms) VALUES (?, ?, ?)',
  );
  const select = database.prepare<[Uint8Array], { target: string; expires_ms: number; used: number }>(
    'SELECT target, expires_ms, used FROM temporary_links WHERE token_hash = ?',
  );
  const update = database.prepare<[to: number, Uint8Array, from: number]>(
    'UPDATE temporary_links SET used = ? WHERE token_hash = ? AND used = ?',
  );
  const forget = database.prepare<[before: number, limit: number]>(
    `DELETE FROM temporary_links WHERE token_hash IN (
       SELECT token_hash FROM temporary_links WHERE expires_ms < ? LIMIT ?)`,
  );
  function find(secret: string, nowMs: number) {
    const row = select.get(hashOfSecret(secret));
    if (!row) return undefined;
    if (row.used === USED || row.expires_ms <= nowMs) return 'over';
    // A cast, because only `add` writes this column.
    return JSON.parse(row.target) as TemporaryTarget;
  }

  return {
    async add(target, expiresMs) {
      const secret = newSecret();
      insert.run(hashOfSecret(secret), JSON.stringify(target), expiresMs);
      return secret;
    },
    async download(secret, nowMs) {
      const target = find(secret, nowMs);
      return target === 'over' || target?.kind === 'download' ? target : undefined;
    },
    async claimUpload(secret, nowMs) {
      const target = find(secret, nowMs);
      if (target === 'over') return target;
      if (target?.kind !== 'upload') return undefined;
      return update.run(CLAIMED, hashOfSecret(secret), UNUSED).changes === 1 ? target : 'claimed';
    },
    async release(secret) {
      update.run(UNUSED, hashOfSecret(secret), CLAIMED);
    },
    async markUsed(secret) {
      update.run(USED, hashOfSecret(secret), CLAIMED);
    },
    forgetOld: async (nowMs, limit) => forget.run(nowMs - OVER_KEPT_MS, limit).changes,
  };
}
