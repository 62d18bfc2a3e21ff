import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Locks } from '../../src/state/locks.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { DriveState, State } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { intentsContract } from '../contract/intents.contract.ts';
import { localFilesContract, localFilesLimitContract } from '../contract/local-files.contract.ts';
import { locksContract } from '../contract/locks.contract.ts';
import { placeholdersContract } from '../contract/placeholders.contract.ts';
import { propertiesContract } from '../contract/properties.contract.ts';
import { replacementsContract } from '../contract/replacements.contract.ts';
import { timesContract } from '../contract/times.contract.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
const states: State[] = [];
let drives = 0;

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const state of states.splice(0)) await state.close();
});
afterAll(() => redis.close());

async function open(localFilesBytesMax?: number): Promise<State> {
  const limit = localFilesBytesMax === undefined ? {} : { localFilesBytesMax };
  const state = await openRedisState({ url: redis.url, clock: systemClock, log: silentLog, ...limit });
  states.push(state);
  return state;
}

/** Opens a new drive through two gateways. */
async function openTwo(localFilesBytesMax?: number): Promise<readonly [DriveState, DriveState]> {
  const drive = `drive-${++drives}`;
  const [one, other] = [await open(localFilesBytesMax), await open(localFilesBytesMax)];
  return [one.drive(drive), other.drive(drive)];
}

/** Returns a store whose every second call goes through another gateway. */
async function takingTurns<K extends keyof DriveState>(
  store: K,
  localFilesBytesMax?: number,
): Promise<DriveState[K]> {
  const [one, other] = await openTwo(localFilesBytesMax);
  let calls = 0;
  return new Proxy(one[store], {
    get: (_, name) => Reflect.get(++calls % 2 === 0 ? one[store] : other[store], name),
  });
}

/** Returns locks whose every second call goes through another gateway. Claims are ended at both. */
async function locksInTurns(): Promise<Locks> {
  const [one, other] = await openTwo();
  let calls = 0;
  const endClaims = async (id: string) => {
    await Promise.all([one.locks.endClaims(id), other.locks.endClaims(id)]);
  };
  return new Proxy(one.locks, {
    get: (locks, name) =>
      name === 'endClaims' ? endClaims : Reflect.get(++calls % 2 === 0 ? locks : other.locks, name),
  });
}

propertiesContract('Redis', async () => (await openTwo())[0].properties);

locksContract('Redis through two gateways', locksInTurns);
localFilesContract('Redis through two gateways', () => takingTurns('localFiles'));
localFilesLimitContract('Redis through two gateways', () => takingTurns('localFiles', 100));
placeholdersContract('Redis through two gateways', () => takingTurns('placeholders'));
timesContract('Redis through two gateways', () => takingTurns('times'));
replacementsContract('Redis through two gateways', () => takingTurns('replacements'));
intentsContract('Redis through two gateways', () => takingTurns('intents'));
