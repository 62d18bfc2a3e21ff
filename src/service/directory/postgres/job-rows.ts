import type { Pool } from 'pg';
import {
  ENTRIES_KEPT_MAX,
  entriesOf,
  JOB_KEPT_MS,
  type Job,
  type JobResult,
  type JobRows,
  type NewJob,
  type StoredJob,
  stateOf,
} from '../../jobs/job-rows.ts';
import { deleteUnlocked, findRow, type Queries, rowsOf } from '../../postgres/queries.ts';
import { inTransaction } from '../../postgres/transaction.ts';
import { RENEW_LEASE } from './nodes.ts';

/** A job that has ended, or whose process has ended without a result, by the time $1. */
const OVER = `
  ended_ms <= $1 OR ended_ms IS NULL AND coalesce(
    (SELECT until_ms FROM davgate.nodes WHERE nodes.node_id = jobs.node_id), 0) <= $1`;

/** Returns the jobs in a database. */
export function jobRowsIn(pool: Pool): JobRows {
  return {
    add: (job, node, untilMs) =>
      job.line === undefined
        ? insert(pool, job, node, untilMs)
        : inTransaction(pool, (on) => addToLine(on, job, node, untilMs)),
    async mustWait(nowMs, id) {
      const row = await findRow(
        pool,
        `SELECT FROM davgate.jobs AS own JOIN davgate.jobs AS earlier USING (account_id, line)
         JOIN davgate.nodes ON nodes.node_id = earlier.node_id AND nodes.node_id <> own.node_id
         WHERE own.job_id = $1 AND earlier.sequence < own.sequence AND earlier.ended_ms IS NULL
           AND until_ms > $2 LIMIT 1`,
        id,
        nowMs,
      );
      return row !== undefined;
    },
    end: (id, endedMs, result) => inTransaction(pool, (on) => end(on, id, endedMs, result)),
    open: (node) =>
      rowsOf<Job>(
        pool,
        `SELECT job_id AS id, account_id AS account, app_key AS app, kind FROM davgate.jobs
         WHERE node_id = $1 AND ended_ms IS NULL`,
        node,
      ),
    async find(nowMs, { id, account, app, kind }) {
      const row = await findRow<StoredJob>(
        pool,
        `SELECT ended_ms AS "endedMs", result, until_ms AS "untilMs"
         FROM davgate.jobs LEFT JOIN davgate.nodes USING (node_id)
         WHERE job_id = $1 AND account_id = $2 AND app_key = $3 AND kind = $4`,
        id,
        account,
        app,
        kind,
      );
      return row && stateOf(row, nowMs);
    },
    forgetOld: (nowMs, limit) =>
      deleteUnlocked(
        pool,
        { table: 'jobs', key: 'sequence', condition: OVER, values: [nowMs - JOB_KEPT_MS] },
        limit,
      ),
  };
}

/**
 * Adds a job to a line. The lock of the account lets no other process add one before this one is committed: else one with a
 * later number could begin without seeing this one.
 */
async function addToLine(on: Queries, job: NewJob, node: string, untilMs: number): Promise<void> {
  await on.query('SELECT FROM davgate.accounts WHERE account_id = $1 FOR NO KEY UPDATE', [job.account]);
  await insert(on, job, node, untilMs);
}

async function insert(
  on: Queries,
  { id, account, app, kind, line }: NewJob,
  node: string,
  untilMs: number,
): Promise<void> {
  await on.query(
    `WITH renewed AS (${RENEW_LEASE})
     INSERT INTO davgate.jobs (node_id, job_id, account_id, app_key, kind, line)
     VALUES ($1, $3, $4, $5, $6, $7)`,
    [node, untilMs, id, account, app, kind, line],
  );
}

async function end(on: Queries, id: string, endedMs: number, result: JobResult | 'failed'): Promise<boolean> {
  const running = await findRow(
    on,
    'SELECT FROM davgate.jobs WHERE job_id = $1 AND ended_ms IS NULL FOR NO KEY UPDATE',
    id,
  );
  if (!running) return false;
  const [stored] = await rowsOf<{ entries: number }>(
    on,
    `WITH stored AS (UPDATE davgate.stored_entries SET entries = entries + $4 RETURNING entries)
     UPDATE davgate.jobs SET ended_ms = $2, result = $3, entries_so_far = entries
     FROM stored WHERE job_id = $1 RETURNING entries`,
    id,
    endedMs,
    result === 'failed' ? null : JSON.stringify(result),
    entriesOf(result),
  );
  if (!stored) throw new Error('a job that is locked is not there');
  await deleteUnlocked(on, {
    table: 'jobs',
    key: 'sequence',
    condition: 'entries_so_far <= $1',
    values: [stored.entries - ENTRIES_KEPT_MAX],
  });
  return true;
}
