import type { Pool } from 'pg';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { Directory } from '../../src/service/directory/directory.ts';
import { openPostgresDirectory } from '../../src/service/directory/postgres/postgres-directory.ts';
import type { JobResult, JobRows } from '../../src/service/jobs/job-rows.ts';
import { jobsOf } from '../../src/service/jobs/jobs.ts';
import { SIGNED_IN_MAX } from '../../src/service/oauth/signed-in.ts';
import { openPool } from '../../src/service/postgres/connect.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { directoryContract } from '../contract/directory/directory.contract.ts';
import {
  addAccount,
  HOUR_MS,
  NOW_MS,
  newConsent,
  type OpenedTwice,
} from '../contract/directory/directory-under-test.ts';
import { eventually, expectSoon } from '../support/eventually.ts';
import { Gate } from '../support/gate.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { unhurried } from '../support/unhurried.ts';

let postgres: TestPostgres;
/** Connections of two processes. */
let pools: readonly [Pool, Pool];

// One database for all tests, whose connections take more time than the tests.
beforeAll(async () => {
  postgres = await startPostgres();
  const url = await postgres.newDatabase();
  pools = [openPool(url, silentLog), openPool(url, silentLog)];
  await openPostgresDirectory(pools[0]);
});
afterAll(async () => {
  for (const pool of pools) await pool.end();
  await postgres.close();
});

/** Opens an empty directory through both pools. */
async function openEmpty(): Promise<OpenedTwice> {
  const { rows } = await pools[0].query<{ name: string }>(
    `SELECT string_agg('davgate.' || tablename, ', ') AS name FROM pg_tables
     WHERE schemaname = 'davgate' AND tablename NOT IN ('schema', 'stored_entries')`,
  );
  await pools[0].query(`TRUNCATE ${rows[0]?.name}; UPDATE davgate.stored_entries SET entries = 0`);
  const [first, second] = [await openPostgresDirectory(pools[0]), await openPostgresDirectory(pools[1])];
  return { directory: first.directory, other: second.directory };
}

directoryContract('PostgreSQL', openEmpty);

describe('the directory in PostgreSQL', () => {
  test('an access token and its account are one statement', async () => {
    const { directory } = await openEmpty();
    const token = await directory.tokens.grantAccess(NOW_MS, await newConsent(directory));
    const query = vi.spyOn(pools[0], 'query');
    expect(await directory.tokens.bearer(NOW_MS, token)).toBeDefined();
    expect(query).toHaveBeenCalledTimes(1);
  });

  test('of more sign-ins than the maximum, the ones that end first are dropped', async () => {
    const { directory } = await openEmpty();
    const [pool] = pools;
    const { id: accountId } = await addAccount(directory);
    const signedIn = { accountId, passwordHash: Buffer.from('hash'), signedInFor: '' };
    await directory.signedIn.add('first', { ...signedIn, expiresMs: NOW_MS + 1 });
    await directory.signedIn.add('second', { ...signedIn, expiresMs: NOW_MS + 2 });
    await pool.query(
      `INSERT INTO davgate.signed_in SELECT int4send(n), $1, '', '', $2 FROM generate_series(3, $3) AS n`,
      [accountId, NOW_MS + 3, SIGNED_IN_MAX],
    );
    await Promise.all(
      ['third', 'fourth'].map((id) => directory.signedIn.add(id, { ...signedIn, expiresMs: NOW_MS + 4 })),
    );
    for (const dropped of ['first', 'second'])
      expect(await directory.signedIn.find(NOW_MS, dropped)).toBeUndefined();
    for (const kept of ['third', 'fourth']) expect(await directory.signedIn.find(NOW_MS, kept)).toBeDefined();
    const { rows } = await pool.query('SELECT count(*) FROM davgate.signed_in');
    expect(rows).toEqual([{ count: SIGNED_IN_MAX }]);
  });

  test('a job that is added while an earlier one of its line is being committed waits for that one', async () => {
    const { directory, other } = await openEmpty();
    const [pool] = pools;
    const { id: account } = await addAccount(directory);
    await pool.query(
      `CREATE FUNCTION davgate.hold() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
       CREATE CONSTRAINT TRIGGER held AFTER INSERT ON davgate.jobs DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW WHEN (NEW.job_id = 'first') EXECUTE FUNCTION davgate.hold()`,
    );
    onTestFinished(async () => {
      await pool.query('DROP FUNCTION davgate.hold CASCADE');
    });
    const waiting = async () => {
      const { rows } = await pool.query(
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      return rows.length;
    };
    const add = ({ jobRows }: Directory, id: string) =>
      jobRows.add({ id, account, app: 'app', kind: 'kind', line: 'line' }, `node of ${id}`, NOW_MS + HOUR_MS);
    const holder = await pool.connect();
    await holder.query('SELECT pg_advisory_lock(1)');
    const first = add(directory, 'first');
    await expectSoon(waiting).toBe(1);
    let isAdded = false;
    const mustWait = add(other, 'second').then(() => {
      isAdded = true;
      return other.jobRows.mustWait(NOW_MS, 'second');
    });
    await eventually(async () => expect(isAdded || (await waiting()) === 2).toBe(true));
    await holder.query('SELECT pg_advisory_unlock(1)');
    holder.release();
    await first;
    expect(await mustWait).toBe(true);
  });

  test('a job of a process whose clock is a minute behind is in progress for others, and their batches wait for it', async () => {
    const { directory, other } = await openEmpty();
    const owner = { account: (await addAccount(directory)).id, app: 'app', namespace: 'home' };
    const gate = new Gate();
    const work = async (): Promise<JobResult> => {
      await gate.pass();
      return { '.tag': 'complete', entries: [] };
    };
    const waits: boolean[] = [];
    const jobsAt = ({ nodes, jobRows }: Directory, aheadMs: number) => {
      const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
      const mustWait: JobRows['mustWait'] = async (...own) => {
        waits.push(await jobRows.mustWait(...own));
        return waits.at(-1) === true;
      };
      const rows = { ...jobRows, mustWait };
      return jobsOf({ nodes, jobRows: rows, clock, log: silentLog, closing: unhurried() });
    };
    const [late, early] = [jobsAt(directory, -30_000), jobsAt(other, 30_000)];
    const first = await late.start(owner, 'kind', work);
    await gate.reached;
    const second = await early.start(owner, 'kind', work);
    expect(await early.state(owner, 'kind', first)).toBe('in-progress');
    await eventually(() => expect(waits.slice(0, 2)).toEqual([false, true]));
    gate.open();
    for (const id of [first, second])
      await expectSoon(() => late.state(owner, 'kind', id)).toMatchObject({ '.tag': 'complete' });
  });
});
