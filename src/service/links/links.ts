import { randomBytes } from 'node:crypto';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';

export type LinkVisibility = 'public' | 'password' | 'no_one';

/** A shared link. It belongs to the item's id, and so survives moves; while the item is gone it serves nothing. */
export interface Link {
  /** The part of the URL that identifies the link. */
  readonly token: string;
  /** The `rlkey` of the URL, without which the token opens nothing. */
  readonly rlkey: string;
  readonly accountId: string;
  readonly itemId: string;
  readonly itemKind: 'file' | 'folder';
  readonly visibility: LinkVisibility;
  readonly passwordHash?: Uint8Array;
  readonly expiresMs?: number;
  readonly allowDownload: boolean;
  /** Larger for each later link; a listing continues after it. */
  readonly sequence: number;
}

type NewLink = Omit<Link, 'token' | 'rlkey' | 'sequence'>;

export interface Links {
  add(link: NewLink): Link;
  withToken(token: string): Link | undefined;
  ofItem(accountId: string, itemId: string): Link | undefined;
  /** Returns links of the account made after the one numbered `afterSequence`, oldest first. */
  ofAccount(accountId: string, afterSequence: number, limit: number): readonly Link[];
  /** Changes visibility, password, expiry and downloads of the link with this token. */
  change(link: Link): void;
  remove(token: string): void;
  /** Removes up to `limit` links that expired long ago. Returns how many. */
  forgetOld(nowMs: number, limit: number): number;
}

interface Row {
  readonly sequence: number;
  readonly token: string;
  readonly rlkey: string;
  readonly account_id: string;
  readonly item_id: string;
  readonly item_kind: 'file' | 'folder';
  readonly visibility: LinkVisibility;
  readonly password_hash: Buffer | null;
  readonly expires_ms: number | null;
  readonly allow_download: number;
}

/** Size of each half of a link's URL, in bytes: 128 bits cannot be guessed. */
const KEY_BYTES = 16;

/** How long an expired link is kept, in ms, so that its page says that it has expired: 30 days. */
const EXPIRED_KEPT_MS = 30 * 24 * 60 * 60 * 1000;

export function linksIn(database: SqliteDatabase): Links {
  const insert = database.prepare<
    [string, string, string, string, string, string, Uint8Array | null, number | null, number],
    Row
  >(
    `INSERT INTO links
       (token, rlkey, account_id, item_id, item_kind, visibility, password_hash, expires_ms, allow_download)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING *`,
  );
  const byToken = database.prepare<[string], Row>('SELECT * FROM links WHERE token = ?');
  const byItem = database.prepare<[string, string], Row>(
    'SELECT * FROM links WHERE account_id = ? AND item_id = ?',
  );
  const byAccount = database.prepare<[string, number, number], Row>(
    'SELECT * FROM links WHERE account_id = ? AND sequence > ? ORDER BY sequence LIMIT ?',
  );
  const update = database.prepare<[string, Uint8Array | null, number | null, number, string]>(
    `UPDATE links SET visibility = ?, password_hash = ?, expires_ms = ?, allow_download = ? WHERE token = ?`,
  );
  const forget = database.prepare<[before: number, limit: number]>(
    `DELETE FROM links WHERE sequence IN (SELECT sequence FROM links WHERE expires_ms < ? LIMIT ?)`,
  );
  const deleteToken = database.prepare<[string]>('DELETE FROM links WHERE token = ?');
  return {
    add(link) {
      const row = insert.get(
        randomBytes(KEY_BYTES).toString('hex'),
        randomBytes(KEY_BYTES).toString('hex'),
        link.accountId,
        link.itemId,
        link.itemKind,
        link.visibility,
        link.passwordHash ?? null,
        link.expiresMs ?? null,
        link.allowDownload ? 1 : 0,
      );
      if (!row) throw new Error('SQLite answered an INSERT … RETURNING with no row');
      return linkOf(row);
    },
    withToken(token) {
      const row = byToken.get(token);
      return row && linkOf(row);
    },
    ofItem(accountId, itemId) {
      const row = byItem.get(accountId, itemId);
      return row && linkOf(row);
    },
    ofAccount: (accountId, afterSequence, limit) =>
      byAccount.all(accountId, afterSequence, limit).map(linkOf),
    change({ visibility, passwordHash, expiresMs, allowDownload, token }) {
      update.run(visibility, passwordHash ?? null, expiresMs ?? null, allowDownload ? 1 : 0, token);
    },
    remove(token) {
      deleteToken.run(token);
    },
    forgetOld: (nowMs, limit) => forget.run(nowMs - EXPIRED_KEPT_MS, limit).changes,
  };
}

function linkOf(row: Row): Link {
  return {
    token: row.token,
    rlkey: row.rlkey,
    accountId: row.account_id,
    itemId: row.item_id,
    itemKind: row.item_kind,
    visibility: row.visibility,
    ...(row.password_hash && { passwordHash: row.password_hash }),
    ...(row.expires_ms !== null && { expiresMs: row.expires_ms }),
    allowDownload: row.allow_download === 1,
    sequence: row.sequence,
  };
}
