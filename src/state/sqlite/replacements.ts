import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { Replacement, Replacements } from '../replacements.ts';
import type { Commits } from './commits.ts';

type Row = Omit<Replacement, 'replacement'> & { readonly replacement: string | null };

/** Replacements, in a table that keeps its first name, `relocations`: a handful, read when a drive is opened. */
export function sqliteReplacements(database: SqliteDatabase, drive: number, commits: Commits): Replacements {
  const all = database.prepare<[number], Row>(
    `SELECT id, path, waiting_at AS waitingAt, purpose, replacement FROM relocations WHERE drive = ?
     ORDER BY id`,
  );
  const note = database.prepare(
    `INSERT OR REPLACE INTO relocations (drive, id, path, waiting_at, purpose, replacement)
     VALUES (@drive, @id, @path, @waitingAt, @purpose, @replacement)`,
  );
  const remove = database.prepare('DELETE FROM relocations WHERE drive = ? AND id = ?');

  return {
    all: async () =>
      all.all(drive).map(({ replacement, ...known }) => ({ ...known, ...(replacement && { replacement }) })),
    async note(replacement) {
      await commits.run(() => note.run({ replacement: null, ...replacement, drive }));
    },
    async remove(id) {
      await commits.run(() => remove.run(drive, id));
    },
  };
}
