import type { SqliteDatabase } from '../../util/sqlite/sqlite.ts';
import type { SetTime, Times } from '../times.ts';
import { ById } from './by-id.ts';
import type { Commits } from './commits.ts';

/** Approximate memory of one time, in bytes: an object, its revision and its place in the cache. */
const TIME_BYTES = 160;

/** Set times by id; some clients set one for every file they upload. */
export function sqliteTimes(database: SqliteDatabase, drive: number, commits: Commits): Times {
  const ids = database.prepare<[number], { id: string }>('SELECT id FROM times WHERE drive = ?');
  const of = database.prepare<[number, string], SetTime>(
    'SELECT rev, modified_ms AS modifiedMs FROM times WHERE drive = ? AND id = ?',
  );
  const set = database.prepare(
    'INSERT OR REPLACE INTO times (drive, id, rev, modified_ms) VALUES (?, ?, ?, ?)',
  );
  const remove = database.prepare('DELETE FROM times WHERE drive = ? AND id = ?');

  const byId = new ById<SetTime>(
    (id) => of.get(drive, id),
    () => TIME_BYTES,
  );
  commits.mirror(() => byId.reset(ids.all(drive).map((row) => row.id)));

  return {
    ...byId.reads,
    set: (id, time) =>
      commits.run(() => {
        set.run(drive, id, time.rev, time.modifiedMs);
        byId.changed(id, true);
      }),
    forget: (unwanted) =>
      commits.run(() => {
        for (const id of unwanted) {
          if (!byId.has(id)) continue;
          remove.run(drive, id);
          byId.changed(id, false);
        }
      }),
  };
}
