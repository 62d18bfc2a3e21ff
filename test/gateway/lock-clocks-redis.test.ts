import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import { elapsedMs, systemClock } from '../../src/util/clock.ts';
import { type LogFields, silentLog } from '../../src/util/log.ts';
import { type DavRequest, type DavServer, startDav } from '../support/dav.ts';
import { expectSoon } from '../support/eventually.ts';
import { lockOn } from '../support/locks.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { passForLocks, sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';

// Three gateways share the locks in one Redis. Their clocks differ by 15 minutes from each other.

const QUARTER_MS = 15 * 60_000;
const MINUTE_MS = 60_000;
const HOUR_SECONDS = 3_600;

let redis: TestRedis;
const states: State[] = [];
/** The gateways with the clock that is behind, in the middle, and ahead. */
let gateways: readonly DavServer[];

beforeEach(async () => {
  redis = await startRedis();
  const behind = await startLockedDav(-QUARTER_MS);
  gateways = [behind, await startLockedDav(0, behind), await startLockedDav(QUARTER_MS, behind)];
});
afterEach(async () => {
  for (const gateway of gateways) await gateway.close();
  for (const state of states.splice(0)) await state.close();
  await redis.close();
});

/** Starts a gateway with the files of `first`, whose clock differs from its start by `aheadMs`. */
async function startLockedDav(aheadMs: number, first?: DavServer): Promise<DavServer> {
  const state = await openRedisState({ url: redis.url, clock: systemClock, log: silentLog });
  states.push(state);
  const gateway = await startDav({
    wrap: ({ files }) => ({ files: first?.files ?? files, state: state.drive('d') }),
    randomUuid: randomUUID,
  });
  gateway.clock.stepWall(aheadMs);
  return gateway;
}

/** Sends a request to the gateway of this number. */
function ask(gateway: number, method: string, target: string, request: DavRequest = {}) {
  const server = gateways[gateway];
  if (!server) throw new Error(`there is no gateway ${gateway}`);
  return server.send(method, target, request);
}

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;

const FIND_LOCKS = `<D:propfind xmlns:D="DAV:"><D:prop><D:lockdiscovery/></D:prop></D:propfind>`;

const lock = (gateway: number, target: string, seconds = HOUR_SECONDS) =>
  ask(gateway, 'LOCK', target, { body: LOCK, headers: { Timeout: `Second-${seconds}` } });

const put = (gateway: number, target: string, token?: string) =>
  ask(gateway, 'PUT', target, { body: 'new', headers: token === undefined ? {} : { If: `(${token})` } });

/** Locks a new file through a gateway. Returns the token in angle brackets. */
async function tokenFrom(gateway: number, target: string, seconds = HOUR_SECONDS): Promise<string> {
  await gateways[0]?.file(target, 'old');
  const answer = await lock(gateway, target, seconds);
  expect(answer.status).toBe(200);
  return String(answer.headers['lock-token']);
}

/** Returns the statuses of 200 LOCKs that are sent at once through all gateways. */
async function race(target: string): Promise<readonly number[]> {
  const racers = Array.from({ length: 200 }, (_, index) => lock(index % gateways.length, target));
  return (await Promise.all(racers)).map(({ status }) => status);
}

const count = (statuses: readonly number[], status: number) =>
  statuses.filter((each) => each === status).length;

test('a lock holds at gateways whose clocks are 15 minutes ahead and behind, until its owner releases it', async () => {
  const token = await tokenFrom(1, '/a', 600);
  for (const gateway of [0, 1, 2]) expect((await put(gateway, '/a')).status).toBe(423);
  // A new lock of a gateway that is ahead removes no lock of the others.
  const other = await tokenFrom(2, '/b', 600);
  for (const gateway of [0, 1, 2]) {
    expect((await lock(gateway, '/a')).status).toBe(423);
    expect((await put(gateway, '/a')).status).toBe(423);
    expect((await put(gateway, '/b')).status).toBe(423);
    expect((await put(gateway, '/a', token)).status).toBe(204);
    expect((await put(gateway, '/b', other)).status).toBe(204);
  }
  expect((await ask(0, 'UNLOCK', '/a', { headers: { 'Lock-Token': token } })).status).toBe(204);
  expect((await put(2, '/a')).status).toBe(204);
});

