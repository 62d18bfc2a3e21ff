import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { AppPassword, AppPasswordStore } from '../app-passwords.ts';
import type { Commits } from './commits.ts';

type Row = Omit<AppPassword, 'usedMs'> & { readonly usedMs: number | null };

/** App passwords, in a table. */
export function sqliteAppPasswords(database: SqliteDatabase, commits: Commits): AppPasswordStore {
  const all = database.prepare<[string], Row>(
    `SELECT id, name, hash, created_ms AS createdMs, used_ms AS usedMs FROM app_passwords
     WHERE user = ? ORDER BY position`,
  );
  const count = database.prepare<[string], { readonly count: number }>(
    'SELECT count(*) AS count FROM app_passwords WHERE user = ?',
  );
  const add = database.prepare(
    `INSERT INTO app_passwords (user, id, name, hash, created_ms) VALUES (@user, @id, @name, @hash, @createdMs)`,
  );
  const use = database.prepare<[number, string, string]>(
    'UPDATE app_passwords SET used_ms = ? WHERE user = ? AND id = ?',
  );
  const remove = database.prepare<[string, string]>('DELETE FROM app_passwords WHERE user = ? AND id = ?');
  return {
    all: async (user) =>
      all.all(user).map(({ usedMs, ...password }) => ({ ...password, ...(usedMs !== null && { usedMs }) })),
    add: (user, { id, name, hash, createdMs }, countMax) =>
      commits.run(() => {
        if ((count.get(user)?.count ?? 0) >= countMax) return false;
        add.run({ user, id, name, hash, createdMs });
        return true;
      }),
    use: (user, id, usedMs) => commits.run(() => void use.run(usedMs, user, id), 'process-crash'),
    remove: (user, id) => commits.run(() => remove.run(user, id).changes > 0),
  };
}
