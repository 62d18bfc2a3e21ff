import { inspect } from 'node:util';
import { describe, expect, test } from 'vitest';
import { isStartFailure } from '../../src/cli/start-failure.ts';
import { StateUnavailable } from '../../src/state/errors.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import { freePort } from '../support/free-port.ts';
import { lockOn } from '../support/locks.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { sayToRedis } from '../support/redis.ts';
import { redisTests } from '../support/redis-state.ts';

const { redisWith, open } = redisTests();

const NOW_MS = Date.UTC(2026, 0, 1);
const lock = lockOn('/a/b');

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

describe('a Redis that may lose data', () => {
  test.each([
    [
      ['--appendonly', 'no'],
      /^Redis forgets locks, .* when it stops: .*"appendonly yes" in redis.conf, or .*--redis-volatile$/,
    ],
    [
      ['--maxmemory-policy', 'allkeys-lru'],
      /^Redis drops locks, .* when its memory is full: .*"maxmemory-policy noeviction"/,
    ],
  ])('opening a Redis with %j fails and says what to set', async (settings, message) => {
    const redis = await redisWith(...settings, '--requirepass', 'SECRET');
    const error = await open(redis.url.replace('://', '://:SECRET@')).catch((thrown: unknown) => thrown);
    expect(isStartFailure(error)).toBe(true);
    expect(error).toMatchObject({ name: 'VolatileState', message: expect.stringMatching(message) });
    expect(String(error)).not.toContain('SECRET');
  });

  test.each([
    [['--appendonly', 'no'], /^Redis forgets locks, .* when it stops; .*"appendonly yes"/],
    [['--maxmemory-policy', 'allkeys-lfu'], /^Redis drops locks, .* when its memory is full; .*noeviction/],
  ])('with --redis-volatile, opening a Redis with %j logs a warning', async (settings, event) => {
    const { lines } = await open((await redisWith(...settings)).url, { isVolatile: true });
    expect(lines).toEqual([expect.objectContaining({ level: 'warn', event: expect.stringMatching(event) })]);
  });

  test('opening a Redis that may lose its last second logs that', async () => {
    const { lines } = await open((await redisWith('--appendfsync', 'everysec')).url);
    expect(lines).toEqual([
      expect.objectContaining({ level: 'info', event: expect.stringMatching(/may lose its last second/) }),
    ]);
  });

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
