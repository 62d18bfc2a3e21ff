import { describe, expect, test } from 'vitest';
import {
  ENTRIES_KEPT_MAX,
  JOB_KEPT_MS,
  type Job,
  type JobResult,
} from '../../../src/service/jobs/job-rows.ts';
import { addAccount, HOUR_MS, NOW_MS, type OpenTwice, raceOfAll } from './directory-under-test.ts';

const COMPLETE: JobResult = { '.tag': 'complete', entries: [{ name: 'ä "\0"' }] };

/** When a result ends, in ms. */
const LEASE_END_MS = NOW_MS + 1000;

function jobOf(account: string, id = 'job'): Job {
  return { id, account, app: 'app', kind: 'delete_batch' };
}

function resultOf(entries: number): JobResult {
  return { '.tag': 'complete', entries: new Array<object>(entries).fill({}) };
}

/** Opens a directory with an account. Returns its id too. */
async function openedWithAccount(open: OpenTwice) {
  const opened = await open();
  return { ...opened, opened, id: (await addAccount(opened.directory)).id };
}

/** Tests an implementation of `JobRows` and of `Nodes`. */
export function jobsContract(driver: string, open: OpenTwice): void {
  describe(`the jobs in ${driver}`, () => {
    test('a job is in progress until its result is stored, which all processes see', async () => {
      const { directory, other, id } = await openedWithAccount(open);
      const job = jobOf(id);
      await directory.jobRows.add(job, 'node', LEASE_END_MS);
      expect(await other.jobRows.find(NOW_MS, job)).toBe('in-progress');
      expect(await directory.jobRows.end(job.id, NOW_MS, COMPLETE)).toBe(true);
      expect(await other.jobRows.find(NOW_MS, job)).toEqual(COMPLETE);
      expect(await other.jobRows.end(job.id, NOW_MS, 'failed')).toBe(false);
      expect(await other.jobRows.end('unknown', NOW_MS, 'failed')).toBe(false);
    });

    test('a job is found only with its account, app and kind', async () => {
      const { directory, id } = await openedWithAccount(open);
      const job = jobOf(id);
      await directory.jobRows.add(job, 'node', LEASE_END_MS);
      for (const wrong of [{ id: 'x' }, { account: 'x' }, { app: 'x' }, { kind: 'x' }, { id: `${job.id}\0` }])
        expect(await directory.jobRows.find(NOW_MS, { ...job, ...wrong })).toBeUndefined();
    });

    test('a job that fails has failed', async () => {
      const { directory, id } = await openedWithAccount(open);
      await directory.jobRows.add(jobOf(id), 'node', LEASE_END_MS);
      await directory.jobRows.end('job', NOW_MS, 'failed');
      expect(await directory.jobRows.find(NOW_MS, jobOf(id))).toBe('failed');
    });

    test('of concurrent results of one job, exactly one is stored', async () => {
      const { opened, id } = await openedWithAccount(open);
      await opened.directory.jobRows.add(jobOf(id), 'node', LEASE_END_MS);
      const ends = await raceOfAll(opened, ({ jobRows }) => jobRows.end('job', NOW_MS, COMPLETE));
      expect(ends.filter(Boolean)).toHaveLength(1);
    });

    test('a job without a result has failed once the lease of its process ends, and a renewal keeps it', async () => {
      const { directory, other, id } = await openedWithAccount(open);
      await directory.jobRows.add(jobOf(id), 'node', LEASE_END_MS);
      expect(await other.jobRows.find(LEASE_END_MS, jobOf(id))).toBe('failed');
      await directory.nodes.renew('node', LEASE_END_MS + 1);
      await directory.nodes.renew('node', NOW_MS);
      expect(await other.jobRows.find(LEASE_END_MS, jobOf(id))).toBe('in-progress');
      await other.nodes.end(NOW_MS + 1, 'node');
      await other.nodes.end(NOW_MS + 2, 'node');
      expect(await directory.jobRows.find(NOW_MS + 1, jobOf(id))).toBe('failed');
    });

    test('adding a job extends the lease of its process, and never shortens it', async () => {
      const { directory, id } = await openedWithAccount(open);
      await directory.jobRows.add(jobOf(id, 'first'), 'node', NOW_MS + 1);
      await directory.jobRows.add(jobOf(id, 'second'), 'node', LEASE_END_MS);
      await directory.jobRows.add(jobOf(id, 'third'), 'node', NOW_MS + 1);
      for (const name of ['first', 'second', 'third'])
        expect(await directory.jobRows.find(LEASE_END_MS - 1, jobOf(id, name))).toBe('in-progress');
    });

    test('a job waits for the earlier ones of its account and line in living processes, and for no other', async () => {
      const { directory, other, id } = await openedWithAccount(open);
      const account = (await addAccount(directory, 'second@example.com')).id;
      const add = (name: string, node: string, change = {}) =>
        directory.jobRows.add({ ...jobOf(id, name), line: 'line', ...change }, node, LEASE_END_MS);
      await add('first', 'a');
      await add('own', 'b');
      await add('other line', 'b', { line: 'other' });
      await add('no line', 'b', { line: undefined });
      await add('other account', 'b', { account });
      const waiting = async (nowMs = NOW_MS) => {
        const names = ['first', 'own', 'other line', 'no line', 'other account', 'unknown'];
        const waits = await Promise.all(names.map((name) => other.jobRows.mustWait(nowMs, name)));
        return names.filter((_, index) => waits[index]);
      };
      expect(await waiting()).toEqual(['own']);
      expect(await waiting(LEASE_END_MS)).toEqual([]);
      await add('second', 'a');
      expect(await waiting()).toEqual(['own']);
      expect(await other.jobRows.mustWait(NOW_MS, 'second')).toBe(true);
      await directory.jobRows.end('first', NOW_MS, COMPLETE);
      expect(await waiting()).toEqual([]);
      expect(await other.jobRows.mustWait(NOW_MS, 'second')).toBe(true);
      await directory.jobRows.end('own', NOW_MS, 'failed');
      expect(await other.jobRows.mustWait(NOW_MS, 'second')).toBe(false);
    });

    test('the open jobs of a process are its own without a result', async () => {
      const { directory, other, id } = await openedWithAccount(open);
      for (const name of ['first', 'second'])
        await directory.jobRows.add({ ...jobOf(id, name), line: 'line' }, 'node', LEASE_END_MS);
      await directory.jobRows.add(jobOf(id, 'elsewhere'), 'other node', LEASE_END_MS);
      await directory.jobRows.end('first', NOW_MS, COMPLETE);
      expect(await other.jobRows.open('node')).toEqual([jobOf(id, 'second')]);
      await directory.jobRows.end('second', NOW_MS, 'failed');
      expect(await other.jobRows.open('node')).toEqual([]);
    });

    test('endAll ends the leases of all processes', async () => {
      const { directory, other, id } = await openedWithAccount(open);
      for (const node of ['a', 'b']) await directory.jobRows.add(jobOf(id, node), node, LEASE_END_MS);
      await other.nodes.endAll(NOW_MS);
      for (const node of ['a', 'b'])
        expect(await directory.jobRows.find(NOW_MS, jobOf(id, node))).toBe('failed');
    });

    test('a job can be checked for a day after its end, and is then forgotten in steps', async () => {
      const { directory, other, id } = await openedWithAccount(open);
      for (const name of ['first', 'second', 'third']) {
        await directory.jobRows.add(jobOf(id, name), 'node', LEASE_END_MS);
        await directory.jobRows.end(name, NOW_MS, 'failed');
      }
      await directory.jobRows.add(jobOf(id, 'running'), 'other node', NOW_MS + 2 * JOB_KEPT_MS);
      const overMs = NOW_MS + JOB_KEPT_MS;
      expect(await directory.jobRows.find(overMs - 1, jobOf(id, 'first'))).toBe('failed');
      expect(await directory.jobRows.find(overMs, jobOf(id, 'first'))).toBeUndefined();
      expect(await directory.jobRows.forgetOld(overMs - 1, 2)).toBe(0);
      expect(await directory.jobRows.forgetOld(overMs, 2)).toBe(2);
      expect(await other.jobRows.forgetOld(overMs, 2)).toBe(1);
      expect(await directory.jobRows.find(overMs, jobOf(id, 'running'))).toBe('in-progress');
    });

    test('a job without a result is forgotten a day after the lease of its process, or with a forgotten process', async () => {
      const { directory, id } = await openedWithAccount(open);
      await directory.jobRows.add(jobOf(id), 'node', LEASE_END_MS);
      const overMs = LEASE_END_MS + JOB_KEPT_MS;
      expect(await directory.jobRows.forgetOld(overMs - 1, 10)).toBe(0);
      expect(await directory.nodes.forgetOld(overMs - 1, 10)).toBe(0);
      expect(await directory.nodes.forgetOld(overMs, 10)).toBe(1);
      expect(await directory.jobRows.find(NOW_MS, jobOf(id))).toBeUndefined();
      expect(await directory.jobRows.forgetOld(NOW_MS, 10)).toBe(1);
    });

    test('the oldest results are removed when all results together have too many entries', async () => {
      const { directory, other, id } = await openedWithAccount(open);
      const end = async (name: string, entries: number) => {
        await directory.jobRows.add(jobOf(id, name), 'node', NOW_MS + HOUR_MS);
        await other.jobRows.end(name, NOW_MS, resultOf(entries));
      };
      const kept = async () => {
        const names = ['small', 'large', 'last', 'one more', 'two more'];
        const states = await Promise.all(
          names.map((name) => directory.jobRows.find(NOW_MS, jobOf(id, name))),
        );
        return names.filter((_, index) => states[index] !== undefined);
      };
      await end('small', 1);
      await end('large', ENTRIES_KEPT_MAX - 2);
      await end('last', 1);
      expect(await kept()).toEqual(['small', 'large', 'last']);
      await end('one more', 1);
      expect(await kept()).toEqual(['large', 'last', 'one more']);
      await end('two more', ENTRIES_KEPT_MAX - 2);
      expect(await kept()).toEqual(['last', 'one more', 'two more']);
    });

    test('concurrent results all count', async () => {
      const { opened, id } = await openedWithAccount(open);
      const entries = ENTRIES_KEPT_MAX / 10;
      await raceOfAll(opened, async ({ jobRows }, index) => {
        await jobRows.add(jobOf(id, `${index}`), 'node', NOW_MS + HOUR_MS);
        await jobRows.end(`${index}`, NOW_MS, resultOf(entries));
      });
      const states = await raceOfAll(opened, ({ jobRows }, index) =>
        jobRows.find(NOW_MS, jobOf(id, `${index}`)),
      );
      expect(states.filter((state) => state !== undefined)).toHaveLength(10);
    });
  });
}
