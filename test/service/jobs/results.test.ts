import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import type { Directory } from '../../../src/service/directory/directory.ts';
import {
  ENTRIES_KEPT_MAX,
  type Job,
  type JobResult,
  type JobRows,
} from '../../../src/service/jobs/job-rows.ts';
import { jobsOf } from '../../../src/service/jobs/jobs.ts';
import { silentLog } from '../../../src/util/log.ts';
import { Sqlite, type SqliteDatabase } from '../../../src/util/sqlite/sqlite.ts';
import { addApp, besideService } from '../../support/consent.ts';
import { eventually, expectSoon } from '../../support/eventually.ts';
import { Gate } from '../../support/gate.ts';
import { finished } from '../../support/jobs.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { type Answered, put, refusal, refusalIn, rpc } from '../../support/service-client.ts';
import { NAMESPACE, serviceOver } from '../../support/service-over.ts';
import { unhurried } from '../../support/unhurried.ts';
import { opened } from '../storage/opened.ts';

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;
const KIND = 'files/delete_batch';
const IN_PROGRESS = { '.tag': 'in_progress' };
const FAILED = refusal(409, 'internal_error', { '.tag': 'internal_error' });
const UNKNOWN = refusal(409, 'invalid_async_job_id', { '.tag': 'invalid_async_job_id' });

let clock: ManualClock;
let service: TestService;
/** The database of the service, on a connection of the test's own. */
let database: SqliteDatabase;

beforeEach(async () => {
  clock = new ManualClock();
  service = await startTestService({ clock });
  database = new Sqlite(join(service.dataDirectory, 'accounts.sqlite'));
});
afterEach(async () => {
  database.close();
  await clock.during(service.close());
});

const check = (id: string, token = service.token) =>
  rpc(service, `${KIND}/check`, { async_job_id: id }, { token });

const idIn = ({ json }: Answered) => (json as { async_job_id: string }).async_job_id;

const countOf = (table: string) =>
  database.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get();

/** Returns a job of the default account and app. */
async function ownJob(id: string): Promise<Job> {
  const { json } = await rpc(service, 'users/get_current_account', null);
  return { id, account: (json as { account_id: string }).account_id, app: service.appKey, kind: KIND };
}

/** Does what another process with the same directory would do. */
const elsewhere = <T>(work: (directory: Directory) => Promise<T>) => besideService(service, work);

test('a job of another process is in progress while its lease lasts, then answers internal_error, and is unknown a day later', async () => {
  const job = await ownJob('dbjid:elsewhere');
  await elsewhere(({ jobRows }) => jobRows.add(job, 'other', clock.now() + 20_000));
  await clock.advance(19_999);
  expect((await check(job.id)).json).toEqual(IN_PROGRESS);
  await clock.advance(1);
  expect(refusalIn(await check(job.id))).toEqual(FAILED);
  await clock.advance(DAY_MS - 1);
  expect(refusalIn(await check(job.id))).toEqual(FAILED);
  await clock.advance(1);
  expect(refusalIn(await check(job.id))).toEqual(UNKNOWN);
});

test('the result of a job of another process can be checked, also after its lease has ended', async () => {
  const job = await ownJob('dbjid:elsewhere');
  await elsewhere(async ({ jobRows }) => {
    await jobRows.add(job, 'other', clock.now() + 20_000);
    await jobRows.end(job.id, clock.now(), { '.tag': 'complete', entries: [] });
  });
  expect((await check(job.id)).json).toEqual({ '.tag': 'complete', entries: [] });
  await clock.advance(HOUR_MS);
  expect((await check(job.id)).json).toEqual({ '.tag': 'complete', entries: [] });
});

test('delete_batch/check answers the result of a job for 24 hours and invalid_async_job_id afterwards', async () => {
  const launched = await rpc(service, KIND, { entries: [] });
  await finished(service, 'delete_batch', launched);
  await clock.advance(DAY_MS - 1);
  expect((await check(idIn(launched))).json).toEqual({ '.tag': 'complete', entries: [] });
  await clock.advance(1);
  expect(refusalIn(await check(idIn(launched)))).toEqual(UNKNOWN);
});

