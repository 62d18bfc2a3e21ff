import type { Pool } from 'pg';
import {
  EXPIRED_KEPT_MS,
  isExpired,
  type Link,
  type Links,
  type LinkVisibility,
  type NewLink,
  newLinkKey,
} from '../../links/links.ts';
import { deleteUnlocked, findRow, type Queries, rowsOf } from '../../postgres/queries.ts';
import { inTransaction } from '../../postgres/transaction.ts';

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
  readonly allow_download: boolean;
}

/** Adds a link, in place of one of the same item that has expired. Returns no row if the item has a valid one. */
const ADD = `
  INSERT INTO davgate.links
    (token, rlkey, account_id, item_id, item_kind, visibility, password_hash, expires_ms, allow_download)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
  ON CONFLICT (account_id, item_id) DO UPDATE SET
    sequence = DEFAULT, token = excluded.token, rlkey = excluded.rlkey, item_kind = excluded.item_kind,
    visibility = excluded.visibility, password_hash = excluded.password_hash, expires_ms = excluded.expires_ms,
    allow_download = excluded.allow_download
  WHERE links.expires_ms <= $10
  RETURNING *`;

/** Returns the links in a database. */
export function linksIn(pool: Pool): Links {
  return {
    add: (nowMs, link) => add(pool, nowMs, link),
    async withToken(token) {
      const row = await findRow<Row>(pool, 'SELECT * FROM davgate.links WHERE token = $1', token);
      return row && linkOf(row);
    },
    async ofItems(accountId, itemIds) {
      const rows = await rowsOf<Row>(
        pool,
        'SELECT * FROM davgate.links WHERE account_id = $1 AND item_id = ANY ($2)',
        accountId,
        itemIds,
      );
      const links = new Map(rows.map((row) => [row.item_id, linkOf(row)]));
      return itemIds.flatMap((itemId) => links.get(itemId) ?? []);
    },
    async ofAccount(accountId, afterSequence, limit) {
      const rows = await rowsOf<Row>(
        pool,
        'SELECT * FROM davgate.links WHERE account_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3',
        accountId,
        afterSequence,
        limit,
      );
      return rows.map(linkOf);
    },
    change: (token, changed) => inTransaction(pool, (on) => change(on, token, changed)),
    async remove(token) {
      await pool.query('DELETE FROM davgate.links WHERE token = $1', [token]);
    },
    forgetOld: (nowMs, limit) =>
      deleteUnlocked(
        pool,
        { table: 'links', key: 'sequence', condition: 'expires_ms < $1', values: [nowMs - EXPIRED_KEPT_MS] },
        limit,
      ),
  };
}

/** Looks again if the link that was in the way has been removed, or has been given an earlier expiry. */
async function add(
  on: Queries,
  nowMs: number,
  link: NewLink,
): Promise<{ readonly link: Link; readonly isNew: boolean }> {
  const { accountId, itemId, itemKind } = link;
  for (;;) {
    const key = [newLinkKey(), newLinkKey(), accountId, itemId, itemKind];
    const [added] = await rowsOf<Row>(on, ADD, ...key, ...changeableOf(link), nowMs);
    if (added) return { link: linkOf(added), isNew: true };
    const row = await findRow<Row>(
      on,
      'SELECT * FROM davgate.links WHERE account_id = $1 AND item_id = $2',
      accountId,
      itemId,
    );
    if (row && !isExpired(linkOf(row), nowMs)) return { link: linkOf(row), isNew: false };
  }
}

async function change(on: Queries, token: string, changed: (link: Link) => Link): Promise<Link | undefined> {
  const row = await findRow<Row>(on, 'SELECT * FROM davgate.links WHERE token = $1 FOR NO KEY UPDATE', token);
  if (!row) return undefined;
  const link = changed(linkOf(row));
  await on.query(
    `UPDATE davgate.links SET visibility = $2, password_hash = $3, expires_ms = $4, allow_download = $5
     WHERE token = $1`,
    [token, ...changeableOf(link)],
  );
  return link;
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
    allowDownload: row.allow_download,
    sequence: row.sequence,
  };
}

/** Returns the changeable columns of a link, in the order of the statements above. */
function changeableOf({ visibility, passwordHash, expiresMs, allowDownload }: NewLink): readonly unknown[] {
  return [visibility, passwordHash ?? null, expiresMs ?? null, allowDownload];
}
