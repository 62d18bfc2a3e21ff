import { createHash } from 'node:crypto';
import { type Queries, rowsOf } from '../../postgres/queries.ts';
import { StorageError } from '../storage.ts';
import type { Recorded } from './change-recorder.ts';
import type { Key, NamespaceRow } from './namespace-change.ts';
import { quoted, type Row, TABLES, type Table } from './tables.ts';

/** A commit to a namespace. */
export interface NewCommit {
  /** The namespace after it. */
  readonly namespace: NamespaceRow;
  readonly recorded: Recorded;
}

/**
 * Stores commits of different namespaces, in one statement whatever their size. The namespaces are locked. Throws
 * `too_many_write_operations` if a block of them has been removed, because its upload took too long.
 */
export async function storeCommits(on: Queries, commits: readonly NewCommit[]): Promise<void> {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  const parts = TABLES.flatMap((table) => {
    const rows = commits.flatMap(({ namespace, recorded }) =>
      rowsAt(namespace, recorded.rows.get(table.name)),
    );
    const gone = commits.flatMap(({ namespace, recorded }) =>
      keysIn(namespace, recorded.gone.get(table.name)),
    );
    return [
      ...(rows.length > 0 ? [putPart(table, rows, parameter)] : []),
      ...(gone.length > 0 ? dropParts(table, gone, parameter) : []),
    ];
  });
  const column = (type: string, of: (commit: NewCommit) => unknown) =>
    `${parameter(commits.map(of))}::${type}[]`;
  const namespaces = [
    column('bigint', ({ namespace }) => namespace.id),
    column('bigint', ({ namespace }) => namespace.version),
    column('text', ({ namespace }) => namespace.mark),
    column('bigint', ({ namespace }) => namespace.usedBytes),
    column('bigint', ({ namespace }) => namespace.horizon),
    column('bigint', ({ namespace }) => namespace.tick),
    // An array of arrays would be unnested as a whole.
    column('text', ({ recorded }) => [...recorded.rows.keys()].join(',')),
    column('text', ({ recorded: { gone } }) =>
      gone.size > 0 ? JSON.stringify(Object.fromEntries(gone)) : null,
    ),
  ];
  const rows = await rowsOf<{ isLate: boolean | null }>(
    on,
    `WITH ${[
      ...parts,
      namedPart(parameter(namesIn(commits))),
      `new AS (SELECT * FROM unnest(${namespaces.join(', ')})
         AS new (ns, version, mark, used_bytes, horizon, tick, tables, gone))`,
      `made AS (INSERT INTO davgate.commit (ns, version, mark, tables, gone)
         SELECT ns, version, mark, string_to_array(tables, ','), gone::jsonb FROM new)`,
    ].join(',\n')}
     UPDATE davgate.namespace SET version = new.version, mark = new.mark, used_bytes = new.used_bytes,
         horizon = new.horizon, tick = new.tick FROM new WHERE id = new.ns
       RETURNING (SELECT bool_or(is_final) FROM named) AS "isLate"`,
    ...values,
  );
  if (rows[0]?.isLate) throw new StorageError({ kind: 'write', tag: 'too_many_write_operations' });
}

/** A row of a namespace, as it is in a version of it. */
interface RowAt {
  readonly row: Row;
  readonly ns: number;
  readonly version: number;
}

/** The key of a row of a namespace. */
interface KeyIn {
  readonly key: Key;
  readonly ns: number;
}

function rowsAt({ id, version }: Pick<NamespaceRow, 'id' | 'version'>, rows: readonly Row[] = []): RowAt[] {
  return rows.map((row) => ({ row, ns: id, version }));
}

function keysIn({ id }: NamespaceRow, keys: readonly Key[] = []): KeyIn[] {
  return keys.map((key) => ({ key, ns: id }));
}

/**
 * Returns the part of the statement that puts off the removal of blocks to which a commit refers, and tells whether it has
 * begun. The row makes the collector wait for the commit, although it does not see it yet. It has no time: that begins when
 * the collector finds the block without a reference.
 */
function namedPart(names: string): string {
  return `named AS (
    INSERT INTO davgate.condemned_block AS known (name, since)
    SELECT name, 'infinity'::timestamptz FROM unnest(${names}::text[]) AS name
    ON CONFLICT (name) DO UPDATE SET since = excluded.since RETURNING known.is_final)`;
}