test('a batch waits for an earlier one of another process, and runs when that has ended or its process is gone', async () => {
  const { account, app } = await ownJob('');
  const add = (id: string) =>
    elsewhere(({ jobRows }) =>
      jobRows.add({ id, account, app, kind: KIND, line: 'batches' }, 'other', clock.now() + 20_000),
    );
  await put(service, '/a', 'text');
  await put(service, '/b', 'text');
  await add('dbjid:killed');
  const success = { '.tag': 'complete', entries: [{ '.tag': 'success' }] };
  const expectRun = (launched: Answered) =>
    eventually(async () => {
      await clock.advance(200);
      expect((await check(idIn(launched))).json).toMatchObject(success);
    });
  const first = await rpc(service, KIND, { entries: [{ path: '/a' }] });
  await clock.advance(19_000);
  expect((await check(idIn(first))).json).toEqual(IN_PROGRESS);
  expect((await rpc(service, 'files/get_metadata', { path: '/a' })).status).toBe(200);
  await clock.advance(1_000);
  await expectRun(first);
  await add('dbjid:ends');
  const second = await rpc(service, KIND, { entries: [{ path: '/b' }] });
  await clock.advance(1_000);
  expect((await check(idIn(second))).json).toEqual(IN_PROGRESS);
  await elsewhere(({ jobRows }) => jobRows.end('dbjid:ends', clock.now(), 'failed'));
  await expectRun(second);
});

test('a job that takes 10 minutes is in progress for another process until its result is there', async () => {
  service.service.setFaults({ 'contention-hold-ms': 600_000 });
  const job = await ownJob(idIn(await rpc(service, KIND, { entries: [{ path: '/a' }] })));
  await clock.untilSleeping();
  const state = () => elsewhere(({ jobRows }) => jobRows.find(clock.now(), job));
  for (let minute = 0; minute < 10; minute++) {
    expect(await state()).toBe('in-progress');
    await clock.advance(60_000);
  }
  await expectSoon(state).toMatchObject({ '.tag': 'complete', entries: [{ '.tag': 'failure' }] });
});

test('a service that closes ends the jobs that it cuts off for other processes at once', async () => {
  service.service.setFaults({ 'contention-hold-ms': 1 });
  await rpc(service, KIND, { entries: [{ path: '/a' }] });
  await clock.untilSleeping();
  const waiting = await ownJob(idIn(await rpc(service, KIND, { entries: [{ path: '/a' }] })));
  const closed = service.service.close();
  await clock.advance(1);
  await closed;
  expect(await elsewhere(({ jobRows }) => jobRows.find(clock.now(), waiting))).toBe('failed');
});

test('a job answers invalid_async_job_id to another app of the same account, while it runs and afterwards', async () => {
  const { app } = await addApp(service);
  const { account } = await ownJob('');
  const token = await elsewhere(({ tokens }) =>
    tokens.grantAccess(clock.now(), { accountId: account, appKey: app.key, scopes: app.scopes }),
  );
  service.service.setFaults({ 'contention-hold-ms': 1 });
  const id = idIn(await rpc(service, KIND, { entries: [{ path: '/a' }] }));
  await clock.untilSleeping();
  expect((await check(id)).json).toEqual(IN_PROGRESS);
  expect(refusalIn(await check(id, token))).toEqual(UNKNOWN);
  await clock.advance(1);
  await eventually(async () => expect((await check(id)).json).toMatchObject({ '.tag': 'complete' }));
  expect(refusalIn(await check(id, token))).toEqual(UNKNOWN);
});

