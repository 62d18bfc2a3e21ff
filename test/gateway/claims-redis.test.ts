import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import { silentLog } from '../../src/util/log.ts';
import { lockOn } from '../contract/locks.contract.ts';
import { eventually } from '../support/eventually.ts';
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
  const log = { ...silentLog, warn: (event: string) => void warnings.push(event) };
  const state = await openRedisState({ url: redis.url, clock, log });
  states.push(state);
  return state.drive('d').locks;
}

const say = (words: string) => sayToRedis(redis, words);

/** Ends the lease of a claim. Leases go by the clock of Redis, which a test cannot turn. */
const letLeaseRunOut = (id: string) => say(`ZADD davgate:{d}:claim-ends 1 ${id}`);

test('claims of a gateway that died no longer refuse locks once their lease has ended', async () => {
  const [dead, alive] = [await gateway(), await gateway()];
  const { id } = await dead.claim(NOW_MS, [CLAIM, { root: path('/tree'), depth: 'infinity' }]);
  expect(await alive.create(NOW_MS, lockOn('/a'))).toHaveProperty('claim');
  await letLeaseRunOut(id);
  expect(await alive.create(NOW_MS, lockOn('/a'))).toHaveProperty('token');
  expect(await alive.create(NOW_MS, lockOn('/tree/x'))).toHaveProperty('token');
  expect(await say('EXISTS davgate:{d}:claims davgate:{d}:claim-places davgate:{d}:claim-ends')).toBe(
    ':0\r\n',
  );
});

test('the lease of a claim is 15 s and is renewed while its request runs', async () => {
  const locks = await gateway();
  const other = await gateway();
  const { id } = await locks.claim(NOW_MS, [CLAIM]);
  const leaseEnd = async () => Number((await say(`ZSCORE davgate:{d}:claim-ends ${id}`)).split('\r\n')[1]);
  const redisNow = async () => Number((await say('TIME')).split('\r\n')[2]) * 1000;
  const endMs = await leaseEnd();
  // TIME is read in whole seconds.
  expect(endMs - (await redisNow())).toBeLessThan(16_000);
  await say(`ZADD davgate:{d}:claim-ends ${(await redisNow()) + 120_000} ${id}`);
  const before = await leaseEnd();
  await clock.untilSleeping();
  await clock.advance(RENEWAL_MS);
  await eventually(async () => expect(await leaseEnd()).toBeLessThan(before));
  expect(await other.create(NOW_MS, lockOn('/a'))).toHaveProperty('claim');
  await locks.endClaims(id);
  await clock.advance(RENEWAL_MS);
  expect(await say('EXISTS davgate:{d}:claim-ends')).toBe(':0\r\n');
  expect(warnings).toEqual([]);
});

test('claims that Redis has forgotten are entered again at their renewal, and the log says so', async () => {
  const [locks, other] = [await gateway(), await gateway()];
  const { id } = await locks.claim(NOW_MS, [CLAIM]);
  expect(await locks.claimsHold(id)).toBe(true);
  await say('FLUSHALL');
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

test('a gateway that waits for the claim of another one sees its end', async () => {
  const [locks, other] = [await gateway(), await gateway()];
  const { id } = await locks.claim(NOW_MS, [CLAIM]);
  await clock.during(other.claimsEnd(id, new AbortController().signal));
  expect(await other.create(NOW_MS, lockOn('/a'))).toHaveProperty('claim');
  await locks.endClaims(id);
  await clock.during(other.claimsEnd(id, new AbortController().signal));
  expect(await other.create(NOW_MS, lockOn('/a'))).toHaveProperty('token');
});
