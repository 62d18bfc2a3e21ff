import type { PoolClient } from 'pg';
import { putRows } from '../storage/postgres/stored-commits.ts';
import { quoted, type Row, TABLES, type Table } from '../storage/postgres/tables.ts';
import { DIRECTORY_TABLES, type DirectoryTable } from './directory-tables.ts';
import type { NamespaceRow } from './sides.ts';

const BLOCK_NAMES = TABLES.filter(({ name }) => name === 'block_name');

/** Writes the tables of a service in PostgreSQL, in one transaction. */
export class PostgresTables {
  constructor(
    private readonly on: PoolClient,
    /** Returns the name of a block in its place. */
    private readonly nameOf: (hash: Buffer) => string,
  ) {}

  async putNamespace(row: NamespaceRow): Promise<void> {
    await this.on.query(
      `INSERT INTO davgate.namespace (id, name, limit_bytes, used_bytes, horizon, tick, version, mark)
       OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [...row],
    );
    // The last commit, which cursors name.
    const [id, , , , , , version, mark] = row;
    if (version > 0)
      await this.on.query(
        `INSERT INTO davgate.commit (ns, version, mark, tables) VALUES ($1, $2, $3, '{}')`,
        [id, version, mark],
      );
  }

  async put(table: Table, namespace: NamespaceRow, rows: readonly Row[]): Promise<void> {
    const [id, , , , , , version] = namespace;
    await putRows(this.on, table, rows, { id, version });
    if (table.name !== 'block') return;
    const names = rows.flatMap(
      ([number = null, hash, , inline]) => (inline === 1 ? [] : [[number, this.nameOf(hash as Buffer)]]), // the type of the column
    );
    if (names.length > 0)
      for (const blockNames of BLOCK_NAMES) await putRows(this.on, blockNames, names, { id, version });
  }

  async putInDirectory({ name, columns }: DirectoryTable, rows: readonly Row[]): Promise<void> {
    const all = Object.entries(columns);
    const values = all.map(([column, type]) =>
      type === 'boolean' ? `${quoted(column)} <> 0` : quoted(column),
    );
    const arrays = all.map(([, type], index) => `$${index + 1}::${type === 'boolean' ? 'bigint' : type}[]`);
    const names = all.map(([column]) => quoted(column)).join(', ');
    await this.on.query(
      `INSERT INTO davgate.${name} (${names}) OVERRIDING SYSTEM VALUE
       SELECT ${values.join(', ')} FROM unnest(${arrays.join(', ')}) AS added (${names})`,
      all.map((_, index) => rows.map((row) => row[index])),
    );
  }
}

/** Lets the tables number further rows after those that were copied. */
export async function finishTables(on: PoolClient): Promise<void> {
  const numbered = DIRECTORY_TABLES.flatMap(({ name, identity }) =>
    identity === undefined ? [] : [[name, identity] as const],
  );
  for (const [table, column] of [...numbered, ['namespace', 'id'] as const])
    await on.query(
      `SELECT setval(pg_get_serial_sequence('davgate.${table}', '${column}'),
         (SELECT coalesce(max(${column}), 0) + 1 FROM davgate.${table}), false)`,
    );
  await on.query(
    'UPDATE davgate.stored_entries SET entries = (SELECT coalesce(max(entries_so_far), 0) FROM davgate.jobs)',
  );
}
