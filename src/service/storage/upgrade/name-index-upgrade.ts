import type { MigrationProgress } from '../../../util/sqlite/migrations.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { wordsOf } from '../tree/name-words.ts';

/** Names indexed between two progress reports: about a second. */
const STEP_NAMES = 50_000;

const TABLES = ['entry', 'deletion'] as const;

/** The distinct names of a table's items. */
const NAMES = {
  entry: 'SELECT DISTINCT ns, name_key FROM entry WHERE true',
  deletion: 'SELECT DISTINCT ns, name_key FROM deletion WHERE NOT forgotten',
};

interface NameRow {
  readonly ns: number;
  readonly nameKey: string;
}

/** Defines the SQL function `words_of(name_key)`, which returns the words of a name's key as a JSON array. */
export function defineWordsOf(database: SqliteDatabase): void {
  database.function('words_of', { deterministic: true }, (nameKey) =>
    JSON.stringify([...wordsOf(String(nameKey))]),
  );
}

/** Adds the missing names of all items to the index of words. */
export function* indexNames(database: SqliteDatabase): Generator<MigrationProgress, void, undefined> {
  defineWordsOf(database);
  const count = (table: keyof typeof NAMES) =>
    Number(database.prepare(`SELECT count(*) FROM (${NAMES[table]})`).pluck().get());
  const total = count('entry') + count('deletion');
  let done = 0;
  for (const table of TABLES) {
    for (const names of indexTable(database, table)) {
      done += names;
      yield { what: 'index', unit: 'names', done, total };
    }
  }
}

/** Indexes the names of a table step by step; yields the size of each step. */
function* indexTable(
  database: SqliteDatabase,
  table: keyof typeof NAMES,
): Generator<number, void, undefined> {
  const page = `${NAMES[table]} AND (ns, name_key) > (@ns, @nameKey) ORDER BY ns, name_key LIMIT ${STEP_NAMES}`;
  const add = database.prepare<[NameRow]>(
    `INSERT OR IGNORE INTO word SELECT ns, value, name_key FROM (${page}), json_each(words_of(name_key))`,
  );
  const end = database.prepare<[NameRow], NameRow & { names: number }>(
    `SELECT ns, name_key AS nameKey, count(*) OVER () AS names FROM (${page}) ORDER BY ns DESC, name_key DESC LIMIT 1`,
  );
  for (let after: NameRow = { ns: 0, nameKey: '' }; ; ) {
    const last = end.get(after);
    if (!last) return;
    add.run(after);
    yield last.names;
    after = { ns: last.ns, nameKey: last.nameKey };
  }
}
