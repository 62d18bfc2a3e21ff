import type { Pool, PoolClient } from 'pg';
import { inConnection } from './connections.ts';
import { LostNamespaceError } from './lost-namespace.ts';
import type { NamespaceRow } from './namespace-change.ts';
import { namespaceOf } from './namespace-rows.ts';

/** Runs `work` with a namespace in a transaction that sees one state of the database, and holds no lock. */
export async function inSnapshot(
  pool: Pool,
  ns: number,
  work: (client: PoolClient, namespace: NamespaceRow) => Promise<void>,
): Promise<void> {
  await inConnection(pool, async (client) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const namespace = await namespaceOf(client, ns);
    if (!namespace) throw new LostNamespaceError(ns);
    await work(client, namespace);
    await client.query('COMMIT');
  });
}
