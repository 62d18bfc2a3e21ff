import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import { JOB_KEPT_MS } from '../../jobs/job-rows.ts';
import type { Nodes } from '../nodes.ts';

/** Extends the lease of a node, and adds the node if it is new. */
export const RENEW_LEASE = `
  INSERT INTO nodes (node_id, until_ms) VALUES (?, ?)
  ON CONFLICT (node_id) DO UPDATE SET until_ms = max(until_ms, excluded.until_ms)`;

/** Returns the processes in a database. */
export function nodesIn(database: SqliteDatabase): Nodes {
  const renew = database.prepare<[id: string, untilMs: number]>(RENEW_LEASE);
  const end = database.prepare<{ id: string; nowMs: number }>(
    'UPDATE nodes SET until_ms = @nowMs WHERE node_id = @id AND until_ms > @nowMs',
  );
  const endAll = database.prepare<{ nowMs: number }>(
    'UPDATE nodes SET until_ms = @nowMs WHERE until_ms > @nowMs',
  );
  const forget = database.prepare<[before: number, limit: number]>(
    'DELETE FROM nodes WHERE node_id IN (SELECT node_id FROM nodes WHERE until_ms <= ? LIMIT ?)',
  );
  return {
    // All processes are on one machine.
    leaseTime: async (nowMs) => nowMs,
    async renew(id, untilMs) {
      renew.run(id, untilMs);
    },
    async end(nowMs, id) {
      end.run({ id, nowMs });
    },
    async endAll(nowMs) {
      endAll.run({ nowMs });
    },
    // Kept as long as jobs are: when a job ended without a result is seen from its node.
    forgetOld: async (nowMs, limit) => forget.run(nowMs - JOB_KEPT_MS, limit).changes,
  };
}
