import { keyOf, type Path } from '../../util/path.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { Placeholder, PlaceholderStore } from '../placeholders.ts';
import type { Commits } from './commits.ts';
import { type KeyRange, parentKeyOf, WITHIN, within } from './key-range.ts';

/** Columns under the names of `Placeholder`. */
const COLUMNS = 'path, id, rev, modified_ms AS modifiedMs, until_ms AS untilMs';

/**
 * Placeholders, in a table that keeps its first name, `holds`. Each query is one lookup in an index. Their keys are in
 * memory too: there are few, and each write and listing asks for them.
 */
export function sqlitePlaceholders(
  database: SqliteDatabase,
  drive: number,
  commits: Commits,
): PlaceholderStore {
  const get = database.prepare<[number, string], Placeholder>(
    `SELECT ${COLUMNS} FROM holds WHERE drive = ? AND key = ?`,
  );
  const inFolder = database.prepare<[number, string, string], Placeholder>(
    `SELECT ${COLUMNS} FROM holds WHERE drive = ? AND parent_key = ? AND key <> ? ORDER BY key`,
  );
  const below = database.prepare<[KeyRange & { drive: number }], Placeholder>(
    `SELECT ${COLUMNS} FROM holds WHERE drive = @drive AND ${WITHIN} ORDER BY key`,
  );
  const put = database.prepare(
    `INSERT OR REPLACE INTO holds (drive, key, parent_key, path, id, rev, modified_ms, until_ms)
     VALUES (@drive, @key, @parentKey, @path, @id, @rev, @modifiedMs, @untilMs)`,
  );
  const remove = database.prepare('DELETE FROM holds WHERE drive = ? AND key = ? AND id = ?');
  const allKeys = database.prepare<[number], string>('SELECT key FROM holds WHERE drive = ?').pluck();
  let keys = new Set<string>();
  commits.mirror(() => {
    keys = new Set(allKeys.all(drive));
  });

  return {
    get: async (path) => (keys.has(keyOf(path)) ? get.get(drive, keyOf(path)) : undefined),
    // The root is its own parent, but not its own child.
    in: async (folder) => (keys.size === 0 ? [] : inFolder.all(drive, keyOf(folder), keyOf(folder))),
    within: async (path: Path) => (keys.size === 0 ? [] : below.all({ drive, ...within(path) })),
    put: (placeholder) =>
      commits.run(() => {
        const key = keyOf(placeholder.path);
        put.run({ ...placeholder, drive, key, parentKey: parentKeyOf(placeholder.path) });
        keys.add(key);
      }),
    forget: ({ path, id }) =>
      commits.run(() => {
        const wasThere = remove.run(drive, keyOf(path), id).changes > 0;
        if (wasThere) keys.delete(keyOf(path));
        return wasThere;
      }),
  };
}
