import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { isUnchanged, type Owner, type Owners } from '../../owners.ts';
import type { Commits } from '../commits.ts';

/** Owners, beside the writes themselves: the state may be elsewhere, and has an owner of its own. */
export function journalOwners(database: SqliteDatabase, commits: Commits): Owners {
  const get = database.prepare<[string], Owner>(
    'SELECT account_id AS accountId, email, root FROM owners WHERE drive = ?',
  );
  const put = database.prepare(
    'INSERT OR REPLACE INTO owners (drive, account_id, email, root) VALUES (@drive, @accountId, @email, @root)',
  );
  return {
    get: async (drive) => get.get(drive),
    set: (drive, owner) =>
      commits.run(() => {
        // A start on a full disk must not write.
        if (!isUnchanged(get.get(drive), owner)) put.run({ ...owner, drive });
      }),
  };
}
