import { describe, expect, test } from 'vitest';
import { StateUnavailable } from '../../src/state/errors.ts';
import { ANSWER_MS_MAX } from '../../src/state/redis/connection.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { bytes, localFileAt } from '../contract/local-files.contract.ts';
import { placeholderAt } from '../contract/placeholders.contract.ts';
import { property } from '../contract/properties.contract.ts';
import { eventually, expectSoon } from '../support/eventually.ts';
import { freePort } from '../support/free-port.ts';
import { lockOn } from '../support/locks.ts';
import { path } from '../support/paths.ts';
import { sayToRedis, seenInRedis } from '../support/redis.ts';
import { redisTests } from '../support/redis-state.ts';

const { redisWith, open } = redisTests();

const NOW_MS = Date.UTC(2026, 0, 1);
const lock = lockOn('/a/b');
const AWAY = 'the shared state is away; trying to reach it again';

describe('a Redis that goes away or hangs', () => {
  test('the state tells its trouble, without the password, from a kill of Redis until its restart', async () => {
    const redis = await redisWith('--requirepass', 'SECRET');
    const { state, logged } = await open(`redis://:SECRET@127.0.0.1:${redis.port}`);
    expect(state.trouble()).toBeUndefined();
    await redis.kill();
    await logged(AWAY);
    expect(state.trouble()).toContain(`redis://:***@127.0.0.1:${redis.port}`);
    await redis.start();
    await logged('the shared state is back');
    expect(state.trouble()).toBeUndefined();
  });

  test('acknowledged changes survive a kill of Redis, and a call made just after the kill succeeds when Redis restarts at once', async () => {
    const redis = await redisWith();
    const { state, lines, logged } = await open(redis.url);
    const { locks, properties, localFiles, placeholders } = state.drive('d');
    const created = Array.from({ length: 20 }, (_, count) => lockOn(`/${count}`));
    for (const [count, each] of created.entries()) {
      await locks.create(NOW_MS, each);
      await properties.change(`id:${count}`, [{ set: property('a') }]);
    }
    await localFiles.put(localFileAt('/._x', bytes('fork')), bytes('fork'));
    await placeholders.put(placeholderAt('/new'));
    await redis.kill();
    await logged(AWAY);
    const starting = redis.start();
    // A busy machine may need longer for the start than a call waits.
    await expectSoon(() => locks.create(NOW_MS, lock).catch(() => 'away')).toEqual(lock);
    await starting;
    expect(await locks.all(NOW_MS)).toEqual(expect.arrayContaining([...created, lock].map(seenInRedis)));
    const ids = Array.from({ length: 20 }, (_, count) => `id:${count}`);
    expect((await properties.of(ids)).size).toBe(20);
    expect((await localFiles.read(path('/._x')))?.toString()).toBe('fork');
    expect(await placeholders.get(path('/new'))).toEqual(placeholderAt('/new'));
    expect(lines.map(({ level, event }) => `${level}: ${event}`)).toEqual([
      'warn: the shared state is away; trying to reach it again',
      'info: the shared state is back',
    ]);
  });

  test('a call to a Redis that loads its data fails with that reason, and calls succeed once it is loaded', async () => {
    // Redis answers between loads of 1,024 commands, which takes two and a half seconds.
    const redis = await redisWith('--key-load-delay', '500');
    const { state, logged } = await open(redis.url);
    const { locks } = state.drive('d');
    await sayToRedis(redis, `EVAL "for n = 1, 5000 do redis.call('SET', 'key' .. n, n) end" 0`);
    await redis.kill();
    await logged(AWAY);
    const started = redis.start();
    await expectSoon(() => locks.all(NOW_MS).then(String, String), 1).toContain('still loading its data');
    expect(state.trouble()).toContain('still loading its data');
    await started;
    await expectSoon(() => locks.create(NOW_MS, lock).catch(() => 'away')).toEqual(lock);
  });

  test('opening a Redis that loads its data waits until it is loaded', async () => {
    const redis = await redisWith('--key-load-delay', '500');
    await sayToRedis(redis, `EVAL "for n = 1, 5000 do redis.call('SET', 'key' .. n, n) end" 0`);
    await redis.kill();
    const started = redis.start();
    // Before Redis listens, opening it fails.
    const state = await eventually(() =>
      openRedisState({ url: redis.url, clock: systemClock, log: silentLog }),
    );
    await started;
    expect(await state.drive('d').locks.all(NOW_MS)).toEqual([]);
    await state.close();
  });

  test('a call to a Redis that is away fails within a second with the reason, and is not carried out later', async () => {
    const redis = await redisWith();
    const { state, logged } = await open(redis.url);
    const { locks } = state.drive('d');
    await redis.kill();
    await logged(AWAY);
    await expect(locks.create(NOW_MS, lock)).rejects.toThrow(
      new StateUnavailable(redis.url, 'nothing listens there; start Redis, or correct the address'),
    );
    // From now on calls fail without waiting: 1,000 in a row take less than the wait of one.
    for (let count = 0; count < 1_000; count++)
      await expect(locks.all(NOW_MS)).rejects.toThrow(StateUnavailable);
    await redis.start();
    await logged('the shared state is back');
    expect(await locks.all(NOW_MS)).toEqual([]);
  });

  test('a call in flight when Redis is killed fails at once and changes nothing', async () => {
    const redis = await redisWith();
    const { state } = await open(redis.url);
    redis.pause();
    const creating = state.drive('d').locks.create(NOW_MS, lock);
    // The command is sent by the end of this turn of the event loop, and never answered.
    await new Promise((resolve) => setImmediate(resolve));
    const failing = expect(creating).rejects.toThrow(StateUnavailable);
    await redis.kill();
    await failing;
    await redis.start();
    // Calls fail at once until the connection is back.
    await expectSoon(() =>
      state
        .drive('d')
        .locks.all(NOW_MS)
        .catch(() => 'away'),
    ).toEqual([]);
  });

  test('a Redis that hangs is noticed by its silence, calls then fail without being sent, and succeed when it answers again', async () => {
    const redis = await redisWith();
    const { state, logged } = await open(redis.url);
    const { locks } = state.drive('d');
    redis.pause();
    await logged(AWAY);
    expect(state.trouble()).toContain('no answer to a ping within 1.5 s');
    await expect(locks.create(NOW_MS, lock)).rejects.toThrow('no answer to a ping within 1.5 s');
    redis.resume();
    await logged('the shared state is back');
    expect(await locks.all(NOW_MS)).toEqual([]);
    expect(state.trouble()).toBeUndefined();
  });

  test('a call that was sent to a Redis that then hangs fails after 10 s, and the state can still be closed', async () => {
    const redis = await redisWith();
    const { state, clock } = await open(redis.url);
    redis.pause();
    const failing = expect(state.drive('d').locks.all(NOW_MS)).rejects.toThrow('no answer within 10 s');
    await clock.advance(ANSWER_MS_MAX);
    await failing;
    await clock.during(state.close());
    redis.resume();
  });

  test('a script that Redis has forgotten is sent again', async () => {
    const redis = await redisWith();
    const { state } = await open(redis.url);
    const { locks } = state.drive('d');
    await locks.create(NOW_MS, lockOn('/before'));
    await sayToRedis(redis, 'SCRIPT FLUSH');
    expect(await locks.create(NOW_MS, lock)).toEqual(lock);
    await sayToRedis(redis, 'CONFIG RESETSTAT');
    await locks.create(NOW_MS, lockOn('/after'));
    const statistics = await sayToRedis(redis, 'INFO commandstats');
    expect(statistics).toContain('cmdstat_evalsha:');
    expect(statistics).not.toContain('cmdstat_eval:');
  });

  test('a change requested before the state is closed is kept, and one requested after it is refused', async () => {
    const redis = await redisWith();
    const { state } = await open(redis.url);
    const creating = state.drive('d').locks.create(NOW_MS, lock);
    await state.close();
    expect(await creating).toEqual(lock);
    await expect(state.drive('d').locks.release(lock.token)).rejects.toThrow('closed');
    expect(await (await open(redis.url)).state.drive('d').locks.all(NOW_MS)).toEqual([seenInRedis(lock)]);
  });
});

