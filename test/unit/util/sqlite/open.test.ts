import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSqlite, openSqliteToRead } from '../../../../src/util/sqlite/open.ts';
import type { SqliteDatabase } from '../../../../src/util/sqlite/sqlite.ts';

let directory: string;
let file: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'davgate-sqlite-'));
  file = join(directory, 'test.sqlite');
  const database = openSqlite(file);
  database.exec(`
    CREATE TABLE person (name TEXT PRIMARY KEY, town INTEGER) STRICT;
    CREATE TABLE town (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT;
    INSERT INTO town VALUES (1, 'Ulm');
    INSERT INTO person VALUES ('Ann', 1), ('5', 1)`);
  database.close();
});
afterAll(() => rm(directory, { recursive: true }));

/** Returns the shortest processor time of three rounds, in µs. */
function leastMicros(round: () => void): number {
  const rounds = Array.from({ length: 3 }, () => {
    const before = process.cpuUsage();
    round();
    const { user, system } = process.cpuUsage(before);
    return user + system;
  });
  return Math.min(...rounds);
}

test.each([
  ['openSqlite', openSqlite],
  ['openSqliteToRead', openSqliteToRead],
])(
  'a join of a database of %s costs about as much with a new parameter each time as with a constant',
  (_, open) => {
    const database: SqliteDatabase = open(file);
    try {
      const joined = 'SELECT * FROM person LEFT JOIN town ON town.id = person.town WHERE person.name =';
      const constant = database.prepare(`${joined} 'Ann' LIMIT 3`);
      const parameter = database.prepare(`${joined} ? LIMIT ?`);
      const named = database.prepare(`${joined} @name LIMIT @limit`);
      const rounds = Array.from({ length: 1000 }, (_, index) => ({ name: `${index}`, limit: 1 + index }));
      const leastOf = (run: (row: { name: string; limit: number }) => unknown) =>
        leastMicros(() => {
          for (const row of rounds) run(row);
        });
      // Planning the query again takes 20 to 50 times as long as the query.
      const maximum = 8 * leastOf(() => constant.all());
      expect(leastOf(({ name, limit }) => parameter.all(name, limit))).toBeLessThan(maximum);
      expect(leastOf((row) => named.all(row))).toBeLessThan(maximum);
    } finally {
      database.close();
    }
  },
);

test('a number as a parameter is compared with a text column as text', () => {
  const database = openSqliteToRead(file);
  try {
    expect(database.prepare('SELECT town FROM person WHERE name = ?').all(5)).toEqual([]);
    expect(database.prepare('SELECT town FROM person WHERE name = ?').all('5')).toEqual([{ town: 1 }]);
  } finally {
    database.close();
  }
});
