/**
 * The schema of the metadata in PostgreSQL, step by step. The keys of all rows of files begin with the
 * namespace. A row has the version in which its namespace last changed it: what a copy lacks are the rows with later ones.
 * `tables.ts` lists the columns that copies have.
 */
export const MIGRATIONS: readonly string[] = [
  `
  CREATE TABLE davgate.setting (name text PRIMARY KEY, value bytea NOT NULL);
  CREATE TABLE davgate.namespace (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text COLLATE "C" NOT NULL UNIQUE,
    -- The number of its commits.
    version bigint NOT NULL DEFAULT 0,
    -- The mark of the last commit.
    mark text NOT NULL DEFAULT '',
    limit_bytes bigint NOT NULL,
    used_bytes bigint NOT NULL DEFAULT 0,
    horizon bigint NOT NULL DEFAULT 0,
    tick bigint NOT NULL DEFAULT 0,
    -- When its history was last looked through, as a number like tick.
    tidied_tick bigint NOT NULL DEFAULT 0
  );
  -- What each commit was, for those who lost its answer, and which rows it removed.
  CREATE TABLE davgate.commit (
    ns bigint NOT NULL,
    version bigint NOT NULL,
    mark text NOT NULL,
    tables text[] NOT NULL,
    -- Keys by table; NULL when no row was removed.
    gone jsonb,
    made timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (ns, version)
  );
  CREATE TABLE davgate.block (
    ns bigint NOT NULL,
    id bigint NOT NULL,
    hash bytea NOT NULL,
    size bigint NOT NULL,
    inline bigint NOT NULL,
    -- Of a small block; copies do not have them.
    bytes bytea,
    version bigint NOT NULL,
    PRIMARY KEY (ns, id)
  );
  CREATE INDEX block_version ON davgate.block (ns, version);

  CREATE TABLE davgate.block_pieces (
    ns bigint NOT NULL,
    block bigint NOT NULL,
    checksums bytea NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, block)
  );
  CREATE INDEX block_pieces_version ON davgate.block_pieces (ns, version);

  CREATE TABLE davgate.block_name (
    ns bigint NOT NULL,
    block bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, block)
  );
  CREATE INDEX block_name_version ON davgate.block_name (ns, version);

  CREATE TABLE davgate.content (
    ns bigint NOT NULL,
    id bigint NOT NULL,
    hash text COLLATE "C" NOT NULL,
    size bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, id)
  );
  CREATE INDEX content_version ON davgate.content (ns, version);

  CREATE TABLE davgate.content_block (
    ns bigint NOT NULL,
    content bigint NOT NULL,
    position bigint NOT NULL,
    block bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, content, position)
  );
  CREATE INDEX content_block_version ON davgate.content_block (ns, version);

  CREATE TABLE davgate.holding (
    ns bigint NOT NULL,
    content bigint NOT NULL,
    revisions bigint NOT NULL,
    files bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, content)
  );
  CREATE INDEX holding_version ON davgate.holding (ns, version);

  CREATE TABLE davgate.revision (
    ns bigint NOT NULL,
    number bigint NOT NULL,
    parent text COLLATE "C" NOT NULL,
    name_key text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    content bigint NOT NULL,
    client_ms bigint NOT NULL,
    server_ms bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, number)
  );
  CREATE INDEX revision_version ON davgate.revision (ns, version);

  CREATE TABLE davgate.entry (
    ns bigint NOT NULL,
    place bytea NOT NULL,
    parent text COLLATE "C" NOT NULL,
    name_key text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    revision bigint,
    returned bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, place)
  );
  CREATE INDEX entry_version ON davgate.entry (ns, version);

  CREATE TABLE davgate.deletion (
    ns bigint NOT NULL,
    place bytea NOT NULL,
    parent text COLLATE "C" NOT NULL,
    name_key text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    was_folder bigint NOT NULL,
    implied bigint NOT NULL,
    forgotten bigint NOT NULL,
    deleted_ms bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, place)
  );
  CREATE INDEX deletion_version ON davgate.deletion (ns, version);

  CREATE TABLE davgate.removal (
    ns bigint NOT NULL,
    seq bigint NOT NULL,
    key text COLLATE "C" NOT NULL,
    deleted_ms bigint NOT NULL,
    forever bigint NOT NULL,
    phase bigint NOT NULL,
    at_parent text COLLATE "C" NOT NULL,
    at_name text COLLATE "C" NOT NULL,
    at_number bigint NOT NULL,
    moved bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, seq)
  );
  CREATE INDEX removal_version ON davgate.removal (ns, version);

  CREATE TABLE davgate.staging (
    ns bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    copies bigint NOT NULL,
    charged_bytes bigint NOT NULL,
    published bigint NOT NULL,
    at_number bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, first)
  );
  CREATE INDEX staging_version ON davgate.staging (ns, version);

  CREATE TABLE davgate.doomed (
    ns bigint NOT NULL,
    number bigint NOT NULL,
    content bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, number)
  );
  CREATE INDEX doomed_version ON davgate.doomed (ns, version);

  CREATE TABLE davgate.session (
    ns bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    concurrent bigint NOT NULL,
    size bigint NOT NULL,
    closed bigint NOT NULL,
    started_ms bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, id)
  );
  CREATE INDEX session_version ON davgate.session (ns, version);

  CREATE TABLE davgate.session_piece (
    ns bigint NOT NULL,
    session text COLLATE "C" NOT NULL,
    start bigint NOT NULL,
    block bigint NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (ns, session, start)
  );
  CREATE INDEX session_piece_version ON davgate.session_piece (ns, version);
  CREATE INDEX block_hash ON davgate.block (ns, hash);
  CREATE INDEX block_name_name ON davgate.block_name (name);
  -- Bytes of small blocks that are no longer needed, and the names of objects without a block: kept for a while.
  CREATE TABLE davgate.condemned_bytes (
    ns bigint NOT NULL,
    hash bytea NOT NULL,
    bytes bytea NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (ns, hash)
  );
  CREATE TABLE davgate.condemned_block (
    name text COLLATE "C" PRIMARY KEY,
    since timestamptz NOT NULL DEFAULT now()
  );
  -- Which process does the work that one does for all.
  CREATE TABLE davgate.lease (
    name text PRIMARY KEY,
    holder text NOT NULL,
    until timestamptz NOT NULL
  );
  `,
  `
  -- Whether the block is being removed, so that no commit may refer to it any more.
  ALTER TABLE davgate.condemned_block ADD COLUMN is_final boolean NOT NULL DEFAULT false;
  `,
];
