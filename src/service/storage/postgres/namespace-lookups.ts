import type { Pool } from 'pg';
import { SharedLookup } from '../../postgres/shared-lookup.ts';
import type { NamespaceRow } from './namespace-change.ts';

/** The last commit of a namespace. */
export type LastCommit = Pick<NamespaceRow, 'name' | 'version' | 'mark'>;

/** The last commits of namespaces, by number. */
export type Versions = SharedLookup<number, LastCommit>;

/** The numbers of namespaces, by name. */
export type NamespaceNumbers = SharedLookup<string, number>;

/** How long the answer may take, in ms, before another connection is tried: all calls wait for it. */
const TIMEOUT_MS = 3000;

/** Returns the last commits of the namespaces of a database. */
export function versionsIn(pool: Pool): Versions {
  return new SharedLookup<number, LastCommit>(async (numbers) => {
    const rows = await namespacesWhere(pool, 'id = ANY($1)', numbers);
    return new Map(rows.map((row) => [row.id, row]));
  });
}

/**
 * Returns the lookup of the numbers of namespaces in a database. After a start, the first calls for a namespace come together:
 * each with a statement of its own, they would wait for connections longer than clients wait.
 */
export function numbersIn(pool: Pool): NamespaceNumbers {
  return new SharedLookup<string, number>(async (names) => {
    const rows = await namespacesWhere(pool, 'name = ANY($1)', names);
    return new Map(rows.map(({ id, name }) => [name, id]));
  });
}

async function namespacesWhere(pool: Pool, condition: string, keys: readonly unknown[]) {
  const query = {
    text: `SELECT id, name, version, mark FROM davgate.namespace WHERE ${condition}`,
    values: [keys],
    query_timeout: TIMEOUT_MS,
  };
  const { rows } = await pool.query<LastCommit & { readonly id: number }>(query);
  return rows;
}