describe('a Redis that refuses writes', () => {
  test('changes in a Redis whose memory is full fail with that reason, and nothing is half done', async () => {
    const redis = await redisWith('--maxmemory-policy', 'noeviction');
    const { state } = await open(redis.url);
    const { locks, localFiles, properties } = state.drive('d');
    await localFiles.put(localFileAt('/a/._x', bytes('fork')), bytes('fork'));
    await localFiles.put(localFileAt('/b/._y', bytes('other')), bytes('other'));
    await sayToRedis(redis, 'CONFIG SET maxmemory 1');
    for (const change of [
      () => locks.create(NOW_MS, lock),
      () => properties.change('id:1', [{ set: property('a') }]),
      () => localFiles.put(localFileAt('/a/._x', bytes('new')), bytes('new')),
      () => localFiles.copy(path('/a'), path('/b'), () => 'aside:new'),
    ])
      await expect(change()).rejects.toThrow('its memory is full; raise maxmemory or free some');
    // A move needs no more memory and succeeds.
    await localFiles.move(path('/a'), path('/c'));
    await sayToRedis(redis, 'CONFIG SET maxmemory 0');
    expect(await locks.all(NOW_MS)).toEqual([]);
    expect((await localFiles.read(path('/c/._x')))?.toString()).toBe('fork');
    expect((await localFiles.read(path('/b/._y')))?.toString()).toBe('other');
    expect(await localFiles.get(path('/a/._x'))).toBeUndefined();
  });

  test('a change in a Redis replica fails and asks for the address of the primary', async () => {
    const redis = await redisWith();
    const { state } = await open(redis.url);
    await sayToRedis(redis, `REPLICAOF 127.0.0.1 ${await freePort()}`);
    await expect(state.drive('d').placeholders.put(placeholderAt('/new'))).rejects.toThrow(
      'give the address of the primary',
    );
  });
});