/** Returns the names of the new blocks, each once, and in an order in which no two statements wait for each other. */
function namesIn(commits: readonly NewCommit[]): readonly string[] {
  const rows = commits.flatMap(({ recorded }) => recorded.rows.get('block_name') ?? []);
  return [...new Set(rows.map(([, name]) => String(name)))].sort();
}

/** Writes rows of a table, as they are in a version of their namespace. Those of blocks end with the bytes of a small one. */
export async function putRows(
  on: Queries,
  table: Table,
  rows: readonly Row[],
  at: Pick<NamespaceRow, 'id' | 'version'>,
): Promise<void> {
  const values: unknown[] = [];
  const parameter = (value: unknown) => `$${values.push(value)}`;
  await on.query(`WITH ${putPart(table, rowsAt(at, rows), parameter)} SELECT`, values);
}

type Parameter = (value: unknown) => string;

/** Returns the part of the statement that writes rows of a table. */
function putPart(table: Table, rows: readonly RowAt[], parameter: Parameter): string {
  const columns = [...Object.entries(table.columns), ...(table.name === 'block' ? [BYTES] : [])];
  const array = (type: string, of: (one: RowAt) => unknown) => `${parameter(rows.map(of))}::${type}[]`;
  const arrays = columns.map(([, type], index) => array(type, ({ row }) => row[index]));
  const names = columns.map(([name]) => quoted(name));
  if (table.hasPlace) {
    arrays.push(array('bytea', ({ row }) => placeOfRow(table, row)));
    names.push('place');
  }
  arrays.push(
    array('bigint', ({ ns }) => ns),
    array('bigint', ({ version }) => version),
  );
  const key = table.hasPlace ? ['place'] : table.key.map(quoted);
  const changes = [...names.filter((name) => !key.includes(name)), 'version'].map(
    (name) => `${name} = excluded.${name}`,
  );
  return `put_${table.name} AS (
    INSERT INTO davgate.${table.name} AS old (${names.join(', ')}, ns, version)
    SELECT * FROM unnest(${arrays.join(', ')})
    ON CONFLICT (ns, ${key.join(', ')}) DO UPDATE SET ${changes.join(', ')})`;
}

/** In PostgreSQL a small block's row has its bytes. */
const BYTES = ['bytes', 'bytea'] as const;

/** Returns the parts of the statement that remove rows of a table. */
function dropParts(table: Table, gone: readonly KeyIn[], parameter: Parameter): string[] {
  const { name, key, columns } = table;
  const array = (type = 'bigint', of: (one: KeyIn) => unknown) => `${parameter(gone.map(of))}::${type}[]`;
  const keys = table.hasPlace
    ? [array('bytea', (one) => placeOf(one.key))]
    : key.map((column, index) => array(columns[column], (one) => one.key[index]));
  const arrays = [array('bigint', ({ ns }) => ns), ...keys];
  const names = ['ns', ...(table.hasPlace ? ['place'] : key.map(quoted))];
  const same = names.map((column) => `${name}.${column} = gone.${column}`).join(' AND ');
  const drop = `DELETE FROM davgate.${name} USING unnest(${arrays.join(', ')}) AS gone (${names.join(', ')}) WHERE ${same}`;
  if (name !== 'block') return [`drop_${name} AS (${drop})`];
  // A reader may be about to ask for the bytes.
  return [
    `drop_block AS (${drop} RETURNING block.ns, block.hash, block.bytes)`,
    `condemn_bytes AS (INSERT INTO davgate.condemned_bytes (ns, hash, bytes)
       SELECT ns, hash, bytes FROM drop_block WHERE bytes IS NOT NULL
       ON CONFLICT (ns, hash) DO UPDATE SET since = excluded.since)`,
  ];
}

/** Returns what identifies a row of a path. */
export function placeOfRow({ key, columns }: Table, row: Row): Buffer {
  const names = Object.keys(columns);
  return placeOf(key.map((column) => String(row[names.indexOf(column)])));
}

function placeOf(key: Key): Buffer {
  return createHash('sha256').update(JSON.stringify(key)).digest().subarray(0, PLACE_BYTES);
}

/** Two paths with the same 128 bits are not to be expected. */
const PLACE_BYTES = 16;
