import { expect } from 'vitest';
import type { Certificate } from './certificate.ts';
import { eventually } from './eventually.ts';
import { freePort } from './free-port.ts';
import { sayToRedis, startRedis, startSentinel, type TestRedis, type TestSentinel } from './redis.ts';

export interface RedisGroup {
  /** Address for `--redis`, of all Sentinels or nodes. */
  readonly url: string;
  /** The servers that keep data; the first is a primary at the start. */
  readonly servers: readonly [TestRedis, ...TestRedis[]];
  /** Programs beside them. */
  readonly sentinels: readonly TestSentinel[];
  close(): Promise<void>;
}

const PRIMARY_NAME = 'drives';

/**
 * Starts a primary with a replica, and three Sentinels that take a silent primary for dead after 2 s. With a certificate, all
 * speak TLS alone.
 */
export async function startSentinels(certificate?: Certificate): Promise<RedisGroup> {
  const primary = await startRedis([], certificate);
  const replica = await startRedis(['--replicaof', `127.0.0.1 ${primary.port}`], certificate);
  const sentinels: TestSentinel[] = [];
  for (let count = 0; count < 3; count++) {
    const sentinel = await startSentinel(certificate);
    sentinels.push(sentinel);
    for (const words of [
      `SENTINEL MONITOR ${PRIMARY_NAME} 127.0.0.1 ${primary.port} 2`,
      `SENTINEL SET ${PRIMARY_NAME} down-after-milliseconds 2000`,
      `SENTINEL SET ${PRIMARY_NAME} failover-timeout 6000`,
    ])
      await sayToRedis(sentinel, words);
  }
  // A failover needs Sentinels that know the replica and each other.
  for (const sentinel of sentinels)
    await untilSaid(sentinel, `SENTINEL CKQUORUM ${PRIMARY_NAME}`, '3 usable');
  for (const sentinel of sentinels)
    await untilSaid(sentinel, `SENTINEL REPLICAS ${PRIMARY_NAME}`, String(replica.port));
  await untilSaid(primary, 'INFO replication', 'state=online');
  return {
    url: `${certificate ? 'rediss' : 'redis'}+sentinel://${sentinels.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${PRIMARY_NAME}`,
    servers: [primary, replica],
    sentinels,
    close: () => closeAll([...sentinels, replica, primary]),
  };
}

/**
 * Starts a cluster of three primaries, and a replica of the first, that takes a silent node for dead after 2 s. With a
 * certificate, all nodes speak TLS alone.
 */
export async function startCluster(certificate?: Certificate): Promise<RedisGroup> {
  const servers: TestRedis[] = [];
  const busPorts = new Map<number, number>();
  for (let count = 0; count < 4; count++) {
    // By default the bus of a node is 10,000 ports above, in the ephemeral range.
    const busPort = await freePort();
    const settings = ['--cluster-enabled', 'yes', '--cluster-port', String(busPort)];
    if (certificate) settings.push('--tls-cluster', 'yes');
    const server = await startRedis([...settings, '--cluster-node-timeout', '2000'], certificate);
    servers.push(server);
    busPorts.set(server.port, busPort);
  }
  const [first, second, third, replica] = servers;
  if (!first || !second || !third || !replica) throw new Error('there are four');
  // The first has the drive `default`, of slot 5718.
  await sayToRedis(first, 'CLUSTER ADDSLOTSRANGE 0 5999');
  await sayToRedis(second, 'CLUSTER ADDSLOTSRANGE 6000 10922');
  await sayToRedis(third, 'CLUSTER ADDSLOTSRANGE 10923 16383');
  for (const [epoch, server] of servers.entries())
    await sayToRedis(server, `CLUSTER SET-CONFIG-EPOCH ${epoch + 1}`);
  for (const other of [second, third, replica])
    await sayToRedis(first, `CLUSTER MEET 127.0.0.1 ${other.port} ${busPorts.get(other.port)}`);
  const id = (await sayToRedis(first, 'CLUSTER MYID')).split('\r\n')[1] ?? '';
  await untilSaid(replica, `CLUSTER REPLICATE ${id}`, 'OK');
  for (const server of servers)
    await untilSaid(
      server,
      'CLUSTER INFO',
      /cluster_state:ok[\s\S]*cluster_known_nodes:4[\s\S]*cluster_size:3/,
    );
  await untilSaid(first, 'INFO replication', 'state=online');
  return {
    url: `${certificate ? 'rediss' : 'redis'}+cluster://${servers.map(({ port }) => `127.0.0.1:${port}`).join(',')}`,
    servers: [first, second, third, replica],
    sentinels: [],
    close: () => closeAll(servers),
  };
}

async function closeAll(servers: readonly { close(): Promise<void> }[]): Promise<void> {
  await Promise.all(servers.map((server) => server.close()));
}

/** Repeats a command until its answer matches. */
export async function untilSaid(
  server: Pick<TestRedis, 'port' | 'certificate'>,
  words: string,
  answer: string | RegExp,
): Promise<void> {
  await eventually(async () => expect(await sayToRedis(server, words)).toMatch(answer));
}
