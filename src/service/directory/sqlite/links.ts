import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import {
  EXPIRED_KEPT_MS,
  isExpired,
  type Link,
  type Links,
  type LinkVisibility,
  type NewLink,
  newLinkKey,
} from '../../links/links.ts';

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

/** Returns the links in a database. */
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
  const add = database.transaction((nowMs: number, link: NewLink) => {
    const existing = byItem.get(link.accountId, link.itemId);
    if (existing && !isExpired(linkOf(existing), nowMs)) return { link: linkOf(existing), isNew: false };
    if (existing) deleteToken.run(existing.token);
    const row = insert.get(
      newLinkKey(),
      newLinkKey(),
      link.accountId,
      link.itemId,
      link.itemKind,
      link.visibility,
      link.passwordHash ?? null,
      link.expiresMs ?? null,
      link.allowDownload ? 1 : 0,
    );
    if (!row) throw new Error('SQLite answered an INSERT … RETURNING with no row');
    return { link: linkOf(row), isNew: true };
  });
  const change = database.transaction((token: string, changed: (link: Link) => Link) => {
    const row = byToken.get(token);
    if (!row) return undefined;
    const link = changed(linkOf(row));
    const { visibility, passwordHash, expiresMs, allowDownload } = link;
    update.run(visibility, passwordHash ?? null, expiresMs ?? null, allowDownload ? 1 : 0, token);
    return link;
  });

  return {
    add: async (nowMs, link) => add.immediate(nowMs, link),
    async withToken(token) {
      const row = byToken.get(token);
      return row && linkOf(row);
    },
    ofItems: async (accountId, itemIds) =>
      itemIds.flatMap((itemId) => byItem.get(accountId, itemId) ?? []).map(linkOf),
    ofAccount: async (accountId, afterSequence, limit) =>
      byAccount.all(accountId, afterSequence, limit).map(linkOf),
    change: async (token, changed) => change.immediate(token, changed),
    async remove(token) {
      deleteToken.run(token);
    },
    forgetOld: async (nowMs, limit) => forget.run(nowMs - EXPIRED_KEPT_MS, limit).changes,
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
