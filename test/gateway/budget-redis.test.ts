import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { AccountBudget } from '../../src/state/budgets.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let accounts = 0;
const states: State[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const state of states.splice(0)) await state.close();
});
afterAll(() => redis.close());

/** Opens the budget of an account through a new gateway. */
async function open(account: string): Promise<AccountBudget> {
  const state = await openRedisState({ url: redis.url, clock: systemClock, log: silentLog });
  states.push(state);
  const budget = state.budget?.(account);
  if (!budget) throw new Error('Redis shares no budget');
  return budget;
}

/** Opens the budget of a new account through two gateways. */
async function openTwo(): Promise<readonly [AccountBudget, AccountBudget]> {
  const account = `dbid:${++accounts}`;
  return [await open(account), await open(account)];
}

/** The answer while nothing is known of the account. */
const UNPAUSED = { calls: 10, pausedMs: 0, parallelCommits: 'unknown' };

test('a pause that one gateway announces refuses the calls of the others until it ends', async () => {
  const [one, other] = await openTwo();
  expect(await other.take(10)).toEqual(UNPAUSED);
  await one.pause(3_600_000);
  const { calls, pausedMs } = await other.take(10);
  expect(calls).toBe(0);
  expect(pausedMs).toBeGreaterThan(3_000_000);
  expect(pausedMs).toBeLessThanOrEqual(3_600_000);
  await one.resume();
  expect(await other.take(10)).toEqual(UNPAUSED);
});

test('a shorter pause does not shorten a longer one of another gateway', async () => {
  const [one, other] = await openTwo();
  await one.pause(3_600_000);
  await other.pause(1000.5);
  expect((await one.take(1)).pausedMs).toBeGreaterThan(3_000_000);
});

test('a pause concerns its own account only', async () => {
  const [one] = await openTwo();
  const [another] = await openTwo();
  await one.pause(3_600_000);
  expect(await another.take(10)).toEqual(UNPAUSED);
});

test('of two gateways that know nothing about parallel commits, one is chosen to find out, and the other one learns it', async () => {
  const [one, other] = await openTwo();
  expect([await one.chooseTrier(), await other.chooseTrier()]).toEqual([true, false]);
  expect(await other.take(10)).toEqual(UNPAUSED);
  await one.learned('accepted');
  expect(await other.take(10)).toEqual({ ...UNPAUSED, parallelCommits: 'accepted' });
  expect(await other.chooseTrier()).toBe(false);
});

test('one gateway that has had a parallel commit refused is believed, whatever the others have had accepted', async () => {
  const [one, other] = await openTwo();
  await one.learned('accepted');
  await other.learned('refused');
  await one.learned('accepted');
  expect((await one.take(10)).parallelCommits).toBe('refused');
});

test('what is known about parallel commits is forgotten after an hour, and the choice of a gateway after 10 s', async () => {
  const [one] = await openTwo();
  const leftMs = async () =>
    Number((await sayToRedis(redis, `PTTL davgate:{account_dbid:${accounts}}:parallel-commits`)).slice(1));
  await one.chooseTrier();
  expect(await leftMs()).toBeLessThanOrEqual(10_000);
  await one.learned('refused');
  expect(await leftMs()).toBeLessThanOrEqual(3_600_000);
  expect(await leftMs()).toBeGreaterThan(3_000_000);
});
