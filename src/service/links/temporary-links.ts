import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { hashOfSecret, newSecret } from '../accounts/secrets.ts';
import type { CommitInfo } from '../api/commit.ts';

/** What a temporary link lets its holder do: read one revision of a file, or put a file in place once. */
export type TemporaryTarget =
  | { readonly kind: 'download'; readonly accountId: string; readonly rev: string }
  | { readonly kind: 'upload'; readonly accountId: string; readonly commit: CommitInfo };

/** Links that work without a token for some hours; of each only a hash is kept. */
export interface TemporaryLinks {
  /** The link's secret. */
  add(target: TemporaryTarget, expiresMs: number): string;
  /** `'over'`: its time has passed, or it was used; `undefined`: there never was one, or long ago. */
  find(secret: string, nowMs: number): TemporaryTarget | 'over' | undefined;
  /** From now on it is over. */
  markUsed(secret: string): void;
  /** Clears away up to `limit` links that have been over for long; how many. */
  forgetOld(nowMs: number, limit: number): number;
}

/** How long a link that is over is still known as one: a day. */
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
      // Written by `add`.
      return row.used || row.expires_ms <= nowMs ? 'over' : (JSON.parse(row.target) as TemporaryTarget);
    },
    markUsed(secret) {
      use.run(hashOfSecret(secret));
    },
    forgetOld: (nowMs, limit) => forget.run(nowMs - OVER_KEPT_MS, limit).changes,
  };
}
