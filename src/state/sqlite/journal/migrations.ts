/** The schema of the journal; a step that has been released is never edited, a change is a new step at the end. */
export const JOURNAL_MIGRATIONS: readonly string[] = [
  `
  -- AUTOINCREMENT, so that a later write never gets a lower number: the order of acceptance.
  CREATE TABLE writes (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    drive TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL,
    file_id TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    content_hash TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    accepted_ms INTEGER NOT NULL,
    due_ms INTEGER NOT NULL,
    replaces TEXT,
    -- Name of the file with the body, unless the body is in the table of small ones.
    body_file TEXT
  ) STRICT;

  -- Apart from their rows, so that a change does not write the body anew.
  CREATE TABLE small_bodies (
    position INTEGER PRIMARY KEY REFERENCES writes ON DELETE CASCADE,
    body BLOB NOT NULL
  ) STRICT;
  `,
  `
  CREATE TABLE owners (
    drive TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    email TEXT NOT NULL,
    root TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- The files of bodies without rows, until they are removed. A file that neither this table nor a row of writes
  -- names was acknowledged, and its record is lost.
  CREATE TABLE dropped_bodies (
    file TEXT PRIMARY KEY,
    drive TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  `
  ALTER TABLE writes ADD COLUMN folder_id TEXT;
  ALTER TABLE writes ADD COLUMN replaces_hash TEXT;
  `,
];
