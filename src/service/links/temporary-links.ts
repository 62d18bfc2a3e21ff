import type { Database } from 'better-sqlite3';
import { hashOfSecret, newSecret } from '../accounts/secrets.ts';
import type { CommitInfo } from '../commit.ts';

/** What a temporary link lets its holder do: read one revision of a file, or put a file in place once. */
export type TemporaryTarget =
  | { readonly kind: 'download'; readonly accountId: string; readonly rev: string }
  | { readonly kind: 'upload'; readonly accountId: string; readonly commit: CommitInfo };

/** Links that work without a token for some hours; of each only a hash is kept. */
export interface TemporaryLinks {
  /** The link's secret. Clears old links away. */
  add(target: TemporaryTarget, nowMs: number, expiresMs: number): string;
  /** `'over'`: its time has passed, or it was used; `undefined`: there never was one, or long ago. */
  find(secret: string, nowMs: number): TemporaryTarget | 'over' | undefined;
  /** From now on it is over. */
  markUsed(secret: string): void;
}

/** How long a link that is over is still known as one: a day. */
const OVER_KEPT_MS = 24 * 60 * 60 * 1000;

export function temporaryLinksIn(database: Database): TemporaryLinks {
  const insert = database.prepare<[Uint8Array, string, number]>(
    'INSERT INTO temporary_links (token_hash, target, expires_ms) VALUES (?, ?, ?)',
  );
  const select = database.prepare<[Uint8Array], { target: string; expires_ms: number; used: number }>(
    'SELECT target, expires_ms, used FROM temporary_links WHERE token_hash = ?',
  );
  const use = database.prepare<[Uint8Array]>('UPDATE temporary_links SET used = 1 WHERE token_hash = ?');
  const forget = database.prepare<[number]>('DELETE FROM temporary_links WHERE expires_ms < ?');
  return {
    add(target, nowMs, expiresMs) {
      forget.run(nowMs - OVER_KEPT_MS);
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
  };
}