test('a service that ends between the changes of a batch and its result answers internal_error after a restart', async () => {
  await put(service, '/gone', 'text');
  database.exec("CREATE TRIGGER broken BEFORE UPDATE ON jobs BEGIN SELECT RAISE (ABORT, 'injected'); END");
  const launched = await rpc(service, KIND, { entries: [{ path: '/gone' }] });
  expect(await finished(service, 'delete_batch', launched)).toMatchObject([{ '.tag': 'success' }]);
  await service.service.close();
  database.exec('DROP TRIGGER broken');
  const again = await startTestService({ clock, dataDirectory: service.dataDirectory });
  try {
    expect(refusalIn(await rpc(again, `${KIND}/check`, { async_job_id: idIn(launched) }))).toEqual(FAILED);
    expect((await rpc(again, 'files/get_metadata', { path: '/gone' })).status).toBe(409);
  } finally {
    await again.close();
  }
});

test('housekeeping removes jobs a day after their end, with and without a result, and their processes', async () => {
  await finished(service, 'delete_batch', { entries: [] });
  const job = await ownJob('dbjid:elsewhere');
  await elsewhere(({ jobRows }) => jobRows.add(job, 'other', clock.now() + 20_000));
  await clock.advance(DAY_MS - HOUR_MS);
  expect([countOf('jobs'), countOf('nodes')]).toEqual([2, 2]);
  await eventually(async () => {
    await clock.advance(HOUR_MS);
    expect([countOf('jobs'), countOf('nodes')]).toEqual([0, 0]);
  });
});

test('an account that is removed takes its jobs with it', async () => {
  const { account } = await ownJob('');
  await finished(service, 'delete_batch', { entries: [] });
  expect(countOf('jobs')).toBe(1);
  await elsewhere(({ accounts }) => accounts.remove(account));
  expect(countOf('jobs')).toBe(0);
});

test('beyond 250,000 entries the oldest results are removed', async () => {
  const launched = await rpc(service, KIND, { entries: [] });
  await finished(service, 'delete_batch', launched);
  const last = await rpc(service, KIND, { entries: [{ path: '/missing' }] });
  await finished(service, 'delete_batch', last);
  const large = await ownJob('dbjid:large');
  await elsewhere(async ({ jobRows }) => {
    await jobRows.add(large, 'other', clock.now());
    const entries = Array.from({ length: ENTRIES_KEPT_MAX - 1 }, () => ({}));
    await jobRows.end(large.id, clock.now(), { '.tag': 'complete', entries });
  });
  expect(refusalIn(await check(idIn(launched)))).toEqual(UNKNOWN);
  expect((await check(idIn(last))).json).toMatchObject({ entries: [{ '.tag': 'failure' }] });
  expect((await check(large.id)).json).toMatchObject({ entries: { length: ENTRIES_KEPT_MAX - 1 } });
});

/** Starts a service whose jobs fail with an error of this code where they are stored, or in `broken`. */
async function withBrokenJobs(code: string, broken: readonly (keyof JobRows)[] = ['add', 'end']) {
  const storage = await opened();
  await storage.createNamespace(NAMESPACE, 1000);
  await storage.createFolder(NAMESPACE, '/a', false);
  const fails = async () => {
    throw Object.assign(new Error('injected'), { code });
  };
  const over = await serviceOver(storage, silentLog, (directory) => ({
    ...directory,
    jobRows: { ...directory.jobRows, ...Object.fromEntries(broken.map((name) => [name, fails])) },
  }));
  onTestFinished(() => over.close());
  const statusOf = async (path: string) => (await rpc(over, 'files/get_metadata', { path })).status;
  return { over, statusOf, launched: await rpc(over, KIND, { entries: [{ path: '/a' }] }) };
}

test('delete_batch removes its entries and has a result on a disk that is too full to store it', async () => {
  const { over, statusOf, launched } = await withBrokenJobs('SQLITE_FULL');
  expect(await finished(over, 'delete_batch', launched)).toMatchObject([{ '.tag': 'success' }]);
  expect(await statusOf('/a')).toBe(409);
});

test('delete_batch answers 500 and removes nothing when its job cannot be stored', async () => {
  const { statusOf, launched } = await withBrokenJobs('SQLITE_IOERR');
  expect(launched.status).toBe(500);
  expect(await statusOf('/a')).toBe(200);
});

