import type { SqliteDatabase } from '../../../util/sqlite/sqlite.ts';
import {
  ENTRIES_KEPT_MAX,
  entriesOf,
  JOB_KEPT_MS,
  type Job,
  type JobRows,
  type NewJob,
  type StoredJob,
  stateOf,
} from '../../jobs/job-rows.ts';
import { RENEW_LEASE } from './nodes.ts';

interface End {
  readonly id: string;
  readonly endedMs: number;
  readonly entries: number;
  readonly result: string | null;
}

/** Returns the jobs in a database. */
export function jobRowsIn(database: SqliteDatabase): JobRows {
  const renew = database.prepare<[node: string, untilMs: number]>(RENEW_LEASE);
  const insert = database.prepare<[Job & { readonly node: string; readonly line: string | null }]>(
    `INSERT INTO jobs (job_id, account_id, app_key, kind, node_id, line)
     VALUES (@id, @account, @app, @kind, @node, @line)`,
  );
  const earlier = database.prepare<[id: string, nowMs: number], object>(
    `SELECT 1 FROM jobs AS own JOIN jobs AS earlier USING (account_id, line)
     JOIN nodes ON nodes.node_id = earlier.node_id AND nodes.node_id <> own.node_id
     WHERE own.job_id = ? AND earlier.sequence < own.sequence AND earlier.ended_ms IS NULL
       AND until_ms > ? LIMIT 1`,
  );
  const update = database.prepare<[End]>(
    `UPDATE jobs SET ended_ms = @endedMs, result = @result,
       entries_so_far = (SELECT coalesce(max(entries_so_far), 0) FROM jobs) + @entries
     WHERE job_id = @id AND ended_ms IS NULL`,
  );
  const dropOldest = database.prepare<[number]>(
    'DELETE FROM jobs WHERE entries_so_far <= (SELECT max(entries_so_far) FROM jobs) - ?',
  );
  const open = database.prepare<[node: string], Job>(
    `SELECT job_id AS id, account_id AS account, app_key AS app, kind FROM jobs
     WHERE node_id = ? AND ended_ms IS NULL`,
  );
  const select = database.prepare<[Job], StoredJob>(
    `SELECT ended_ms AS endedMs, result, until_ms AS untilMs FROM jobs LEFT JOIN nodes USING (node_id)
     WHERE job_id = @id AND account_id = @account AND app_key = @app AND kind = @kind`,
  );
  const forget = database.prepare<{ before: number; limit: number }>(
    `DELETE FROM jobs WHERE sequence IN (
       SELECT sequence FROM jobs WHERE ended_ms <= @before
       UNION ALL
       SELECT sequence FROM jobs LEFT JOIN nodes USING (node_id)
       WHERE ended_ms IS NULL AND coalesce(until_ms, 0) <= @before
       LIMIT @limit)`,
  );
  const add = database.transaction((job: NewJob, node: string, untilMs: number) => {
    renew.run(node, untilMs);
    insert.run({ ...job, node, line: job.line ?? null });
  });
  const end = database.transaction((ended: End) => {
    if (update.run(ended).changes === 0) return false;
    dropOldest.run(ENTRIES_KEPT_MAX);
    return true;
  });
  return {
    async add(job, node, untilMs) {
      add.immediate(job, node, untilMs);
    },
    mustWait: async (nowMs, id) => earlier.get(id, nowMs) !== undefined,
    async end(id, endedMs, result) {
      const text = result === 'failed' ? null : JSON.stringify(result);
      return end.immediate({ id, endedMs, entries: entriesOf(result), result: text });
    },
    open: async (node) => open.all(node),
    async find(nowMs, job) {
      const row = select.get(job);
      return row && stateOf(row, nowMs);
    },
    forgetOld: async (nowMs, limit) => forget.run({ before: nowMs - JOB_KEPT_MS, limit }).changes,
  };
}
