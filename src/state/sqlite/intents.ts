import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import { type Intents, intentOfText, textOfIntent } from '../intents.ts';
import type { Commits } from './commits.ts';

/** Intents as JSON: few, read when a drive is opened and when they are carried out. */
export function sqliteIntents(database: SqliteDatabase, drive: number, commits: Commits): Intents {
  const ids = database.prepare<[number], { id: string }>(
    'SELECT id FROM intents WHERE drive = ? ORDER BY position',
  );
  const get = database.prepare<[number, string], { text: string }>(
    'SELECT text FROM intents WHERE drive = ? AND id = ?',
  );
  const note = database.prepare('INSERT INTO intents (drive, id, text) VALUES (?, ?, ?)');
  const remove = database.prepare('DELETE FROM intents WHERE drive = ? AND id = ?');

  return {
    ids: async () => ids.all(drive).map(({ id }) => id),
    async get(id) {
      const row = get.get(drive, id);
      return row && intentOfText(row.text);
    },
    async note(intent) {
      await commits.run(() => note.run(drive, intent.id, textOfIntent(intent)));
    },
    remove: (done) =>
      commits.run(() => {
        for (const id of done) remove.run(drive, id);
      }),
  };
}
