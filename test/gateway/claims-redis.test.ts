import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import { silentLog } from '../../src/util/log.ts';
import { eventually } from '../support/eventually.ts';
import { lockOn } from '../support/locks.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { path } from '../support/paths.ts';
import { sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const CLAIM = { root: path('/a'), depth: '0' } as const;
/** Time between two renewals, in ms: a third of the lease. */
const RENEWAL_MS = 5_000;

let redis: TestRedis;
let clock: ManualClock;
let warnings: string[];
const states: State[] = [];

beforeEach(async () => {
  redis = await startRedis();
  clock = new ManualClock();
  warnings = [];
});
afterEach(async () => {
  for (const state of states.splice(0)) await clock.during(state.close());
  await redis.close();
});

/** Opens the locks of one drive through a new gateway. */
async function gateway() {
  const warn = (event: string) => {
    // A manual clock does not agree with that of Redis.
    if (!event.startsWith('the clock of this machine')) warnings.push(event);
  };
  const log = { ...silentLog, warn };
  const state = await openRedisState({ url: redis.url, clock, log });
  states.push(state);
  return state.drive('d').locks;
}

const redisCommand = (words: string) => sayToRedis(redis, words);

/** Ends the lease of a claim. Leases follow the clock of Redis, which a test cannot set. */
const endLease = (id: string) => redisCommand(`ZADD davgate:{d}:claim-ends 1 ${id}`);

test('claims of a gateway that died stop refusing locks when their lease ends, and leave no key in Redis', async () => {
  const [dead, alive] = [await gateway(), await gateway()];
  const { id } = await dead.claim(NOW_MS, [CLAIM, { root: path('/tree'), depth: 'infinity' }]);
  expect(await alive.create(NOW_MS, lockOn('/a'))).toHaveProperty('claim');
  await endLease(id);
  expect(await alive.create(NOW_MS, lockOn('/a'))).toHaveProperty('token');
  expect(await alive.create(NOW_MS, lockOn('/tree/x'))).toHaveProperty('token');
  expect(
    await redisCommand('EXISTS davgate:{d}:claims davgate:{d}:claim-places davgate:{d}:claim-ends'),
  ).toBe(':0\r\n');
});

test('the lease of a claim lasts less than 16 s and is renewed until the claim ends', async () => {
  const locks = await gateway();
  const other = await gateway();
  const { id } = await locks.claim(NOW_MS, [CLAIM]);
  const leaseEnd = async () =>
    Number((await redisCommand(`ZSCORE davgate:{d}:claim-ends ${id}`)).split('\r\n')[1]);
  const redisNow = async () => Number((await redisCommand('TIME')).split('\r\n')[2]) * 1000;
  const endMs = await leaseEnd();
  // TIME is read in whole seconds.
  expect(endMs - (await redisNow())).toBeLessThan(16_000);
  await redisCommand(`ZADD davgate:{d}:claim-ends ${(await redisNow()) + 120_000} ${id}`);
  const before = await leaseEnd();
  await clock.untilSleeping();
  await clock.advance(RENEWAL_MS);
  await eventually(async () => expect(await leaseEnd()).toBeLessThan(before));
  expect(await other.create(NOW_MS, lockOn('/a'))).toHaveProperty('claim');
  await locks.endClaims(id);
  await clock.advance(RENEWAL_MS);
  expect(await redisCommand('EXISTS davgate:{d}:claim-ends')).toBe(':0\r\n');
  expect(warnings).toEqual([]);
});

test('claims that Redis lost are stored again at their next renewal with a warning, and claimsHold then returns false', async () => {
  const [locks, other] = [await gateway(), await gateway()];
  const { id } = await locks.claim(NOW_MS, [CLAIM]);
  expect(await locks.claimsHold(id)).toBe(true);
  await redisCommand('FLUSHALL');
  expect(await other.create(NOW_MS, lockOn('/a', { token: 'urn:first' }))).toHaveProperty('token');
  expect(await other.release('urn:first')).toBe(true);
  await clock.untilSleeping();
  await clock.advance(RENEWAL_MS);
  await eventually(() =>
    expect(warnings).toEqual([expect.stringContaining('unprotected against new locks')]),
  );
  expect(await locks.claimsHold(id)).toBe(false);
  expect(await other.create(NOW_MS, lockOn('/a'))).toHaveProperty('claim');
});

test('claimsEnd for a claim of another gateway resolves while the claim stands and after it has ended', async () => {
  const [locks, other] = [await gateway(), await gateway()];
  const { id } = await locks.claim(NOW_MS, [CLAIM]);
  await clock.during(other.claimsEnd(id, new AbortController().signal));
  expect(await other.create(NOW_MS, lockOn('/a'))).toHaveProperty('claim');
  await locks.endClaims(id);
  await clock.during(other.claimsEnd(id, new AbortController().signal));
  expect(await other.create(NOW_MS, lockOn('/a'))).toHaveProperty('token');
});
