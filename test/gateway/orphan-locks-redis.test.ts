import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import type { Gateway } from '../../src/app/gateway.ts';
import { StateUnavailable } from '../../src/state/errors.ts';
import { ANSWER_MS_MAX } from '../../src/state/redis/connection.ts';
import { silentLog } from '../../src/util/log.ts';
import { IS_LONG } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import { lockOn, NOW_MS } from '../support/locks.ts';
import { temporaryDirectory } from '../support/program.ts';
import { sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { redisTests } from '../support/redis-state.ts';
import { startTestService } from '../support/service.ts';
import { startSharedGateway } from '../support/shared-gateway.ts';

// Locks that Redis created, whose tokens no client received.

const AWAY = 'the shared state is away; trying to reach it again';
const REMOVED = 'removed locks whose requests failed while Redis was away';

/** Number of locks that stand in Redis. */
async function locksIn(redis: TestRedis, drive: string): Promise<number> {
  const answer = await sayToRedis(redis, `ZCARD davgate:{${drive}}:lock-ends`);
  return Number(answer.slice(1));
}

/** Resolves when commands have been sent: the client library does it in the next turn of the event loop. */
async function untilSent(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe('a lock whose creation Redis does not answer', () => {
  const { redisWith, open } = redisTests();

  test('is removed when Redis answers again, other locks stay, and its path can be locked again', async () => {
    const redis = await redisWith();
    const { state, clock, lines } = await open(redis.url);
    const { locks } = state.drive('d');
    await locks.create(NOW_MS, lockOn('/kept'));
    redis.pause();
    const failing = expect(locks.create(NOW_MS, lockOn('/a'))).rejects.toThrow(StateUnavailable);
    await untilSent();
    await clock.advance(ANSWER_MS_MAX);
    await failing;
    redis.resume();
    await expectSoon(async () => {
      await clock.advance(100);
      return lines.filter(({ event }) => event === REMOVED).map(({ fields }) => fields);
    }).toEqual([{ locks: 1 }]);
    expect((await locks.all(NOW_MS)).map(({ root }) => root)).toEqual(['/kept']);
    expect(await locks.create(NOW_MS, lockOn('/a'))).toHaveProperty('token');
  });

  test('is not created by a request that Redis reads after the withdrawal', async () => {
    const redis = await redisWith();
    const { state } = await open(redis.url);
    const { locks } = state.drive('d');
    const late = lockOn('/a');
    await locks.withdraw(late);
    await expect(locks.create(NOW_MS, late)).rejects.toThrow('this lock was withdrawn');
    expect(await locks.all(NOW_MS)).toEqual([]);
  });

  test('is gone when its gateway has been closed after the return of Redis', async () => {
    const redis = await redisWith();
    const { state, logged } = await open(redis.url);
    const { locks } = state.drive('d');
    const orphan = lockOn('/a');
    await locks.create(NOW_MS, orphan);
    await redis.kill();
    await logged(AWAY);
    await locks.withdraw(orphan);
    await expect(locks.all(NOW_MS)).rejects.toThrow(StateUnavailable);
    await redis.start();
    await logged('the shared state is back');
    expect(await locksIn(redis, 'd')).toBe(1);
    await state.close();
    expect(await locksIn(redis, 'd')).toBe(0);
  });
});

describe('claims that Redis does not answer', () => {
  const { redisWith, open } = redisTests();

  test('are ended when Redis answers again, so that they keep no lock away', async () => {
    const redis = await redisWith();
    const { state, clock } = await open(redis.url);
    const { locks } = state.drive('d');
    const claim = { root: lockOn('/a').root, depth: '0' } as const;
    // Redis executes the next claim when it resumes, because it has the script from this one.
    await locks.endClaims((await locks.claim(NOW_MS, [claim])).id);
    redis.pause();
    const claiming = locks.claim(NOW_MS, [claim]);
    const failing = expect(claiming).rejects.toThrow(StateUnavailable);
    await untilSent();
    await clock.advance(ANSWER_MS_MAX);
    await failing;
    redis.resume();
    await expectSoon(async () => {
      await clock.advance(100);
      const isAnswering = await locks.all(NOW_MS).then(
        () => true,
        () => false,
      );
      return isAnswering && (await sayToRedis(redis, 'EXISTS davgate:{d}:claims'));
    }).toBe(':0\r\n');
    expect(await locks.create(NOW_MS, lockOn('/a'))).toHaveProperty('token');
  });
});

describe('100 LOCKs while Redis hangs', () => {
  const closers: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const close of closers.splice(0).reverse()) await close();
  });

  async function startTwo(redis: TestRedis): Promise<readonly Gateway[]> {
    const directory = await temporaryDirectory();
    const service = await startTestService();
    closers.push(
      () => directory.remove(),
      () => service.close(),
    );
    const gateways: Gateway[] = [];
    for (const name of ['one', 'two']) {
      const own = join(directory.path, name);
      const gateway = await startSharedGateway({ service, redis, directory: own, log: silentLog });
      closers.push(() => gateway.close());
      gateways.push(gateway);
    }
    return gateways;
  }

  const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
    <D:locktype><D:write/></D:locktype></D:lockinfo>`;

  /** How long Redis hangs at least, in ms. Gateways answer 503 earlier. */
  const HANG_MS = IS_LONG ? 12_000 : 0;

  test('leave no lock but those whose token a client has; another client can lock all other resources', async () => {
    const redis = await startRedis();
    closers.push(() => redis.close());
    const gateways = await startTwo(redis);
    /** Sends a LOCK to one of the gateways. */
    const lock = async (index: number, gateway: number, headers = {}) => {
      const url = new URL(`/file${index}`, gateways[gateway % gateways.length]?.url);
      const body = 'if' in headers ? {} : { body: LOCK };
      const answer = await fetch(url, { method: 'LOCK', headers, ...body });
      return { status: answer.status, token: answer.headers.get('lock-token') };
    };
    const all = Array.from({ length: 100 }, (_, index) => index);
    const answering = all.map((index) => lock(index, index));
    await Promise.race(answering);
    redis.pause();
    const [answers] = await Promise.all([Promise.all(answering), setTimeout(HANG_MS)]);
    const statuses = answers.map(({ status }) => status);
    const [locked, failed] = [201, 503].map((status) => all.filter((index) => statuses[index] === status));
    if (!locked || !failed) throw new Error('there are two lists');
    expect(locked.length + failed.length).toBe(all.length);

    redis.resume();
    await expectSoon(() => locksIn(redis, 'default')).toBe(locked.length);
    const ready = gateways.map(({ url }) => new URL('/.davgate/readyz', url));
    await expectSoon(() => Promise.all(ready.map(async (url) => (await fetch(url)).status))).toEqual([
      200, 200,
    ]);
    const others = await Promise.all(failed.map((index) => lock(index, index + 1)));
    expect(others.filter(({ status }) => status >= 300)).toEqual([]);
    const guarded = await Promise.all(locked.map((index) => lock(index, index + 1)));
    expect(guarded.filter(({ status }) => status !== 423)).toEqual([]);
    const kept = await Promise.all(
      locked.map((index) => lock(index, index, { if: `(${answers[index]?.token})` })),
    );
    expect(kept.filter(({ status }) => status !== 200)).toEqual([]);
    expect(await locksIn(redis, 'default')).toBe(all.length);
  });
});
