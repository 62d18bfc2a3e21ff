import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { TAGS_MAX, type Tags } from '../tags.ts';

/** Returns the tags in a database. */
export function tagsIn(database: SqliteDatabase): Tags {
  const select = database
    .prepare<[string, string], string>(
      'SELECT tag_text FROM tags WHERE account_id = ? AND item_id = ? ORDER BY sequence',
    )
    .pluck();
  const insert = database.prepare<[string, string, string]>(
    'INSERT OR IGNORE INTO tags (account_id, item_id, tag_text) VALUES (?, ?, ?)',
  );
  const remove = database.prepare<[string, string, string]>(
    'DELETE FROM tags WHERE account_id = ? AND item_id = ? AND tag_text = ?',
  );
  const add = database.transaction((accountId: string, itemId: string, tag: string) => {
    const tags = select.all(accountId, itemId);
    if (!tags.includes(tag) && tags.length >= TAGS_MAX) return 'too-many';
    insert.run(accountId, itemId, tag);
    return 'added';
  });
  return {
    of: async (accountId, itemIds) => itemIds.map((itemId) => select.all(accountId, itemId)),
    add: async (...tag) => add.immediate(...tag),
    remove: async (accountId, itemId, tag) => remove.run(accountId, itemId, tag).changes > 0,
  };
}
