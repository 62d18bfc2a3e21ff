import { quoted, TABLES, type Table } from './tables.ts';

/**
 * The schema of the metadata in PostgreSQL, step by step. The keys of all rows of files begin with the
 * namespace. A row has the version in which its namespace last changed it: what a copy lacks are the rows with later ones.
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
    tick bigint NOT NULL DEFAULT 0
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
  ${TABLES.map(definition).join('\n')}
  ALTER TABLE davgate.block ADD COLUMN bytes bytea;
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
];

function definition(table: Table): string {
  const columns = Object.entries(table.columns).map(
    ([name, type]) => `${quoted(name)} ${type}${type === 'text' ? ' COLLATE "C"' : ''}`,
  );
  const place = table.hasPlace ? ['place bytea'] : [];
  const key = ['ns', ...(table.hasPlace ? ['place'] : table.key.map(quoted))].join(', ');
  return `
  CREATE TABLE davgate.${table.name} (
    ns bigint, ${[...place, ...columns].join(', ')}, version bigint NOT NULL, PRIMARY KEY (${key}));
  CREATE INDEX ${table.name}_version ON davgate.${table.name} (ns, version);`;
}
