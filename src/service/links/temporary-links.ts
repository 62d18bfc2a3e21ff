import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { hashOfSecret, newSecret } from '../accounts/secrets.ts';
import type { CommitInfo } from '../api/commit.ts';

/** The permission of a temporary link: to read one revision of a file, or to write a file once. */
export type TemporaryTarget =
  | { readonly kind: 'download'; readonly accountId: string; readonly rev: string }
  // Without `namespace` the link is older than teams, and the account's home is meant.
  | {
      readonly kind: 'upload';
      readonly accountId: string;
      readonly commit: CommitInfo;
      readonly namespace?: string;
    };

/** Links that work without a token for some hours. Only their hashes are stored. */
export interface TemporaryLinks {
  /** Adds a link. Returns its secret. */
  add(target: TemporaryTarget, expiresMs: number): string;
  /** Returns the target; `'over'` for a link that has expired or was used, `undefined` for an unknown one. */
  find(secret: string, nowMs: number): TemporaryTarget | 'over' | undefined;
  /** Ends the link. */
  markUsed(secret: string): void;
  /** Removes up to `limit` links that ended long ago. Returns how many. */
  forgetOld(nowMs: number, limit: number): number;
}

/** How long an ended link is kept, in ms: a day. */
const OVER_KEPT_MS = 24 * 60 * 60 * 1000;

export function temporaryLinksIn(database: SqliteDatabase): TemporaryLinks {
  const insert = database.prepare<[Uint8Array, string, number]>(
    'INSERT INTO temporary_links (token_hash, target, expires_ms) VALUES (?, ?, ?)',
  );
  const select = database.prepare<[Uint8Array], { target: string; expires_ms: number; used: number }>(
    'SELECT target, expires_ms, used FROM temporary_links WHERE token_hash = ?',
  );
  const use = database.prepare<[Uint8Array]>('UPDATE temporary_links SET used = 1 WHERE token_hash = ?');
  const forget = database.prepare<[before: number, limit: number]>(
    `DELETE FROM temporary_links WHERE token_hash IN (
       SELECT token_hash FROM temporary_links WHERE expires_ms < ? LIMIT ?)`,
  );
  return {
    add(target, expiresMs) {
      const secret = newSecret();
      insert.run(hashOfSecret(secret), JSON.stringify(target), expiresMs);
      return secret;
    },
    find(secret, nowMs) {
      const row = select.get(hashOfSecret(secret));
      if (!row) return undefined;
      // A cast, because only `add` writes this column.
      return row.used || row.expires_ms <= nowMs ? 'over' : (JSON.parse(row.target) as TemporaryTarget);
    },
    markUsed(secret) {
      use.run(hashOfSecret(secret));
    },
    forgetOld: (nowMs, limit) => forget.run(nowMs - OVER_KEPT_MS, limit).changes,
  };
}
