import type { MigrationProgress } from '../../../util/sqlite/migrations.ts';
import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';

/** Rows copied between two progress reports: less than a second. */
const STEP_ROWS = 50_000;

/** Indexes; each takes about a second for a million rows. */
const INDEXES = [
  'CREATE INDEX revision_path ON revision (ns, parent, name_key, number)',
  'CREATE INDEX revision_id ON revision (id, number)',
  'CREATE INDEX revision_content ON revision (content)',
  'CREATE INDEX entry_change ON entry (ns, seq)',
  'CREATE INDEX entry_child_change ON entry (ns, parent, seq)',
  'CREATE INDEX entry_revision ON entry (ns, revision)',
  'CREATE INDEX entry_name ON entry (ns, name_key)',
  'CREATE INDEX entry_id ON entry (id)',
];

/**
 * Gives each namespace change numbers of its own. All numbers so far stay as they are, and each namespace continues
 * after the last one of all, so that revisions and cursors stay valid. Tables whose keys are numbers get the namespace
 * into their keys; SQLite changes a key only with its table. Reports no progress for an empty table.
 */
export function* numberPerNamespace(database: SqliteDatabase): Generator<MigrationProgress, void, undefined> {
  database.exec(`
    ALTER TABLE namespace ADD COLUMN tick INTEGER NOT NULL DEFAULT 0;
    UPDATE namespace SET tick = (SELECT value FROM setting WHERE name = 'tick');
    DELETE FROM setting WHERE name = 'tick'`);
  rekeyQueues(database);
  yield* copyFiles(database);
}

/** Recreates the tables of work in progress, which have few rows. */
function rekeyQueues(database: SqliteDatabase): void {
  database.exec(`
    CREATE TABLE doomed_copy (
      ns INTEGER NOT NULL REFERENCES namespace,
      number INTEGER NOT NULL,
      content INTEGER NOT NULL,
      PRIMARY KEY (ns, number)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO doomed_copy SELECT ns, number, content FROM doomed;
    DROP TABLE doomed;
    ALTER TABLE doomed_copy RENAME TO doomed;

    CREATE TABLE removal_copy (
      ns INTEGER NOT NULL REFERENCES namespace,
      seq INTEGER NOT NULL,
      key TEXT NOT NULL,
      deleted_ms INTEGER NOT NULL,
      forever INTEGER NOT NULL,
      phase INTEGER NOT NULL,
      at_parent TEXT NOT NULL,
      at_name TEXT NOT NULL,
      at_number INTEGER NOT NULL,
      -- Whether the files still exist at another path, and count there.
      moved INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (ns, seq)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO removal_copy
      SELECT ns, seq, key, deleted_ms, forever, phase, at_parent, at_name, at_number, moved FROM removal;
    DROP TABLE removal;
    ALTER TABLE removal_copy RENAME TO removal;
    CREATE INDEX removal_key ON removal (ns, key, seq);
    CREATE INDEX removal_age ON removal (seq);

    CREATE TABLE staging_copy (
      ns INTEGER NOT NULL,
      first INTEGER NOT NULL,
      last INTEGER NOT NULL,
      -- Whether its files are new ones, which count for the quota.
      copies INTEGER NOT NULL,
      -- Bytes charged for its rows so far.
      charged_bytes INTEGER NOT NULL DEFAULT 0,
      -- Its rows are hidden until it is published.
      published INTEGER NOT NULL DEFAULT 0,
      -- Deletions at the paths of its rows are dropped up to this number.
      at_number INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (ns, first)
    ) STRICT, WITHOUT ROWID;
    INSERT INTO staging_copy SELECT ns, first, last, copies, charged_bytes, published, at_number FROM staging;
    DROP TABLE staging;
    ALTER TABLE staging_copy RENAME TO staging`);
}