test('gateways with different clocks show the same time left of a lock, also after its refresh through one of them', async () => {
  const token = await tokenFrom(2, '/a');
  const secondsLeft = async (gateway: number) => {
    const { text } = await ask(gateway, 'PROPFIND', '/a', { body: FIND_LOCKS, headers: { Depth: '0' } });
    return Number(/Second-(\d+)/.exec(text)?.[1]);
  };
  const expectAbout = async (seconds: number) => {
    for (const gateway of [0, 1, 2]) {
      const shown = await secondsLeft(gateway);
      expect(shown).toBeLessThanOrEqual(seconds);
      expect(shown).toBeGreaterThan(seconds - 600);
    }
  };
  await expectAbout(HOUR_SECONDS);
  await passForLocks(redis, 'd', 40 * MINUTE_MS);
  await expectAbout(HOUR_SECONDS - 40 * 60);
  const headers = { If: `(${token})`, Timeout: `Second-${HOUR_SECONDS}` };
  const refreshed = await ask(0, 'LOCK', '/a', { headers });
  expect(refreshed.status).toBe(200);
  expect(refreshed.text).toContain(`Second-${HOUR_SECONDS}`);
  await expectAbout(HOUR_SECONDS);
});

test('a lock that has expired is void at gateways with any clock', async () => {
  const token = await tokenFrom(2, '/a');
  await passForLocks(redis, 'd', HOUR_SECONDS * 1000);
  for (const gateway of [0, 1, 2]) {
    expect((await ask(gateway, 'LOCK', '/a', { headers: { If: `(${token})` } })).status).toBe(412);
    expect((await put(gateway, '/a', token)).status).toBe(412);
    expect((await put(gateway, '/a')).status).toBe(204);
  }
  expect((await lock(0, '/a')).status).toBe(200);
});

test('of 200 LOCKs sent at once through gateways with different clocks, one gets the lock', async () => {
  await gateways[0]?.file('/a');
  const statuses = await race('/a');
  expect([count(statuses, 200), count(statuses, 423)]).toEqual([1, 199]);
});

test('of 200 LOCKs sent at once when a lock has expired, one gets the lock, and the former owner gets none', async () => {
  const token = await tokenFrom(0, '/a');
  await passForLocks(redis, 'd', HOUR_SECONDS * 1000);
  const [statuses, refreshed, stored] = await Promise.all([
    race('/a'),
    ask(1, 'LOCK', '/a', { headers: { If: `(${token})` } }),
    put(2, '/a', token),
  ]);
  expect([count(statuses, 200), count(statuses, 423)]).toEqual([1, 199]);
  expect([refreshed.status, stored.status]).toEqual([412, 412]);
});

test('a lock of 2 s, for which others wait at gateways with different clocks, goes to one of them at its end', async () => {
  const start = systemClock.instant();
  const nowMs = (index: number) => systemClock.now() + QUARTER_MS * (index - 1);
  const wanted = (index: number, lastsMs: number) => lockOn('/a', { expiresMs: nowMs(index) + lastsMs });
  const drives = states.map((state) => state.drive('d'));
  expect(await drives[2]?.locks.create(nowMs(2), wanted(2, 2_000))).toHaveProperty('token');
  let winners = 0;
  const waiting = [...drives, ...drives].map(async ({ locks }, racer) => {
    const index = racer % drives.length;
    while (winners === 0) {
      const answer = await locks.create(nowMs(index), wanted(index, HOUR_SECONDS * 1000));
      if ('token' in answer) winners += 1;
    }
  });
  await Promise.all(waiting);
  expect(winners).toBe(1);
  expect(elapsedMs(systemClock, start)).toBeGreaterThanOrEqual(1_990);
});

test('a gateway whose clock differs from that of Redis warns once, and says when the clocks agree again', async () => {
  const lines: (LogFields & { readonly event: string })[] = [];
  const note = (event: string, fields?: LogFields) => void lines.push({ event, ...fields });
  const manual = new ManualClock();
  let aheadMs = QUARTER_MS;
  const clock = {
    now: () => systemClock.now() + aheadMs,
    instant: () => manual.instant(),
    sleep: (ms: number, signal?: AbortSignal) => manual.sleep(ms, signal),
  };
  const state = await openRedisState({
    url: redis.url,
    clock,
    log: { ...silentLog, info: note, warn: note },
  });
  states.push(state);
  const warning = expect.objectContaining({
    event: expect.stringContaining('differs from that of Redis; synchronise both'),
    aheadSeconds: 900,
  });
  const minutePasses = async () => {
    await manual.advance(MINUTE_MS);
    return lines.map(({ event }) => event);
  };
  // Redis counts the comparisons.
  await expectSoon(async () => {
    await minutePasses();
    return sayToRedis(redis, 'INFO commandstats');
  }).toMatch(/cmdstat_time:calls=[3-9]/);
  expect(lines).toEqual([warning]);
  aheadMs = 0;
  await expectSoon(minutePasses).toEqual([
    expect.stringContaining('differs'),
    expect.stringContaining('agrees with that of Redis again'),
  ]);
});
