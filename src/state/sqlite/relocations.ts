import type { Relocation, Relocations } from '../relocations.ts';
import type { Commits } from './commits.ts';
import type { SqliteDatabase } from './database.ts';

/** Relocations: a handful at most, read when a drive is opened. */
export function sqliteRelocations(database: SqliteDatabase, drive: number, commits: Commits): Relocations {
  const all = database.prepare<[number], Relocation>(
    'SELECT id, path, waiting_at AS waitingAt, purpose FROM relocations WHERE drive = ? ORDER BY id',
  );
  const note = database.prepare(
    `INSERT OR REPLACE INTO relocations (drive, id, path, waiting_at, purpose)
     VALUES (@drive, @id, @path, @waitingAt, @purpose)`,
  );
  const crossOut = database.prepare('DELETE FROM relocations WHERE drive = ? AND id = ?');

  return {
    all: async () => all.all(drive),
    async note(relocation) {
      await commits.run(() => note.run({ ...relocation, drive }));
    },
    async crossOut(id) {
      await commits.run(() => crossOut.run(drive, id));
    },
  };
}