/** Recreates the tables of revisions and of entries, which refer to them. */
function* copyFiles(database: SqliteDatabase): Generator<MigrationProgress, void, undefined> {
  database.exec(`
    CREATE TABLE revision_copy (
      ns INTEGER NOT NULL REFERENCES namespace,
      number INTEGER NOT NULL,
      parent TEXT NOT NULL,
      name_key TEXT NOT NULL,
      name TEXT NOT NULL,
      path TEXT NOT NULL,
      id TEXT NOT NULL,
      content INTEGER NOT NULL REFERENCES content,
      client_ms INTEGER NOT NULL,
      server_ms INTEGER NOT NULL,
      PRIMARY KEY (ns, number)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE entry_copy (
      ns INTEGER NOT NULL REFERENCES namespace,
      parent TEXT NOT NULL,
      name_key TEXT NOT NULL,
      name TEXT NOT NULL,
      path TEXT NOT NULL,
      id TEXT NOT NULL,
      seq INTEGER NOT NULL,
      -- NULL makes it a folder.
      revision INTEGER,
      returned INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (ns, parent, name_key),
      FOREIGN KEY (ns, revision) REFERENCES revision_copy (ns, number)
    ) STRICT, WITHOUT ROWID`);
  yield* copyRevisions(database);
  yield* copyEntries(database);
  // Renaming a table renames it in foreign keys too.
  database.exec(`
    DROP TABLE entry;
    DROP TABLE revision;
    ALTER TABLE revision_copy RENAME TO revision;
    ALTER TABLE entry_copy RENAME TO entry`);
  const hasRows = database.prepare('SELECT 1 FROM entry UNION ALL SELECT 1 FROM revision LIMIT 1').get();
  for (const [before, index] of INDEXES.entries()) {
    database.exec(index);
    if (hasRows)
      yield { what: 'files and folders', unit: 'indexes', done: before + 1, total: INDEXES.length };
  }
}

function* copyRevisions(database: SqliteDatabase): Generator<MigrationProgress, void, undefined> {
  const total = countOf(database, 'revision');
  const columns = 'ns, number, parent, name_key, name, path, id, content, client_ms, server_ms';
  const copy = database.prepare<[number]>(
    `INSERT INTO revision_copy SELECT ${columns} FROM revision WHERE number > ? ORDER BY number LIMIT ${STEP_ROWS}`,
  );
  const end = database.prepare<[number], { last: number | null }>(
    `SELECT max(number) AS last FROM (
       SELECT number FROM revision WHERE number > ? ORDER BY number LIMIT ${STEP_ROWS})`,
  );
  let done = 0;
  for (let after = 0; done < total; ) {
    const { last } = end.get(after) ?? {};
    done += copy.run(after).changes;
    yield { what: 'revisions', unit: 'rows', done, total };
    after = last ?? after;
  }
}

interface EntryKey {
  readonly ns: number;
  readonly parent: string;
  readonly nameKey: string;
}

function* copyEntries(database: SqliteDatabase): Generator<MigrationProgress, void, undefined> {
  const total = countOf(database, 'entry');
  const columns = 'ns, parent, name_key, name, path, id, seq, revision, returned';
  const copy = database.prepare<[EntryKey]>(
    `INSERT INTO entry_copy SELECT ${columns} FROM entry
     WHERE (ns, parent, name_key) > (@ns, @parent, @nameKey) ORDER BY ns, parent, name_key LIMIT ${STEP_ROWS}`,
  );
  const end = database.prepare<[], EntryKey>(
    'SELECT ns, parent, name_key AS nameKey FROM entry_copy ORDER BY ns DESC, parent DESC, name_key DESC LIMIT 1',
  );
  let done = 0;
  for (let after: EntryKey | undefined = { ns: 0, parent: '', nameKey: '' }; after && done < total; ) {
    done += copy.run(after).changes;
    yield { what: 'files and folders', unit: 'rows', done, total };
    after = end.get();
  }
}

function countOf(database: SqliteDatabase, table: 'entry' | 'revision'): number {
  return Number(database.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
}
