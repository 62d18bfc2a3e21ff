import type { Pool } from 'pg';
import { SharedLookup } from '../../postgres/shared-lookup.ts';
import type { NamespaceRow } from './namespace-change.ts';

/** The last commit of a namespace. */
export type LastCommit = Pick<NamespaceRow, 'version' | 'mark'>;

/** The last commits of namespaces, by number. */
export type Versions = SharedLookup<number, LastCommit>;

/** How long the answer may take, in ms, before another connection is tried: all calls wait for it. */
const TIMEOUT_MS = 3000;

/** Returns the last commits of the namespaces of a database. */
export function versionsIn(pool: Pool): Versions {
  return new SharedLookup<number, LastCommit>(async (numbers) => {
    const query = {
      text: 'SELECT id, version, mark FROM davgate.namespace WHERE id = ANY($1)',
      values: [numbers],
      query_timeout: TIMEOUT_MS,
    };
    const { rows } = await pool.query<LastCommit & { readonly id: number }>(query);
    return new Map(rows.map((row) => [row.id, row]));
  });
}
