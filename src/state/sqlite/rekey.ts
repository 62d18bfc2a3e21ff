import { freePath, keyOf, type Path } from '../../util/path.ts';
import type { SqliteDatabase } from '../../util/sqlite.ts';
import { parentKeyOf } from './key-range.ts';

interface StaleRow {
  readonly drive: number;
  readonly key: string;
  readonly path: Path;
}

/**
 * Puts held and set-aside files whose key is not that of their path where they are found. Step 3 has left those whose key
 * something else has: two names that were different once, as `J̌` and `ǰ`, are one by now. The file that could not be
 * found gets another name, as the service does with its own: neither of the two is lost.
 */
export function rekey(database: SqliteDatabase): void {
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
