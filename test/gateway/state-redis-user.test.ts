import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { redisStateContract } from '../contract/state-redis.contract.ts';
import { eventually } from '../support/eventually.ts';
import { lockOn, NOW_MS } from '../support/locks.ts';
import { sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { type RedisGroup, startSentinels, untilSaid } from '../support/redis-groups.ts';
import { redisTests } from '../support/redis-state.ts';
import {
  createSentinelUser,
  createUser,
  NONE_REFUSED,
  PERMITTED,
  sayToSentinel,
  withUser,
} from '../support/redis-user.ts';

// The ACL user of docs/scaling.md, on a Redis with a replica.

const { open } = redisTests();
let primary: TestRedis;

redisStateContract('Redis with the ACL user of the documentation', async () => {
  primary = await startRedis();
  const replica = await startRedis(['--replicaof', `127.0.0.1 ${primary.port}`]);
  await untilSaid(primary, 'INFO replication', 'state=online');
  await createUser([primary]);
  return {
    url: withUser(primary.url),
    servers: [primary, replica],
    async close() {
      await replica.close();
      await primary.close();
    },
  };
});

test('the ACL user of the documentation is refused nothing that davgate does, and may send no command that davgate does not', async () => {
  await open(`${withUser(primary.url)}/1`);
  expect(await sayToRedis(primary, 'ACL LOG')).toBe(NONE_REFUSED);
  const statistics = await sayToRedis(primary, 'INFO commandstats');
  const unused = PERMITTED.filter((name) => !statistics.includes(`cmdstat_${name}:`));
  // The clusters in redis-tls.test.ts need it.
  expect(unused).toEqual(['cluster|slots']);
});

describe('Sentinels that want a login', () => {
  let group: RedisGroup;
  beforeAll(async () => {
    group = await startSentinels();
    await createUser(group.servers);
    await createSentinelUser(group.sentinels);
  });
  afterAll(() => group.close());

  const sayToAll = (words: string) =>
    Promise.all(group.sentinels.map((sentinel) => sayToSentinel(sentinel, words)));

  test('opening a Redis whose Sentinels refuse the user a command fails and says that rights are missing', async () => {
    await sayToAll('ACL SETUSER davgate -psubscribe');
    await expect(open(withUser(group.url))).rejects.toThrow('give it the rights in docs/scaling.md');
    await sayToAll('ACL SETUSER davgate +psubscribe');
    await sayToAll('ACL LOG RESET');
  });

  test('Sentinels get the login of Redis, and refuse the user of the documentation nothing that a failover needs', async () => {
    const { state } = await open(withUser(group.url));
    const { locks } = state.drive('d');
    await locks.create(NOW_MS, lockOn('/before'));
    expect(await sayToSentinel(group.sentinels[0], 'SENTINEL FAILOVER drives')).toBe('+OK\r\n');
    for (const replica of group.servers.slice(1)) await untilSaid(replica, 'ROLE', 'master');
    await eventually(() => locks.create(NOW_MS, lockOn('/after')));
    expect(await sayToAll('ACL LOG')).toEqual(group.sentinels.map(() => NONE_REFUSED));
  });
});
