import type { GuessCounts, Guesses, GuessKeys } from '../../../http/guess-counter.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import type { GuessRows } from '../guess-rows.ts';

/** Returns the wrong passwords in a database. */
export function guessRowsIn(database: SqliteDatabase): GuessRows {
  const select = database.prepare<[string], Guesses>(
    'SELECT wrong, expires_ms AS expiresMs FROM guesses WHERE guess_key = ?',
  );
  const put = database.prepare<[Guesses & { readonly key: string }]>(
    `INSERT INTO guesses (guess_key, wrong, expires_ms) VALUES (@key, @wrong, @expiresMs)
     ON CONFLICT (guess_key) DO UPDATE SET wrong = excluded.wrong, expires_ms = excluded.expires_ms`,
  );
  const remove = database.prepare<[string]>('DELETE FROM guesses WHERE guess_key = ?');
  const forget = database.prepare<[before: number, limit: number]>(
    'DELETE FROM guesses WHERE guess_key IN (SELECT guess_key FROM guesses WHERE expires_ms <= ? LIMIT ?)',
  );
  const find = (keys: GuessKeys) => ({ name: select.get(keys.name), client: select.get(keys.client) });
  const update = database.transaction((keys: GuessKeys, change: (counts: GuessCounts) => GuessCounts) => {
    const before = find(keys);
    const after = change(before);
    for (const which of ['name', 'client'] as const) {
      const guesses = after[which];
      if (guesses === before[which]) continue;
      if (guesses) put.run({ ...guesses, key: keys[which] });
      else remove.run(keys[which]);
    }
    return before;
  });
  return {
    find: async (keys) => find(keys),
    update: async (keys, change) => withoutFlush(database, () => update.immediate(keys, change)),
    forgetOld: async (nowMs, limit) => forget.run(nowMs, limit).changes,
  };
}

/**
 * Runs `work` without waiting for the disk at its commits: a right password is counted and taken back too, and must not
 * be slow.
 */
function withoutFlush<T>(database: SqliteDatabase, work: () => T): T {
  database.pragma('synchronous = NORMAL');
  try {
    return work();
  } finally {
    database.pragma('synchronous = FULL');
  }
}
