import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { OtherOwner } from '../../src/state/errors.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { appPasswordsContract } from '../contract/app-passwords.contract.ts';
import { ANN, BOB, ownersContract } from '../contract/owners.contract.ts';
import { secretContract } from '../contract/secret.contract.ts';
import { uploadLinksContract } from '../contract/upload-links.contract.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let databases = 0;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

async function open(url = `${redis.url}/${++databases}`): Promise<State> {
  const state = await openRedisState({ url, clock: systemClock, log: silentLog });
  onTestFinished(() => state.close());
  return state;
}

ownersContract('Redis', async () => (await open()).owners);
appPasswordsContract('Redis', async () => (await open()).appPasswords);
secretContract('Redis', () => {
  const url = `${redis.url}/${++databases}`;
  return () => openRedisState({ url, clock: systemClock, log: silentLog });
});
uploadLinksContract('Redis', async () => (await open()).uploadLinks);

test('a drive in Redis belongs to the first account that sets itself as its owner, and any other account or root is refused', async () => {
  const [one, other] = [await open(), await open(`${redis.url}/${databases}`)];
  const outcomes = await Promise.allSettled([one.owners.set('d', ANN), other.owners.set('d', BOB)]);
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected']);
  await expect(other.owners.set('d', BOB)).rejects.toThrow(OtherOwner);
  await expect(other.owners.set('d', BOB)).rejects.toThrow(
    /^drive "d" in redis:\S+ is kept for ann@example\.org \(dbid:ann\), and this login is of bob@example\.org \(dbid:bob, folder \/Team\/Pläne\); give one of them/,
  );
  await expect(other.owners.set('d', { ...ANN, root: '/Work' })).rejects.toThrow(OtherOwner);
  await other.owners.set('d', ANN);
  expect(await one.owners.get('d')).toEqual(ANN);
});
