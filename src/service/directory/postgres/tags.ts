import type { Pool } from 'pg';
import { changesOf, type Queries, rowsOf } from '../../postgres/queries.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { TAGS_MAX, type Tags } from '../tags.ts';

/** Returns the tags in a database. */
export function tagsIn(pool: Pool): Tags {
  return {
    of: (accountId, itemIds) => tagsOf(pool, accountId, itemIds),
    add: (accountId, itemId, tag) => inTransaction(pool, (on) => add(on, accountId, itemId, tag)),
    async remove(accountId, itemId, tag) {
      const sql = 'DELETE FROM davgate.tags WHERE account_id = $1 AND item_id = $2 AND tag_text = $3';
      return (await changesOf(pool, sql, accountId, itemId, tag)) > 0;
    },
  };
}

async function tagsOf(
  on: Queries,
  accountId: string,
  itemIds: readonly string[],
): Promise<readonly (readonly string[])[]> {
  const rows = await rowsOf<{ itemId: string; tags: string[] }>(
    on,
    `SELECT item_id AS "itemId", array_agg(tag_text ORDER BY sequence) AS tags
     FROM davgate.tags WHERE account_id = $1 AND item_id = ANY ($2) GROUP BY item_id`,
    accountId,
    itemIds,
  );
  const byItem = new Map(rows.map(({ itemId, tags }) => [itemId, tags]));
  return itemIds.map((itemId) => byItem.get(itemId) ?? []);
}

/** Adds a tag. The lock of the account lets no other process add one to the same item until this one is counted. */
async function add(
  on: Queries,
  accountId: string,
  itemId: string,
  tag: string,
): Promise<'added' | 'too-many'> {
  await on.query('SELECT FROM davgate.accounts WHERE account_id = $1 FOR NO KEY UPDATE', [accountId]);
  const [tags = []] = await tagsOf(on, accountId, [itemId]);
  if (tags.includes(tag)) return 'added';
  if (tags.length >= TAGS_MAX) return 'too-many';
  await on.query('INSERT INTO davgate.tags (account_id, item_id, tag_text) VALUES ($1, $2, $3)', [
    accountId,
    itemId,
    tag,
  ]);
  return 'added';
}
