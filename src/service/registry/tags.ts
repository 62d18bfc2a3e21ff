import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';

/** Maximum number of tags of one item, as at the real service. */
const TAGS_MAX = 20;

/** Tags of files and folders, by user. They belong to the item's id, and so survive moves. */
export interface Tags {
  /** Returns the tags in the order in which they were added. */
  of(accountId: string, itemId: string): readonly string[];
  /** Adds a tag; adding one again has no effect. */
  add(accountId: string, itemId: string, tag: string): 'added' | 'too-many';
  /** Removes a tag. Returns whether the item had it. */
  remove(accountId: string, itemId: string, tag: string): boolean;
}

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
  return {
    of: (accountId, itemId) => select.all(accountId, itemId),
    add: database.transaction((accountId: string, itemId: string, tag: string) => {
      const tags = select.all(accountId, itemId);
      if (!tags.includes(tag) && tags.length >= TAGS_MAX) return 'too-many';
      insert.run(accountId, itemId, tag);
      return 'added';
    }).immediate,
    remove: (accountId, itemId, tag) => remove.run(accountId, itemId, tag).changes > 0,
  };
}
