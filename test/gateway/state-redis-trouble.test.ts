import { inspect } from 'node:util';
import { afterEach, describe, expect, test } from 'vitest';
import { isStartFailure } from '../../src/cli/start-failure.ts';
import { StateUnavailable } from '../../src/state/errors.ts';
import { ANSWER_MS_MAX } from '../../src/state/redis/connection.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import type { LogFields } from '../../src/util/log.ts';
import { bytes, localFileAt } from '../contract/local-files.contract.ts';
import { lockOn } from '../contract/locks.contract.ts';
import { placeholderAt } from '../contract/placeholders.contract.ts';
import { property } from '../contract/properties.contract.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { path } from '../support/paths.ts';
import { freePort, sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const lock = lockOn('/a/b');

interface Line {
  readonly level: string;
  readonly event: string;
  readonly fields: LogFields | undefined;
}

/** Closers of everything that is open, in the order of opening. */
const closers: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function redisWith(...settings: string[]): Promise<TestRedis> {
  const redis = await startRedis(settings);
  closers.push(() => redis.close());
  return redis;
}

interface Opened {
  readonly state: State;
  readonly clock: ManualClock;
  readonly lines: readonly Line[];
  /** Resolves when a line of this event has been logged. */
  logged(event: string): Promise<void>;
}

async function open(url: string): Promise<Opened> {
  const clock = new ManualClock();
  const lines: Line[] = [];
  const watchers: (() => void)[] = [];
  const note = (level: string) => (event: string, fields?: LogFields) => {
    lines.push({ level, event, fields });
    for (const watcher of watchers.splice(0)) watcher();
  };
  const log = { info: note('info'), warn: note('warn'), error: note('error') };
  const state = await openRedisState({ url, clock, log });
  closers.push(() => clock.during(state.close()));
  return {
    state,
    clock,
    lines,
    async logged(event) {
      while (!lines.some((line) => line.event === event))
        await new Promise<void>((resolve) => watchers.push(resolve));
    },
  };
}

/** Returns the error that `openRedisState` throws. */
async function refusal(url: string): Promise<StateUnavailable> {
  const error = await open(url).then(
    () => new Error('it opened'),
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(StateUnavailable);
  expect(isStartFailure(error)).toBe(true);
  // `toBeInstanceOf` above has checked the type.
  const failure = error as StateUnavailable;
  expect(failure.message).not.toContain('\n');
  return failure;
}

describe('opening a Redis that cannot be used', () => {
  test('opening an address where nothing listens fails and says to start Redis or correct the address', async () => {
    const port = await freePort();
    const { message } = await refusal(`redis://127.0.0.1:${port}/3`);
    expect(message).toBe(
      `cannot use the shared state in redis://127.0.0.1:${port}/3: nothing listens there; start Redis, or correct the address`,
    );
  });

  test('opening a Redis with a wrong or missing password fails, and no error shows a password', async () => {
    const redis = await redisWith('--requirepass', 'right');
    const wrong = await refusal(`redis://:SECRET@127.0.0.1:${redis.port}`);
    expect(wrong.message).toContain(`redis://:***@127.0.0.1:${redis.port}`);
    expect(wrong.message).toContain('refuses the password');
    expect(inspect(wrong, { depth: 9, showHidden: true })).not.toContain('SECRET');
    expect((await refusal(redis.url)).message).toContain('wants a password');
    const unreachable = await refusal(`redis://ann:SECRET@127.0.0.1:${await freePort()}`);
    expect(inspect(unreachable, { depth: 9, showHidden: true })).not.toContain('SECRET');
    await open(`redis://:right@127.0.0.1:${redis.port}`);
  });

  test('opening a Redis that hangs fails with no answer within 10 s', async () => {
    const redis = await redisWith();
    redis.pause();
    const clock = new ManualClock();
    const log = { info() {}, warn() {}, error() {} };
    const opening = openRedisState({ url: redis.url, clock, log });
    await expect(clock.during(opening)).rejects.toThrow('no answer within 10 s');
    redis.resume();
  });

  test('opening a Redis with state in another format fails and leaves the state unchanged', async () => {
    const redis = await redisWith();
    await sayToRedis(redis, 'SET davgate:format 2');
    expect((await refusal(redis.url)).message).toContain('another version of davgate');
    expect(await sayToRedis(redis, 'GET davgate:format')).toContain('2');
    await open(`${redis.url}/1`);
  });

  test('opening a Redis database that does not exist fails with that reason', async () => {
    const redis = await redisWith();
    expect((await refusal(`${redis.url}/99`)).message).toContain('no such database');
  });
});

describe('log lines about data that Redis may lose', () => {
  test.each([
    [['--appendonly', 'no'], 'warn', /forgets locks and properties when it stops; .*appendonly yes/],
    [['--appendfsync', 'everysec'], 'info', /may lose its last second/],
    [['--maxmemory-policy', 'allkeys-lru'], 'warn', /when its memory is full; .*noeviction/],
  ])(
    'opening a Redis with %j logs one line at level %s about data it may lose',
    async (settings, level, event) => {
      const { lines } = await open((await redisWith(...settings)).url);
      expect(lines).toEqual([expect.objectContaining({ level, event: expect.stringMatching(event) })]);
    },
  );

  test('opening a Redis that loses no data logs nothing', async () => {
    expect((await open((await redisWith()).url)).lines).toEqual([]);
  });

  test('a Redis that does not tell its settings is used after a warning', async () => {
    const redis = await redisWith();
    await sayToRedis(redis, 'ACL SETUSER gate on >pass ~davgate* +@all -config');
    const { state, lines } = await open(`redis://gate:pass@127.0.0.1:${redis.port}`);
    expect(lines).toEqual([
      expect.objectContaining({ level: 'warn', event: expect.stringMatching(/does not tell/) }),
    ]);
    expect(await state.drive('d').locks.create(NOW_MS, lock)).toEqual(lock);
    await sayToRedis(redis, 'ACL SETUSER gate -eval');
    await expect(state.drive('d').locks.all(NOW_MS)).rejects.toThrow(StateUnavailable);
  });
});

describe('a Redis that goes away or hangs', () => {
  test('acknowledged changes survive a kill of Redis, and a call made while Redis is away succeeds after its restart', async () => {
    const redis = await redisWith();
    const { state, clock, lines, logged } = await open(redis.url);
    const { locks, properties, localFiles, placeholders } = state.drive('d');
    const created = [];
    for (let count = 0; count < 20; count++) {
      created.push(await locks.create(NOW_MS, lockOn(`/${count}`)));
      await properties.change(`id:${count}`, [{ set: property('a') }]);
    }
    await localFiles.put(localFileAt('/._x', bytes('fork')), bytes('fork'));
    await placeholders.put(placeholderAt('/new'));
    await redis.kill();
    await logged('the shared state is away; trying to reach it again');
    // Called while Redis is away; waits for its return.
    const creating = locks.create(NOW_MS, lock);
    await redis.start();
    expect(await clock.duringSlowly(creating)).toEqual(lock);
    expect(await locks.all(NOW_MS)).toEqual(expect.arrayContaining([...created, lock]));
    const ids = Array.from({ length: 20 }, (_, count) => `id:${count}`);
    expect((await properties.of(ids)).size).toBe(20);
    expect((await localFiles.read(path('/._x')))?.toString()).toBe('fork');
    expect(await placeholders.get(path('/new'))).toEqual(placeholderAt('/new'));
    expect(lines.map(({ level, event }) => `${level}: ${event}`)).toEqual([
      'warn: the shared state is away; trying to reach it again',
      'info: the shared state is back',
    ]);
  });

  test('a command that Redis refuses while it loads its data is repeated until it is loaded', async () => {
    // Redis answers between loads of 1,024 commands: five times within two and a half seconds.
    const redis = await redisWith('--key-load-delay', '500');
    const { state, clock, logged } = await open(redis.url);
    await sayToRedis(redis, `EVAL "for n = 1, 5000 do redis.call('SET', 'key' .. n, n) end" 0`);
    await redis.kill();
    await logged('the shared state is away; trying to reach it again');
    const creating = state.drive('d').locks.create(NOW_MS, lock);
    const started = redis.start();
    expect(await clock.duringSlowly(creating)).toEqual(lock);
    await started;
  });

  test('a call that Redis does not answer within 10 s fails and is not carried out later', async () => {
    const redis = await redisWith();
    const { state, clock, logged } = await open(redis.url);
    const { locks } = state.drive('d');
    await redis.kill();
    await logged('the shared state is away; trying to reach it again');
    const failing = expect(locks.create(NOW_MS, lock)).rejects.toThrow(
      new StateUnavailable(
        `${redis.url}`,
        `no answer within ${ANSWER_MS_MAX / 1000} s; check that Redis runs and is reachable`,
      ),
    );
    await clock.advance(ANSWER_MS_MAX);
    await failing;
    await redis.start();
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
    expect(await state.drive('d').locks.all(NOW_MS)).toEqual([]);
  });

  test('a call to a Redis that hangs fails after 10 s, and the state can still be closed', async () => {
    const redis = await redisWith();
    const { state, clock } = await open(redis.url);
    redis.pause();
    const failing = expect(state.drive('d').locks.all(NOW_MS)).rejects.toThrow('no answer within 10 s');
    await clock.advance(ANSWER_MS_MAX);
    await failing;
    await clock.during(state.close());
    redis.resume();
  });

  test('a change requested before the state is closed is kept, and one requested after it is refused', async () => {
    const redis = await redisWith();
    const { state } = await open(redis.url);
    const creating = state.drive('d').locks.create(NOW_MS, lock);
    await state.close();
    expect(await creating).toEqual(lock);
    await expect(state.drive('d').locks.release(lock.token)).rejects.toThrow('closed');
    expect(await (await open(redis.url)).state.drive('d').locks.all(NOW_MS)).toEqual([lock]);
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

describe('state in Redis', () => {
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
    expect(await one.locks.all(NOW_MS)).toEqual([lock]);
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
    expect(await locks.all(NOW_MS)).toEqual([lock]);
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
});
