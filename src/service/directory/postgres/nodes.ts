import type { Pool } from 'pg';
import { JOB_KEPT_MS } from '../../jobs/job-rows.ts';
import { databaseTime, deleteUnlocked } from '../../postgres/queries.ts';
import type { Nodes } from '../nodes.ts';

/** Extends the lease of the node $1 to $2, and adds the node if it is new. */
export const RENEW_LEASE = `
  INSERT INTO davgate.nodes (node_id, until_ms) VALUES ($1, $2)
  ON CONFLICT (node_id) DO UPDATE SET until_ms = greatest(nodes.until_ms, excluded.until_ms)`;

/** Returns the processes in a database. */
export function nodesIn(pool: Pool): Nodes {
  return {
    leaseTime: () => databaseTime(pool),
    async renew(id, untilMs) {
      await pool.query(RENEW_LEASE, [id, untilMs]);
    },
    async end(nowMs, id) {
      await pool.query('UPDATE davgate.nodes SET until_ms = $2 WHERE node_id = $1 AND until_ms > $2', [
        id,
        nowMs,
      ]);
    },
    async endAll(nowMs) {
      await pool.query('UPDATE davgate.nodes SET until_ms = $1 WHERE until_ms > $1', [nowMs]);
    },
    // Kept as long as jobs are: when a job ended without a result is seen from its node.
    forgetOld: (nowMs, limit) =>
      deleteUnlocked(
        pool,
        { table: 'nodes', key: 'node_id', condition: 'until_ms <= $1', values: [nowMs - JOB_KEPT_MS] },
        limit,
      ),
  };
}
