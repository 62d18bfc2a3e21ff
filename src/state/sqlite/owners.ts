import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { isUnchanged, type Owner, type Owners, treeOf } from '../owners.ts';
import type { Commits } from './commits.ts';

/**
 * Owners, in the table of drives. State of another account or namespace is kept under a name that no drive has, and is restored when
 * that one is configured again.
 */
export function sqliteOwners(database: SqliteDatabase, commits: Commits): Owners {
  const get = database.prepare<[string], Owner>(
    `SELECT account_id AS accountId, account_email AS email, account_root AS root FROM drives
     WHERE name = ? AND account_id IS NOT NULL`,
  );
  const rename = database.prepare<[string, string]>('UPDATE drives SET name = ? WHERE name = ?');
  const add = database.prepare<[string]>('INSERT OR IGNORE INTO drives (name) VALUES (?)');
  const note = database.prepare(
    `UPDATE drives SET account_id = @accountId, account_email = @email, account_root = @root WHERE name = @drive`,
  );
  return {
    get: async (drive) => get.get(drive),
    set: (drive, owner) =>
      commits.run(() => {
        const before = get.get(drive);
        // A start on a full disk must not write.
        if (isUnchanged(before, owner)) return;
        if (before && treeOf(before) !== treeOf(owner)) {
          rename.run(nameAside(drive, before), drive);
          rename.run(drive, nameAside(drive, owner));
        }
        add.run(drive);
        note.run({ ...owner, drive });
      }),
  };
}

/** Returns the name for another owner's state. A drive's name has no spaces. */
function nameAside(drive: string, owner: Owner): string {
  return `${drive} of ${treeOf(owner)}`;
}
