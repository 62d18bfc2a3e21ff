import type { Migration } from '../../util/sqlite/migrations.ts';
import { allowEqualIds } from './upgrade/equal-ids.ts';
import { countFiles } from './upgrade/file-counts.ts';
import { indexNames } from './upgrade/name-index-upgrade.ts';
import { numberPerNamespace } from './upgrade/namespace-numbers.ts';
import { rekey } from './upgrade/rekey.ts';

/**
 * The schema, step by step. Keys of paths are folded (`places.ts`) and compared byte by byte; a `parent` is its folder's
 * key and a slash.
 *
 * An existing path has a row in `entry`, a deleted one in `deletion`, no path in both. Each change of a path takes the
 * next number of its namespace's growing sequence (`ticks.ts`) as its `seq`. A file's number is also its revision, so a
 * cursor is the last number that its reader has seen.
 */
export const MIGRATIONS: readonly Migration[] = [
  `
  CREATE TABLE setting (name TEXT PRIMARY KEY, value ANY NOT NULL) STRICT, WITHOUT ROWID;

  CREATE TABLE namespace (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    limit_bytes INTEGER NOT NULL,
    used_bytes INTEGER NOT NULL DEFAULT 0,
    -- Deletions up to this number may have been dropped: older cursors must start over.
    horizon INTEGER NOT NULL DEFAULT 0
  ) STRICT;

  -- A block of at most 4 MiB. Small ones carry their bytes here, others are a file named by the hash.
  CREATE TABLE block (
    id INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    inline INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE block_bytes (block INTEGER PRIMARY KEY REFERENCES block, bytes BLOB NOT NULL) STRICT;

  -- A whole content, found by its content_hash: equal hashes mean equal lists of blocks.
  CREATE TABLE content (id INTEGER PRIMARY KEY, hash TEXT NOT NULL UNIQUE, size INTEGER NOT NULL) STRICT;
  CREATE TABLE content_block (
    content INTEGER NOT NULL REFERENCES content,
    position INTEGER NOT NULL,
    block INTEGER NOT NULL REFERENCES block,
    PRIMARY KEY (content, position)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX content_block_block ON content_block (block);

  -- How many revisions of a namespace have this content: it counts once for the quota.
  CREATE TABLE holding (
    ns INTEGER NOT NULL REFERENCES namespace,
    content INTEGER NOT NULL REFERENCES content,
    revisions INTEGER NOT NULL,
    PRIMARY KEY (ns, content)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX holding_content ON holding (content);

  CREATE TABLE revision (
    number INTEGER PRIMARY KEY,
    ns INTEGER NOT NULL REFERENCES namespace,
    parent TEXT NOT NULL,
    name_key TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    id TEXT NOT NULL,
    content INTEGER NOT NULL REFERENCES content,
    client_ms INTEGER NOT NULL,
    server_ms INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX revision_path ON revision (ns, parent, name_key, number);
  CREATE INDEX revision_id ON revision (id, number);
  CREATE INDEX revision_content ON revision (content);

  CREATE TABLE entry (
    ns INTEGER NOT NULL REFERENCES namespace,
    parent TEXT NOT NULL,
    name_key TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    id TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL,
    -- NULL makes it a folder.
    revision INTEGER REFERENCES revision,
    PRIMARY KEY (ns, parent, name_key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX entry_change ON entry (ns, seq);
  CREATE INDEX entry_child_change ON entry (ns, parent, seq);
  CREATE INDEX entry_revision ON entry (revision);

  CREATE TABLE deletion (
    ns INTEGER NOT NULL REFERENCES namespace,
    parent TEXT NOT NULL,
    name_key TEXT NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    was_folder INTEGER NOT NULL,
    -- Deleted together with its folder; readers of the folder's deletion do not need it.
    implied INTEGER NOT NULL,
    -- Removed permanently: a tombstone, which only cursors still need.
    forgotten INTEGER NOT NULL,
    deleted_ms INTEGER NOT NULL,
    PRIMARY KEY (ns, parent, name_key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX deletion_change ON deletion (ns, seq);
  CREATE INDEX deletion_child_change ON deletion (ns, parent, seq);
  CREATE INDEX deletion_id ON deletion (id);
  CREATE INDEX deletion_forgotten ON deletion (ns, seq) WHERE forgotten;

  -- Revisions removed permanently whose contents have not been released yet.
  CREATE TABLE doomed (
    number INTEGER PRIMARY KEY,
    ns INTEGER NOT NULL REFERENCES namespace,
    content INTEGER NOT NULL
  ) STRICT;

  CREATE TABLE session (
    id TEXT PRIMARY KEY,
    ns INTEGER NOT NULL REFERENCES namespace,
    concurrent INTEGER NOT NULL,
    -- Bytes received; of a concurrent session the total, which is known when the session is closed.
    size INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    started_ms INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX session_started ON session (started_ms);

  -- A piece never crosses a 4 MiB boundary of its future file.
  CREATE TABLE session_piece (
    session TEXT NOT NULL REFERENCES session,
    start INTEGER NOT NULL,
    block INTEGER NOT NULL REFERENCES block,
    PRIMARY KEY (session, start)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX session_piece_block ON session_piece (block);
  `,
  `
  -- In the order in which deletions expire.
  CREATE INDEX deletion_kept ON deletion (seq) WHERE NOT forgotten;
  `,
  `
  -- Whether something was deleted at this folder's path before: \`feed.ts\` reports that deletion before the folder.
  ALTER TABLE entry ADD COLUMN returned INTEGER NOT NULL DEFAULT 0;
  UPDATE entry SET returned = 1 WHERE revision IS NULL AND EXISTS (
    SELECT 1 FROM deletion
    WHERE deletion.ns = entry.ns AND deletion.parent = entry.parent || entry.name_key || '/' AND implied);
  DROP INDEX deletion_change;
  CREATE INDEX deletion_told ON deletion (ns, seq) WHERE NOT implied;
  `,
  rekey,
  `
  -- The words of all names: a search finds names by words, and entries by names.
  CREATE TABLE word (
    ns INTEGER NOT NULL,
    word TEXT NOT NULL,
    name_key TEXT NOT NULL,
    PRIMARY KEY (ns, word, name_key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX entry_name ON entry (ns, name_key);
  CREATE INDEX deletion_name ON deletion (ns, name_key) WHERE NOT forgotten;
  `,
  `
  -- Everything at a key and below it up to number \`seq\` is removed, though its rows may still exist:
  -- \`tree-removals.ts\`.
  CREATE TABLE removal (
    seq INTEGER PRIMARY KEY,
    ns INTEGER NOT NULL REFERENCES namespace,
    key TEXT NOT NULL,
    deleted_ms INTEGER NOT NULL,
    forever INTEGER NOT NULL,
    phase INTEGER NOT NULL,
    at_parent TEXT NOT NULL,
    at_name TEXT NOT NULL,
    at_number INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX removal_key ON removal (ns, key, seq);
  `,
  countFiles,
  // Indexes the words of names, and their symbols, which the first index lacked.
  indexNames,
  `
  -- Rows that a large move or copy creates in steps, under reserved numbers: \`stagings.ts\`.
  CREATE TABLE staging (
    first INTEGER PRIMARY KEY,
    last INTEGER NOT NULL,
    ns INTEGER NOT NULL,
    -- Whether its files are new ones, which count for the quota.
    copies INTEGER NOT NULL,
    -- Bytes charged for its rows so far.
    charged_bytes INTEGER NOT NULL DEFAULT 0,
    -- Its rows are hidden until it is published.
    published INTEGER NOT NULL DEFAULT 0,
    -- Deletions at the paths of its rows are dropped up to this number.
    at_number INTEGER NOT NULL DEFAULT 0
  ) STRICT;
  -- Whether the files still exist at another path, and count there.
  ALTER TABLE removal ADD COLUMN moved INTEGER NOT NULL DEFAULT 0;
  `,
  // An id has two paths while a move is under way.
  allowEqualIds,
  `
  -- A checksum for each piece of a block that is a file: \`piece-checksums.ts\`. Older blocks have none.
  CREATE TABLE IF NOT EXISTS block_pieces (
    block INTEGER PRIMARY KEY REFERENCES block ON DELETE CASCADE,
    checksums BLOB NOT NULL
  ) STRICT;
  `,
  numberPerNamespace,
  `
  -- The names of blocks in a bucket.
  CREATE TABLE IF NOT EXISTS block_name (
    block INTEGER PRIMARY KEY REFERENCES block ON DELETE CASCADE,
    name TEXT NOT NULL
  ) STRICT;
  `,
];
