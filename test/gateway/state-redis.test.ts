import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Locks } from '../../src/state/locks.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { DriveState, State } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { intentsContract } from '../contract/intents.contract.ts';
import { asidesContract, asidesLimitContract } from '../contract/local-files.contract.ts';
import { locksContract } from '../contract/locks.contract.ts';
import { holdsContract } from '../contract/placeholders.contract.ts';
import { propertiesContract } from '../contract/properties.contract.ts';
import { relocationsContract } from '../contract/replacements.contract.ts';
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

async function open(asidesBytesMax?: number): Promise<State> {
  const limit = asidesBytesMax === undefined ? {} : { asidesBytesMax };
  const state = await openRedisState({ url: redis.url, clock: systemClock, log: silentLog, ...limit });
  states.push(state);
  return state;
}

/** Two gateways on one drive that nobody has used before. */
async function openTwo(asidesBytesMax?: number): Promise<readonly [DriveState, DriveState]> {
  const drive = `drive-${++drives}`;
  const [one, other] = [await open(asidesBytesMax), await open(asidesBytesMax)];
  return [one.drive(drive), other.drive(drive)];
}

/** A store whose every second call goes through another gateway. */
async function takingTurns<K extends keyof DriveState>(
  store: K,
  asidesBytesMax?: number,
): Promise<DriveState[K]> {
  const [one, other] = await openTwo(asidesBytesMax);
  let calls = 0;
  return new Proxy(one[store], {
    get: (_, name) => Reflect.get(++calls % 2 === 0 ? one[store] : other[store], name),
  });
}

/** Every second call goes through another gateway. A claim ends at both: only the one that made it renews it. */
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

const openDrive = async (asidesBytesMax?: number): Promise<DriveState> => (await openTwo(asidesBytesMax))[0];

locksContract('Redis', async () => (await openDrive()).locks);
propertiesContract('Redis', async () => (await openDrive()).properties);
asidesContract('Redis', async () => (await openDrive()).asides);
asidesLimitContract('Redis', async () => (await openDrive(100)).asides);
holdsContract('Redis', async () => (await openDrive()).holds);
timesContract('Redis', async () => (await openDrive()).times);
relocationsContract('Redis', async () => (await openDrive()).relocations);
intentsContract('Redis', async () => (await openDrive()).intents);

locksContract('Redis through two gateways', locksInTurns);
asidesContract('Redis through two gateways', () => takingTurns('asides'));
asidesLimitContract('Redis through two gateways', () => takingTurns('asides', 100));
holdsContract('Redis through two gateways', () => takingTurns('holds'));
timesContract('Redis through two gateways', () => takingTurns('times'));
relocationsContract('Redis through two gateways', () => takingTurns('relocations'));
intentsContract('Redis through two gateways', () => takingTurns('intents'));
