import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import { silentLog } from '../../src/util/log.ts';
import { type DavServer, startDav } from '../support/dav.ts';
import { expectSoon } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectRaw } from '../support/raw-http.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let clock: ManualClock;
let state: State;
let dav: DavServer;

beforeEach(async () => {
  redis = await startRedis(['--maxmemory-policy', 'noeviction']);
  clock = new ManualClock();
  state = await openRedisState({ url: redis.url, clock, log: silentLog });
  dav = await startDav({ wrap: ({ files }) => ({ files, state: state.drive('d') }) });
});

afterEach(async () => {
  await dav.close();
  await clock.during(state.close());
  await redis.close();
});

async function setMemory(bytes: number): Promise<void> {
  const connection = connectRaw(redis.port);
  connection.send(`CONFIG SET maxmemory ${bytes}\r\n`);
  await connection.until('OK');
  connection.socket.destroy();
}

test('PUT while Redis is full answers 507 and logs the reason once, and succeeds again once there is room', async () => {
  await setMemory(1);
  expect((await dav.send('PUT', '/a', { body: 'text' })).status).toBe(507);
  expect(dav.content('/a')).toBeUndefined();
  expect(dav.errors).toEqual([
    expect.objectContaining({ status: 507, reason: expect.stringContaining('its memory is full') }),
  ]);
  await setMemory(0);
  expect((await dav.send('PUT', '/a', { body: 'text' })).status).toBe(201);
});

test('while Redis is full, the stream of changes is still read, and a gateway keeps its turn to follow the change feed', async () => {
  const { changeStream: stream } = state.drive('d');
  if (!stream) throw new Error('a drive in Redis has no change stream');
  const { before } = await stream.add('a', undefined);
  expect(await stream.feed.takeTurn(60_000, { isUp: true })).toBe(true);
  await setMemory(1);
  await expect(stream.add('b', undefined)).rejects.toThrow('its memory is full');
  expect(await stream.feed.takeTurn(60_000, { isUp: true })).toBe(true);
  expect(await stream.after(before)).toMatchObject({ events: [{ text: 'a' }], isFeedUp: true });
});

test('PUT while Redis is away answers 503 with Retry-After and logs the reason once, and succeeds again once Redis is back', async () => {
  await redis.kill();
  const { status, headers } = await clock.during(dav.send('PUT', '/a', { body: 'text' }));
  expect([status, Number(headers['retry-after'])]).toEqual([503, 10]);
  expect(dav.content('/a')).toBeUndefined();
  expect(dav.errors).toEqual([
    expect.objectContaining({ status: 503, reason: expect.stringContaining('no answer within 10 s') }),
  ]);
  await redis.start();
  await expectSoon(async () => (await dav.send('PUT', '/a', { body: 'text' })).status).toBe(201);
});
