import { expect, test } from 'vitest';
import { StateUnavailable } from '../../src/state/errors.ts';
import type { DriveState } from '../../src/state/state.ts';
import { eventually } from '../support/eventually.ts';
import { lockOn } from '../support/locks.ts';
import { sayToRedis, type TestRedis, type TestSentinel } from '../support/redis.ts';
import { startCluster, startSentinels, untilSaid } from '../support/redis-groups.ts';
import { redisTests } from '../support/redis-state.ts';

const { closing, open } = redisTests();
const NOW_MS = Date.UTC(2026, 0, 1);

const GROUPS = [
  {
    kind: 'Sentinel',
    start: () => startSentinels(),
    replicaOf: (servers: readonly TestRedis[]) => servers[1],
    failOver: (words: { sentinel: TestSentinel | undefined }) =>
      sayToRedis(words.sentinel, 'SENTINEL FAILOVER drives'),
  },
  {
    kind: 'a cluster',
    start: () => startCluster(),
    replicaOf: (servers: readonly TestRedis[]) => servers[3],
    failOver: (words: { replica: TestRedis | undefined }) => sayToRedis(words.replica, 'CLUSTER FAILOVER'),
  },
] as const;

/** A drive of the first primary of the cluster. */
const DRIVE = 'default';

test.each(GROUPS)(
  'a failover by $kind that an operator asks for keeps the locks, and new ones are given after it',
  async ({ start, replicaOf, failOver }) => {
    const group = await start();
    closing(() => group.close());
    const [primary] = group.servers;
    const replica = replicaOf(group.servers);
    if (!replica) throw new Error('there is a replica');
    const { state } = await open(group.url);
    const drive = state.drive(DRIVE);
    const paths = Array.from({ length: 20 }, (_, index) => `/before-${index}`);
    for (const path of paths) await drive.locks.create(NOW_MS, lockOn(path));
    await untilReplicated(primary);

    await failOver({ sentinel: group.sentinels[0], replica });
    await untilSaid(replica, 'ROLE', 'master');
    await untilLocked(drive);

    // Until then Sentinel's old primary takes locks that end with its demotion, because no replica confirms them.
    await untilSaid(primary, 'ROLE', 'slave');
    await eventually(() => drive.locks.create(NOW_MS, lockOn('/after')));
    const roots = (await drive.locks.all(NOW_MS)).map(({ root }) => root);
    expect(roots).toEqual(expect.arrayContaining([...paths, '/after']));
    expect(state.trouble()).toBeUndefined();
  },
);

/** Waits until a lock can be made. Only `StateUnavailable` may fail before that. */
async function untilLocked({ locks }: DriveState): Promise<void> {
  const unexpected: unknown[] = [];
  await eventually(() =>
    locks.create(NOW_MS, lockOn('/during')).catch((error: unknown) => {
      if (!(error instanceof StateUnavailable)) unexpected.push(error);
      throw error;
    }),
  );
  expect(unexpected).toEqual([]);
}

/** Waits until the replica has all changes. */
async function untilReplicated(primary: TestRedis): Promise<void> {
  await eventually(async () => {
    const facts = await sayToRedis(primary, 'INFO replication');
    const [, offset] = /master_repl_offset:(\d+)/.exec(facts) ?? [];
    expect(facts).toMatch(new RegExp(`slave0:.*offset=${offset},`));
  });
}
