import { foldName, freePath, keyOf, type Path } from '../../util/path.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { parentKeyOf } from './key-range.ts';

interface StaleRow {
  readonly drive: number;
  readonly key: string;
  readonly path: Path;
}

/** Gives rows the key that `keyOf` returns since it folds letters with a mark, like J̌, to the same key every time. */
export function foldKeys(database: SqliteDatabase): void {
  defineFolded(database);
  database.exec(`
    UPDATE OR IGNORE holds SET key = folded(path), parent_key = folded(parent_key) WHERE key <> folded(path);
    UPDATE OR IGNORE asides SET key = folded(path), parent_key = folded(parent_key) WHERE key <> folded(path);
  `);
}

/**
 * Moves placeholders and local files with an outdated key to their current key. Step 3 has left those whose new key is
 * taken: two names that once differed, like `J̌` and `ǰ`, are equal now. The file that could not be found is renamed,
 * as the service does with its own files, so that neither is lost.
 */
export function rekey(database: SqliteDatabase): void {
  defineFolded(database);
  for (const table of ['holds', 'asides']) {
    const stale = database
      .prepare<[], StaleRow>(
        `SELECT drive, key, path FROM ${table} WHERE key <> folded(path) ORDER BY drive, key`,
      )
      .all();
    const find = database.prepare<[number, string]>(`SELECT 1 FROM ${table} WHERE drive = ? AND key = ?`);
    const place = database.prepare<[string, string, Path, number, string]>(
      `UPDATE ${table} SET key = ?, parent_key = ?, path = ? WHERE drive = ? AND key = ?`,
    );
    for (const { drive, key, path } of stale) {
      const free = freePath(path, (candidate) => find.get(drive, keyOf(candidate)) === undefined);
      place.run(keyOf(free), parentKeyOf(free), free, drive, key);
    }
  }
}

/** Defines the SQL function `folded(path)`, which returns the key of a path. */
function defineFolded(database: SqliteDatabase): void {
  database.function('folded', { deterministic: true }, (path) => foldName(String(path)));
}
