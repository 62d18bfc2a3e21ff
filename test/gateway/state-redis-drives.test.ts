import { expect, test } from 'vitest';
import { bytes, localFileAt } from '../contract/local-files.contract.ts';
import { property } from '../contract/properties.contract.ts';
import { lockOn } from '../support/locks.ts';
import { path } from '../support/paths.ts';
import { sayToRedis, seenInRedis } from '../support/redis.ts';
import { redisTests } from '../support/redis-state.ts';

const { redisWith, open } = redisTests();

const NOW_MS = Date.UTC(2026, 0, 1);
const lock = lockOn('/a/b');

test('drives of one Redis, and databases of one Redis, share no locks, local files or properties', async () => {
  const redis = await redisWith();
  const { state } = await open(redis.url);
  const one = state.drive('one');
  await one.locks.create(NOW_MS, lock);
  await one.localFiles.put(localFileAt('/._x', bytes('fork')), bytes('fork'));
  await one.properties.change('id:1', [{ set: property('a') }]);
  for (const other of [state.drive('two'), (await open(`${redis.url}/1`)).state.drive('one')]) {
    expect(await other.locks.create(NOW_MS, lockOn('/a/b'))).toHaveProperty('token');
    expect(await other.localFiles.in(path('/'))).toEqual([]);
    expect(await other.properties.version()).toBe(0);
    await other.localFiles.forget(path('/'));
    expect(await other.locks.release(lock.token)).toBe(false);
    await other.properties.forget(['id:1']);
  }
  expect(await one.locks.all(NOW_MS)).toEqual([seenInRedis(lock)]);
  expect((await one.localFiles.read(path('/._x')))?.toString()).toBe('fork');
  expect((await one.properties.of(['id:1'])).size).toBe(1);
});

test('of 60 locks requested at once for one path through two gateways, exactly one is created', async () => {
  const redis = await redisWith();
  const gateways = [(await open(redis.url)).state.drive('d'), (await open(redis.url)).state.drive('d')];
  const wanted = Array.from({ length: 60 }, () => lockOn('/a/b'));
  const answers = await Promise.all(
    wanted.map((each, index) => gateways[index % 2]?.locks.create(NOW_MS, each)),
  );
  expect(answers.filter((answer) => answer && 'token' in answer)).toHaveLength(1);
  for (const { locks } of gateways) expect(await locks.all(NOW_MS)).toHaveLength(1);
});

test('changes to the properties of one id that two gateways make at once are all kept', async () => {
  const redis = await redisWith();
  const gateways = [(await open(redis.url)).state.drive('d'), (await open(redis.url)).state.drive('d')];
  const names = Array.from({ length: 60 }, (_, index) => `n${index}`);
  await Promise.all(
    names.map((name, index) => gateways[index % 2]?.properties.change('id:1', [{ set: property(name) }])),
  );
  for (const { properties } of gateways)
    expect(
      (await properties.of(['id:1']))
        .get('id:1')
        ?.map(({ name }) => name)
        .sort(),
    ).toEqual(names.sort());
});

test('creating a lock with the token of another lock fails and changes nothing', async () => {
  const { state } = await open((await redisWith()).url);
  const { locks } = state.drive('d');
  await locks.create(NOW_MS, lock);
  await expect(locks.create(NOW_MS, { ...lockOn('/other'), token: lock.token })).rejects.toThrow(
    'there is a lock with this token already',
  );
  expect(await locks.all(NOW_MS)).toEqual([seenInRedis(lock)]);
});

test('local files are moved and copied with folders whose names have another length in lower case', async () => {
  const { state } = await open((await redisWith()).url);
  const { localFiles } = state.drive('d');
  // In lower case Ⱥ takes one byte more.
  await localFiles.put(localFileAt('/ȺȺ/ȺB/._Ⱥ', bytes('fork')), bytes('fork'));
  await localFiles.move(path('/ȺȺ'), path('/ⱥⱥ'));
  expect((await localFiles.get(path('/ⱥⱥ/Ⱥb/._ⱥ')))?.path).toBe('/ⱥⱥ/ȺB/._Ⱥ');
  await localFiles.move(path('/ȺȺ/ȺB'), path('/to/İ'));
  await localFiles.copy(path('/to'), path('/Copy'), () => 'aside:new');
  expect((await localFiles.get(path('/to/İ/._Ⱥ')))?.path).toBe('/to/İ/._Ⱥ');
  expect(await localFiles.get(path('/COPY/İ/._ⱥ'))).toMatchObject({ path: '/Copy/İ/._Ⱥ', id: 'aside:new' });
  expect((await localFiles.in(path('/copy/İ'))).map((file) => file.path)).toEqual(['/Copy/İ/._Ⱥ']);
  expect((await localFiles.read(path('/copy/İ/._Ⱥ')))?.toString()).toBe('fork');
});

test('modification times of the year 9999 and before 1970 are not rounded', async () => {
  const { state } = await open((await redisWith()).url);
  const { localFiles } = state.drive('d');
  for (const modifiedMs of [253_402_300_799_999, -86_400_001]) {
    await localFiles.put(localFileAt('/._x', bytes('')), bytes(''));
    await localFiles.touch(path('/._x'), modifiedMs);
    await localFiles.move(path('/._x'), path('/._y'));
    expect((await localFiles.get(path('/._y')))?.modifiedMs).toBe(modifiedMs);
  }
});

test('the version of the properties still increases when Redis has lost earlier changes', async () => {
  const redis = await redisWith();
  const { state } = await open(redis.url);
  const { properties } = state.drive('d');
  await properties.change('id:1', [{ set: property('a') }]);
  const before = await properties.version();
  await sayToRedis(redis, 'FLUSHALL');
  await properties.change('id:1', [{ set: property('b') }]);
  expect(await properties.version()).toBeGreaterThan(before);
});

test('times of 2,500 ids are returned by one call', async () => {
  const { state } = await open((await redisWith()).url);
  const { times } = state.drive('d');
  const ids = Array.from({ length: 2_500 }, (_, index) => `id:${index}`);
  await Promise.all(ids.map((id, index) => times.set(id, { rev: 'r', modifiedMs: index })));
  expect((await times.of(ids)).get('id:2499')).toEqual({ rev: 'r', modifiedMs: 2_499 });
  expect((await times.of(ids)).size).toBe(2_500);
  await times.forget(ids.slice(1));
  expect([...(await times.of(ids)).keys()]).toEqual(['id:0']);
});
