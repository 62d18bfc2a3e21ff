import { createHash } from 'node:crypto';
import { CopyError } from './copy-error.ts';
import { DIRECTORY_TABLES } from './directory-tables.ts';
import {
  COPIED_TABLES,
  comparedNamespaces,
  directoryQuery,
  NamespaceQueries,
  namespacesQuery,
} from './row-queries.ts';
import type { Dialect, NamespaceRow, Rows, SideRows } from './sides.ts';

/** Rows that are read at once. */
const ROWS = 500;

/** The sum of digests has as many bits as one. */
const DIGEST_BITS = 256;

interface Compared {
  /** What the rows are, for messages. */
  readonly what: string;
  readonly part: keyof SideRows;
  readonly query: (dialect: Dialect) => string;
}

/** Throws `CopyError` unless both sides have equal rows, in whatever order. Returns the number of rows. */
export async function compare(source: SideRows, target: SideRows): Promise<number> {
  let rows = 0;
  for (const { what, part, query } of await allOf(source)) {
    const [there, here] = [source[part], target[part]];
    const [expected, found] = [
      await digestOf(there, query(there.dialect)),
      await digestOf(here, query(here.dialect)),
    ];
    if (expected.count !== found.count || expected.digest !== found.digest)
      throw new CopyError(
        `the copy differs from its source in ${what} (${found.count} rows, expected ${expected.count}): stop all services and commands of both, and start the copy again`,
      );
    rows += found.count;
  }
  return rows;
}

async function allOf({ storage }: SideRows): Promise<readonly Compared[]> {
  const all: Compared[] = [
    { what: 'its namespaces', part: 'storage', query: comparedNamespaces },
    ...DIRECTORY_TABLES.map((table) => ({
      what: `its table ${table.name}`,
      part: 'directory' as const,
      query: (dialect: Dialect) => directoryQuery(table, dialect),
    })),
  ];
  for (const [ns, name] of await namespacesOf(storage)) {
    for (const table of COPIED_TABLES) {
      // Equal blocks of two namespaces share one row in a data directory, where the block of one alone may have checksums.
      if (table.name === 'block_pieces') continue;
      all.push({
        what: `the table ${table.name} of the namespace ${name}`,
        part: 'storage',
        query: (dialect) => new NamespaceQueries(ns, dialect).compared(table),
      });
    }
    all.push({
      what: `the listing of the namespace ${name}`,
      part: 'storage',
      query: (dialect) => new NamespaceQueries(ns, dialect).listing,
    });
  }
  return all;
}

export async function namespacesOf(rows: Rows): Promise<readonly NamespaceRow[]> {
  const all: NamespaceRow[] = [];
  for await (const some of rows.read(namespacesQuery(rows.dialect), ROWS))
    for (const row of some) all.push(row as unknown as NamespaceRow); // the columns of the query
  return all;
}

/** Returns the number of rows, and a sum of their digests, for which their order does not matter. */
async function digestOf(
  rows: Rows,
  query: string,
): Promise<{ readonly count: number; readonly digest: bigint }> {
  let count = 0;
  let digest = 0n;
  for await (const some of rows.read(query, ROWS))
    for (const row of some) {
      const text = JSON.stringify(
        row.map((value) => (value instanceof Uint8Array ? [Buffer.from(value).toString('base64')] : value)),
      );
      digest = BigInt.asUintN(
        DIGEST_BITS,
        digest + BigInt(`0x${createHash('sha256').update(text).digest('hex')}`),
      );
      count += 1;
    }
  return { count, digest };
}
