import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { StateUnavailable } from '../../src/state/errors.ts';
import { Connection } from '../../src/state/redis/connection.ts';
import { driveStore } from '../../src/state/redis/drive-keys.ts';
import { redisLocks } from '../../src/state/redis/locks.ts';
import { ReplicaAcks } from '../../src/state/redis/replica-acks.ts';
import { Withdrawals } from '../../src/state/redis/withdrawals.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { expectSoon } from '../support/eventually.ts';
import { lockOn, NOW_MS } from '../support/locks.ts';
import { sayToRedis, type TestRedis } from '../support/redis.ts';
import { redisTests } from '../support/redis-state.ts';

const { redisWith, open, closing } = redisTests();

/** Time between two questions whether Redis has replicas, in ms. */
const LOOK_EVERY_MS = 10_000;

const NOT_ACKNOWLEDGED = 'no replica acknowledges new locks in time; a failover may lose them';
const ACKNOWLEDGED = 'a replica acknowledges new locks again';

/** Starts a Redis and a replica that follows it. */
async function startPair(): Promise<{ readonly primary: TestRedis; readonly replica: TestRedis }> {
  const primary = await redisWith('--repl-diskless-sync-delay', '0');
  const replica = await redisWith('--replicaof', '127.0.0.1', String(primary.port));
  await expectSoon(() => sayToRedis(primary, 'INFO replication')).toContain('state=online');
  return { primary, replica };
}

/** Connects to a Redis. Returns the locks of a drive in it that wait as long for a replica as a busy machine needs. */
async function openPatientLocks({ url }: TestRedis) {
  const connection = new Connection({ url, clock: systemClock, log: silentLog });
  await connection.connect();
  closing(() => connection.close());
  const parts = { connection, clock: systemClock, log: silentLog };
  const store = driveStore(connection, 'd');
  const withdrawals = new Withdrawals(parts);
  closing(async () => withdrawals.close());
  const replicas = new ReplicaAcks({ ...parts, key: store.key('locks'), ackMsMax: 60_000 });
  return { connection, store, locks: redisLocks(store, { ...parts, withdrawals, replicas }) };
}

test('a lock is on the replica when it is given', async () => {
  const { primary, replica } = await startPair();
  const { locks } = await openPatientLocks(primary);
  for (let count = 1; count <= 20; count++) {
    expect(await locks.create(NOW_MS, lockOn(`/${count}`))).toHaveProperty('token');
    expect(await sayToRedis(replica, 'ZCARD davgate:{d}:lock-ends')).toBe(`:${count}\r\n`);
  }
});

test('what a primary has answered of locks is not acknowledged when it dies before a replica has it', async () => {
  const { primary, replica } = await startPair();
  const { locks } = await openPatientLocks(primary);
  const kept = lockOn('/kept');
  const refresh = (timeoutSeconds: number) =>
    locks.refresh(NOW_MS, kept.token, { timeoutSeconds, expiresMs: NOW_MS + timeoutSeconds * 1_000 });
  await locks.create(NOW_MS, kept);
  expect(await refresh(7_200)).toMatchObject({ timeoutSeconds: 7_200 });
  replica.pause();
  const failing = Promise.all([
    expect(refresh(3_600)).rejects.toThrow(StateUnavailable),
    expect(locks.create(NOW_MS, lockOn('/refused'))).rejects.toThrow(StateUnavailable),
  ]);
  await expectSoon(() => sayToRedis(primary, 'ZCARD davgate:{d}:lock-ends')).toBe(':2\r\n');
  await primary.kill();
  await failing;
  // The lock that was refused is removed, because no client knows its token.
  await primary.start();
  await expectSoon(() => sayToRedis(primary, 'ZCARD davgate:{d}:lock-ends')).toBe(':1\r\n');
  replica.resume();
});

test('a refresh that Redis executes after a wait for the replica is not acknowledged because of that wait', async () => {
  const { primary, replica } = await startPair();
  const { locks } = await openPatientLocks(primary);
  const refreshed = lockOn('/refreshed');
  const refresh = () =>
    locks.refresh(NOW_MS, refreshed.token, { timeoutSeconds: 7_200, expiresMs: NOW_MS + 7_200_000 });
  await locks.create(NOW_MS, refreshed);
  await refresh();
  replica.pause();
  const creating = locks.create(NOW_MS, lockOn('/created'));
  await expectSoon(() => sayToRedis(primary, 'INFO clients')).toContain('blocked_clients:1');
  // The connection is blocked, so that both answers come together.
  const refreshing = refresh();
  await setImmediate();
  replica.resume();
  expect(await creating).toHaveProperty('token');
  expect(await refreshing).toHaveProperty('token');
  expect(await sayToRedis(primary, 'INFO commandstats')).toContain('cmdstat_wait:calls=4,');
});

test('a Redis that is back after a loss of its connection is not asked what its replicas have of earlier changes', async () => {
  const primary = await redisWith();
  const { connection, store } = await openPatientLocks(primary);
  await primary.kill();
  await expectSoon(() => connection.trouble()).toBeDefined();
  const late = expect(connection.primaryOf(store.key('locks'))('ROLE')).rejects.toThrow(StateUnavailable);
  await primary.start();
  await late;
});

test('locks that a hanging replica does not acknowledge are given with one warning, until it acknowledges again', async () => {
  const { primary, replica } = await startPair();
  const { state, clock, lines } = await open(primary.url);
  const { locks } = state.drive('d');
  const events = () => lines.map(({ event }) => event).filter((event) => /acknowledges/.test(event));
  replica.pause();
  let count = 0;
  const createNext = async () => {
    count += 1;
    expect(await locks.create(NOW_MS, lockOn(`/${count}`))).toHaveProperty('token');
  };
  for (let turn = 0; turn < 3; turn++) {
    await createNext();
    await clock.advance(LOOK_EVERY_MS);
  }
  expect(events()).toEqual([NOT_ACKNOWLEDGED]);
  replica.resume();
  await expectSoon(async () => {
    await clock.advance(LOOK_EVERY_MS);
    await createNext();
    return events();
  }).toContain(ACKNOWLEDGED);
});

test('a Redis without a replica is not asked to wait for one', async () => {
  const primary = await redisWith();
  const { state } = await open(primary.url);
  const { locks } = state.drive('d');
  for (let count = 0; count < 3; count++)
    expect(await locks.create(NOW_MS, lockOn(`/${count}`))).toHaveProperty('token');
  const statistics = await sayToRedis(primary, 'INFO commandstats');
  expect(statistics).toContain('cmdstat_role:calls=1,');
  expect(statistics).not.toContain('cmdstat_wait:');
});
