import type { MigrationProgress } from '../../../util/sqlite/migrations.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';

/** Rows copied between two progress reports: less than a second. */
const STEP_ROWS = 50_000;

const COLUMNS = 'ns, parent, name_key, name, path, id, seq, revision, returned';

/** Indexes; each takes about a second for a million rows. */
const INDEXES = [
  'CREATE INDEX entry_change ON entry (ns, seq)',
  'CREATE INDEX entry_child_change ON entry (ns, parent, seq)',
  'CREATE INDEX entry_revision ON entry (revision)',
  'CREATE INDEX entry_name ON entry (ns, name_key)',
  'CREATE INDEX entry_id ON entry (id)',
];

interface Key {
  readonly ns: number;
  readonly parent: string;
  readonly nameKey: string;
}

/**
 * Recreates the table of entries without unique ids, because SQLite drops a UNIQUE only with its table. Reports no
 * progress for an empty table, which every new data directory has.
 */
export function* allowEqualIds(database: SqliteDatabase): Generator<MigrationProgress, void, undefined> {
  const total = Number(database.prepare('SELECT count(*) FROM entry').pluck().get());
  database.exec(`
    CREATE TABLE entry_copy (
      ns INTEGER NOT NULL,
      parent TEXT NOT NULL,
      name_key TEXT NOT NULL,
      name TEXT NOT NULL,
      path TEXT NOT NULL,
      id TEXT NOT NULL,
      seq INTEGER NOT NULL,
      -- NULL makes it a folder.
      revision INTEGER REFERENCES revision,
      returned INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (ns, parent, name_key)
    ) STRICT, WITHOUT ROWID`);
  yield* copyRows(database, total);
  database.exec('DROP TABLE entry; ALTER TABLE entry_copy RENAME TO entry');
  for (const [before, index] of INDEXES.entries()) {
    database.exec(index);
    if (total > 0) yield { what: 'entries', unit: 'indexes', done: before + 1, total: INDEXES.length };
  }
}

function* copyRows(database: SqliteDatabase, total: number): Generator<MigrationProgress, void, undefined> {
  const page = `WHERE (ns, parent, name_key) > (@ns, @parent, @nameKey) ORDER BY ns, parent, name_key LIMIT ${STEP_ROWS}`;
  const copy = database.prepare<[Key]>(`INSERT INTO entry_copy SELECT ${COLUMNS} FROM entry ${page}`);
  const end = database.prepare<[], Key>(
    `SELECT ns, parent, name_key AS nameKey FROM entry_copy ORDER BY ns DESC, parent DESC, name_key DESC LIMIT 1`,
  );
  let done = 0;
  for (let after: Key | undefined = { ns: 0, parent: '', nameKey: '' }; after; ) {
    const { changes } = copy.run(after);
    if (changes === 0) return;
    done += changes;
    yield { what: 'entries', unit: 'rows', done, total };
    after = end.get();
  }
}
