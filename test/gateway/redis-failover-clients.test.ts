import { afterEach, expect, test, vi } from 'vitest';
import { Connection } from '../../src/state/redis/connection.ts';
import { combinations, IS_LONG } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import type { GatewayClient } from '../support/gateway.ts';
import { type HeldLock, KEPT_MAX, LockUsers } from '../support/lock-users.ts';
import { sayToRedis, type TestRedis } from '../support/redis.ts';
import { startGatewaysOn } from '../support/redis-gateways.ts';
import { startCluster, startSentinels, untilSaid } from '../support/redis-groups.ts';
import { startTestService } from '../support/service.ts';

// 50 users of two gateways, whose primary fails while they work.

const USERS = 50;

/** Files that each user finishes before and after the failover. */
const FILES = 2;

/** Maximum time in which a request is answered with 503, in ms; OUTAGE_S_MAX=15 where nothing else runs. */
const OUTAGE_MS_MAX = Number(process.env['OUTAGE_S_MAX'] ?? 60) * 1000;

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const sentinels = {
  start: () => startSentinels(),
  replicaOf: (servers: readonly TestRedis[]) => servers[1],
};
const cluster = { start: () => startCluster(), replicaOf: (servers: readonly TestRedis[]) => servers[3] };
const killed = {
  fail: (primary: TestRedis) => primary.kill(),
  comesBack: (primary: TestRedis) => primary.start(),
};
const hung = {
  fail: async (primary: TestRedis) => primary.pause(),
  comesBack: async (primary: TestRedis) => primary.resume(),
};

const FAILOVERS = [
  { name: 'Sentinels replace a primary that hangs', ...sentinels, ...hung },
  { name: 'Sentinels replace a killed primary', ...sentinels, ...killed },
  { name: 'a cluster replaces a primary that hangs', ...cluster, ...hung },
  { name: 'a cluster replaces a killed primary', ...cluster, ...killed },
];

test.each(combinations(FAILOVERS).map(({ name, ...failover }) => [name, failover] as const))(
  `when %s, which later comes back, 50 users of two gateways lose no lock, none is left over, and nobody is refused for more than ${OUTAGE_MS_MAX / 1000} s`,
  async (_, { start, replicaOf, fail, comesBack }) => {
    const group = await start();
    closers.push(() => group.close());
    const [primary] = group.servers;
    const replica = replicaOf(group.servers);
    if (!replica) throw new Error('there is a replica');
    const service = await startTestService();
    closers.push(() => service.close());
    const gateways = await startGatewaysOn(group, service, 2);
    closers.push(() => gateways.close());

    waitLongForReplicas();
    const users = new LockUsers(gateways.urls, USERS);
    closers.push(() => users.stop());
    users.start();
    await untilWorked(users);
    await fail(primary);
    await untilSaid(replica, 'ROLE', 'master');
    await untilWorked(users);
    await comesBack(primary);
    await untilWorked(users);
    // Sentinels make it a replica after ten seconds.
    if (IS_LONG) await untilSaid(primary, 'ROLE', 'slave');
    if (IS_LONG) await untilWorked(users);
    await users.stop();

    expect(users.troubles).toEqual([]);
    expect(users.outageMs()).toBeLessThan(OUTAGE_MS_MAX);
    const held = users.held();
    expect(held).toHaveLength(USERS * KEPT_MAX);
    await expectSoon(() => sayToRedis(replica, 'ZCARD davgate:{default}:lock-ends')).toBe(
      `:${held.length}\r\n`,
    );
    for (const client of gateways.clients) expect(await unguarded(client, held)).toEqual([]);
  },
);

/**
 * Lets locks wait ten times as long for a replica, because the machine may be busy: without its answer they are given with a
 * warning, and can be lost. A new primary has no replica, so that the first lock there waits in vain and delays all others.
 */
function waitLongForReplicas(): void {
  const { primaryOf } = Connection.prototype;
  vi.spyOn(Connection.prototype, 'primaryOf').mockImplementation(function (this: Connection, key) {
    const command = primaryOf.call(this, key);
    return (name, ...words) => command(name ?? '', ...(name === 'WAIT' ? ['1', '1000'] : words));
  });
}

/** Resolves when each user has finished a few more files. */
async function untilWorked(users: LockUsers): Promise<void> {
  const enough = users.files() + FILES;
  await expectSoon(() => users.troubles.length > 0 || users.files() >= enough).toBe(true);
}

/** Returns the locks that do not keep out a writer without the token, or keep out one with it. */
async function unguarded(client: GatewayClient, locks: readonly HeldLock[]): Promise<readonly unknown[]> {
  const put = async ({ path }: HeldLock, headers: Readonly<Record<string, string>>) =>
    (await client.send('PUT', path, { headers, body: Buffer.from('new') })).status;
  const answers = await Promise.all(
    locks.map(async (lock) => {
      const without = await put(lock, {});
      return { path: lock.path, without, owner: await put(lock, { if: `(${lock.token})` }) };
    }),
  );
  return answers.filter(({ without, owner }) => without !== 423 || owner >= 300);
}
