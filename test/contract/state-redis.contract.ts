import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Locks } from '../../src/state/locks.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { DriveState, State } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import {
  passForLocks,
  restoreStream,
  saveStream,
  sayToRedis,
  seenInRedis,
  type TestRedis,
} from '../support/redis.ts';
import { accountSharingContract } from './account-sharing.contract.ts';
import { appPasswordsContract } from './app-passwords.contract.ts';
import { changeStreamContract } from './change-stream.contract.ts';
import { gatewayLeasesContract } from './gateway-leases.contract.ts';
import { intentsContract } from './intents.contract.ts';
import { LIMIT_BYTES, localFilesContract, localFilesLimitContract } from './local-files.contract.ts';
import { locksContract } from './locks.contract.ts';
import { ownersContract } from './owners.contract.ts';
import { placeholdersContract, sharedPlaceholdersContract } from './placeholders.contract.ts';
import { propertiesContract } from './properties.contract.ts';
import { replacementsContract } from './replacements.contract.ts';
import { secretContract } from './secret.contract.ts';
import { timesContract } from './times.contract.ts';
import { uploadLinksContract } from './upload-links.contract.ts';

/** A Redis of any kind: one server, several with Sentinels, or a cluster. */
export interface RedisUnderTest {
  readonly url: string;
  readonly servers: readonly TestRedis[];
  close(): Promise<void>;
}

/** The contracts of all stores, on a Redis that two gateways share. */
export function redisStateContract(driver: string, start: () => Promise<RedisUnderTest>): void {
  let redis: RedisUnderTest;
  const states: State[] = [];
  let drives = 0;
  beforeAll(async () => {
    redis = await start();
  });
  afterEach(async () => {
    for (const state of states.splice(0)) await state.close();
  });
  afterAll(() => redis.close());

  const reopen = async (localFilesBytesMax?: number): Promise<State> => {
    const limit = localFilesBytesMax === undefined ? {} : { localFilesBytesMax };
    return openRedisState({ url: redis.url, clock: systemClock, log: silentLog, ...limit });
  };

  const open = async (localFilesBytesMax?: number): Promise<State> => {
    const state = await reopen(localFilesBytesMax);
    states.push(state);
    return state;
  };

  /** Opens an empty Redis. Replicas refuse to be emptied, and follow their primary. */
  const openEmpty = async (): Promise<State> => {
    for (const server of redis.servers) await sayToRedis(server, 'FLUSHALL');
    return open();
  };

  /** Opens a new drive through two gateways. */
  const openTwo = async (localFilesBytesMax?: number): Promise<readonly [DriveState, DriveState]> => {
    const drive = `drive-${++drives}`;
    const [one, other] = [await open(localFilesBytesMax), await open(localFilesBytesMax)];
    return [one.drive(drive), other.drive(drive)];
  };

  /** Returns a store whose every second call goes through another gateway. */
  const takingTurns = async <K extends Exclude<keyof DriveState, 'changeStream' | 'gatewayLeases'>>(
    store: K,
    localFilesBytesMax?: number,
  ): Promise<DriveState[K]> => {
    const [one, other] = await openTwo(localFilesBytesMax);
    let calls = 0;
    return new Proxy(one[store], {
      get: (_, name) => Reflect.get(++calls % 2 === 0 ? one[store] : other[store], name),
    });
  };

  /** Returns locks whose every second call goes through another gateway. Claims are ended at both. */
  const locksInTurns = async (): Promise<Locks> => {
    const [one, other] = await openTwo();
    let calls = 0;
    const endClaims = async (id: string) => {
      await Promise.all([one.locks.endClaims(id), other.locks.endClaims(id)]);
    };
    return new Proxy(one.locks, {
      get: (locks, name) =>
        name === 'endClaims' ? endClaims : Reflect.get(++calls % 2 === 0 ? locks : other.locks, name),
    });
  };

  const name = `${driver} through two gateways`;
  propertiesContract(driver, async () => (await openTwo())[0].properties);
  locksContract(name, locksInTurns, {
    // Only the server that has the drive as its primary carries it out.
    pass: async (ms) => {
      for (const server of redis.servers) await passForLocks(server, `drive-${drives}`, ms);
    },
    seen: seenInRedis,
  });
  localFilesContract(name, () => takingTurns('localFiles'));
  localFilesLimitContract(name, () => takingTurns('localFiles', LIMIT_BYTES));
  placeholdersContract(name, () => takingTurns('placeholders'));
  sharedPlaceholdersContract(name, openTwo);
  timesContract(name, () => takingTurns('times'));
  replacementsContract(name, () => takingTurns('replacements'));
  intentsContract(name, () => takingTurns('intents'));
  gatewayLeasesContract(driver, async () => {
    const [one, other] = await openTwo();
    if (!one.gatewayLeases || !other.gatewayLeases) throw new Error('a drive in Redis has no leases');
    return [one.gatewayLeases, other.gatewayLeases];
  });
  changeStreamContract(
    driver,
    async () => {
      const [one, other] = await openTwo();
      if (!one.changeStream || !other.changeStream) throw new Error('a drive in Redis has no change stream');
      return [one.changeStream, other.changeStream];
    },
    {
      // Only the server that has the drive as its primary carries it out.
      save: async () => {
        for (const server of redis.servers) await saveStream(server, `drive-${drives}`);
      },
      restore: async () => {
        for (const server of redis.servers) await restoreStream(server, `drive-${drives}`);
      },
    },
  );
  accountSharingContract(driver, async () => [await open(), await open()]);
  ownersContract(driver, async () => (await openEmpty()).owners);
  appPasswordsContract(driver, async () => (await openEmpty()).appPasswords);
  uploadLinksContract(driver, async () => (await openEmpty()).uploadLinks);
  secretContract(driver, () => () => reopen());
}