test('delete_batch answers internal_error and removes nothing when it cannot see whose turn it is', async () => {
  const { over, statusOf, launched } = await withBrokenJobs('ECONNRESET', ['mustWait']);
  const check = () => rpc(over, `${KIND}/check`, { async_job_id: idIn(launched) });
  await eventually(async () => expect(refusalIn(await check())).toEqual(FAILED));
  expect(await statusOf('/a')).toBe(200);
});

const COMPLETE: JobResult = { '.tag': 'complete', entries: [] };

/** How long a process may need to end its jobs after an outage, in ms of the test's clock. */
const RECOVERY_MS = 60_000;

/** Starts two processes with the jobs of one directory. While it `isAway` for the second one, its calls fail. */
async function twoProcesses(directory: Directory) {
  const owner = { account: (await ownJob('')).account, app: service.appKey, namespace: NAMESPACE };
  const outage = { isAway: false };
  const lost = () => Object.assign(new Error('injected'), { code: 'ECONNRESET' });
  const { jobRows } = directory;
  const failing: JobRows = {
    ...jobRows,
    // Its answer is lost.
    async add(...job) {
      await jobRows.add(...job);
      if (outage.isAway) throw lost();
    },
    async mustWait(...own) {
      if (outage.isAway) throw lost();
      return await jobRows.mustWait(...own);
    },
    async end(...ended) {
      if (outage.isAway) throw lost();
      return await jobRows.end(...ended);
    },
  };
  const common = { nodes: directory.nodes, clock, log: silentLog, closing: unhurried() };
  const processes = [jobsOf({ ...common, jobRows }), jobsOf({ ...common, jobRows: failing })] as const;
  const [one, other] = processes.map((jobs) => ({
    start: (work = async () => COMPLETE) => jobs.start(owner, KIND, work),
    state: (id: string) => jobs.state(owner, KIND, id),
  }));
  if (!one || !other) throw new Error('not two');
  return { one, other, outage };
}

/** Lets processes poll for `RECOVERY_MS`. */
async function recover(): Promise<void> {
  for (let passedMs = 0; passedMs < RECOVERY_MS; passedMs += 200) await clock.advance(200);
}

test('a batch that fails in an outage of the database, which cannot store that either, makes no later batch wait', () =>
  elsewhere(async (directory) => {
    const { one, other, outage } = await twoProcesses(directory);
    const gate = new Gate();
    const first = await one.start(async () => {
      await gate.pass();
      return COMPLETE;
    });
    const second = await other.start();
    await clock.untilSleeping();
    outage.isAway = true;
    await clock.advance(200);
    await expectSoon(() => other.state(second)).toBe('failed');
    outage.isAway = false;
    gate.open();
    const later = [await one.start(), await other.start()] as const;
    await recover();
    expect(await one.state(first)).toEqual(COMPLETE);
    expect(await one.state(second)).toBe('failed');
    expect(await one.state(later[0])).toEqual(COMPLETE);
    expect(await other.state(later[1])).toEqual(COMPLETE);
  }));

test('a batch whose call fails because the answer of the database is lost makes no later batch wait', () =>
  elsewhere(async (directory) => {
    const { one, other, outage } = await twoProcesses(directory);
    outage.isAway = true;
    await expect(other.start()).rejects.toThrow('injected');
    outage.isAway = false;
    const later = [await one.start(), await other.start()] as const;
    await recover();
    expect(await one.state(later[0])).toEqual(COMPLETE);
    expect(await other.state(later[1])).toEqual(COMPLETE);
  }));

test('a result that cannot be stored in an outage of the database is stored after it, for all processes', () =>
  elsewhere(async (directory) => {
    const { one, other, outage } = await twoProcesses(directory);
    const id = await other.start(async () => {
      outage.isAway = true;
      return COMPLETE;
    });
    await expectSoon(() => other.state(id)).toEqual(COMPLETE);
    expect(await one.state(id)).toBe('in-progress');
    // Longer than a lease: it is renewed meanwhile.
    await recover();
    expect(await one.state(id)).toBe('in-progress');
    outage.isAway = false;
    await recover();
    expect(await one.state(id)).toEqual(COMPLETE);
  }));
