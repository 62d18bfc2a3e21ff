import type { Migration } from '../../util/sqlite/migrations.ts';
import { foldKeys, rekey } from './rekey.ts';

/** The schema, step by step. */
export const MIGRATIONS: readonly Migration[] = [
  `
  CREATE TABLE drives (
    drive INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    properties_version INTEGER NOT NULL DEFAULT 0
  ) STRICT;

  CREATE TABLE locks (
    position INTEGER PRIMARY KEY,
    drive INTEGER NOT NULL REFERENCES drives,
    token TEXT NOT NULL,
    root TEXT NOT NULL,
    scope TEXT NOT NULL,
    depth TEXT NOT NULL,
    owner_xml TEXT NOT NULL,
    principal TEXT NOT NULL,
    timeout_seconds INTEGER NOT NULL,
    expires_ms INTEGER NOT NULL,
    UNIQUE (drive, token)
  ) STRICT;

  CREATE TABLE properties (
    position INTEGER PRIMARY KEY,
    drive INTEGER NOT NULL REFERENCES drives,
    id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    name TEXT NOT NULL,
    xml TEXT NOT NULL,
    UNIQUE (drive, id, namespace, name)
  ) STRICT;

  CREATE TABLE times (
    drive INTEGER NOT NULL REFERENCES drives,
    id TEXT NOT NULL,
    rev TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    PRIMARY KEY (drive, id)
  ) STRICT, WITHOUT ROWID;

  CREATE TABLE holds (
    drive INTEGER NOT NULL REFERENCES drives,
    key TEXT NOT NULL,
    parent_key TEXT NOT NULL,
    path TEXT NOT NULL,
    id TEXT NOT NULL,
    rev TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (drive, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX holds_in ON holds (drive, parent_key);

  -- AUTOINCREMENT, so that a later file never gets a lower number: the order of age.
  CREATE TABLE asides (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    drive INTEGER NOT NULL REFERENCES drives,
    key TEXT NOT NULL,
    parent_key TEXT NOT NULL,
    path TEXT NOT NULL,
    id TEXT NOT NULL,
    rev TEXT NOT NULL,
    modified_ms INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    UNIQUE (drive, key)
  ) STRICT;
  CREATE INDEX asides_in ON asides (drive, parent_key);
  CREATE INDEX asides_by_age ON asides (drive, position, size_bytes);

  -- Apart from their rows, so that a move does not write the content anew.
  CREATE TABLE aside_contents (
    position INTEGER PRIMARY KEY REFERENCES asides ON DELETE CASCADE,
    content BLOB NOT NULL
  ) STRICT;

  CREATE TABLE relocations (
    drive INTEGER NOT NULL REFERENCES drives,
    id TEXT NOT NULL,
    path TEXT NOT NULL,
    waiting_at TEXT NOT NULL,
    purpose TEXT NOT NULL,
    PRIMARY KEY (drive, id)
  ) STRICT, WITHOUT ROWID;
  `,
  `
  -- NULL: written by an older davgate, which did not record the owner.
  ALTER TABLE drives ADD COLUMN account_id TEXT;
  ALTER TABLE drives ADD COLUMN account_email TEXT;
  ALTER TABLE drives ADD COLUMN account_root TEXT;
  `,
  foldKeys,
  `
  -- NULL: the new entry is unknown.
  ALTER TABLE relocations ADD COLUMN replacement TEXT;
  `,
  `
  CREATE TABLE intents (
    position INTEGER PRIMARY KEY,
    drive INTEGER NOT NULL REFERENCES drives,
    id TEXT NOT NULL,
    text TEXT NOT NULL,
    UNIQUE (drive, id)
  ) STRICT;
  `,
  rekey,
  `
  CREATE TABLE app_passwords (
    position INTEGER PRIMARY KEY,
    user TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    hash TEXT NOT NULL,
    created_ms INTEGER NOT NULL,
    -- NULL: never.
    used_ms INTEGER,
    UNIQUE (user, id)
  ) STRICT;
  `,
  `
  -- NULL: not needed yet.
  ALTER TABLE drives ADD COLUMN secret BLOB;
  `,
  `
  CREATE TABLE upload_links (
    position INTEGER PRIMARY KEY,
    user TEXT NOT NULL,
    id TEXT NOT NULL,
    token_hash TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL,
    used_bytes INTEGER NOT NULL,
    UNIQUE (user, id)
  ) STRICT;
  `,
];
