import { foldName, freePath, keyOf, type Path } from '../../util/path.ts';
import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { parentKeyOf } from './key-range.ts';

interface StaleRow {
  readonly drive: number;
  readonly key: string;
  readonly path: Path;
}

/** Gives rows the key that `keyOf` makes since it folds letters with a mark, like J̌, to the same key every time. */
export function foldKeys(database: SqliteDatabase): void {
  defineFolded(database);
  database.exec(`
    UPDATE OR IGNORE holds SET key = folded(path), parent_key = folded(parent_key) WHERE key <> folded(path);
    UPDATE OR IGNORE asides SET key = folded(path), parent_key = folded(parent_key) WHERE key <> folded(path);
  `);
}

/**
 * Puts held and set-aside files whose key is not that of their path where they are found. Step 3 has left those whose key
 * something else has: two names that were different once, as `J̌` and `ǰ`, are one by now. The file that could not be
 * found gets another name, as the service does with its own: neither of the two is lost.
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

/** Gives SQL the key of a path: `folded(path)`. */
function defineFolded(database: SqliteDatabase): void {
  database.function('folded', { deterministic: true }, (path) => foldName(String(path)));
}
