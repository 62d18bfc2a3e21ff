import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { CommitTurnStore } from '../../src/state/commit-turns.ts';
import { openRedisState } from '../../src/state/redis/state.ts';
import type { State } from '../../src/state/state.ts';
import { systemClock } from '../../src/util/clock.ts';
import { silentLog } from '../../src/util/log.ts';
import { eventually } from '../support/eventually.ts';
import { sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let namespaces = 0;
const states: State[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  for (const state of states.splice(0)) await state.close();
  await sayToRedis(redis, 'FLUSHALL');
});
afterAll(() => redis.close());

/** Opens the turns of a namespace through a new gateway. */
async function open(namespace: string): Promise<CommitTurnStore> {
  const state = await openRedisState({ url: redis.url, clock: systemClock, log: silentLog });
  states.push(state);
  const turns = state.commitTurns?.(namespace);
  if (!turns) throw new Error('Redis shares no turns');
  return turns;
}

/** The turns of a new namespace through two gateways. */
async function openTwo() {
  const namespace = `n${++namespaces}`;
  const [one, other] = [await open(namespace), await open(namespace)];
  const keyOf = (name: string) => `davgate:{commits_${namespace}}:${name}`;
  return { one, other, endTurn: () => sayToRedis(redis, `DEL ${keyOf('turn')}`), keyOf };
}

const WAITING = { is: 'waiting', waiting: expect.any(Number) };
const granted = (...offers: readonly { id: string; entries: readonly string[] }[]) => ({
  is: 'granted',
  offers,
});

function asks(store: CommitTurnStore, id: string, entries: readonly string[] = []) {
  return store.enter({ id, kind: 'commit', entries, isRepeated: false, isGathering: false });
}

/** Asks again until the next turn is granted, a moment after the last one. */
async function asksOn(store: CommitTurnStore, id: string, entries: readonly string[] = []) {
  let answer = await asksAgain(store, id, entries);
  await eventually(async () => {
    if (answer.is === 'waiting') answer = await asksAgain(store, id, entries);
    expect(answer).not.toEqual(WAITING);
  }, 5);
  return answer;
}

function asksAgain(store: CommitTurnStore, id: string, entries: readonly string[] = []) {
  return store.enter({ id, kind: 'commit', entries, isRepeated: true, isGathering: false });
}

test('one gateway at a time has the turn of a namespace, and the next one in line gets it at its end', async () => {
  const { one, other } = await openTwo();
  expect(await asks(one, 'a')).toEqual(granted());
  expect(await asks(other, 'b')).toEqual(WAITING);
  expect(await asks(one, 'c')).toEqual(WAITING);
  await one.leave('a', []);
  expect(await asksAgain(one, 'c')).toEqual(WAITING);
  expect(await asksOn(other, 'b')).toEqual(granted());
});

test('turns of different namespaces do not wait for each other', async () => {
  const [first, second] = [await openTwo(), await openTwo()];
  expect(await asks(first.one, 'a')).toEqual(granted());
  expect(await asks(second.one, 'b')).toEqual(granted());
});

test('a batch that waits is taken with the turn of another batch and gets its own answer', async () => {
  const { one, other } = await openTwo();
  await asks(one, 'a');
  await asks(one, 'b', ['{"b":1}']);
  expect(await asks(other, 'c', ['{"c":1}', '{"c":2}'])).toEqual(WAITING);
  await one.leave('a', []);
  expect(await asksOn(one, 'b', ['{"b":1}'])).toEqual(granted({ id: 'c', entries: ['{"c":1}', '{"c":2}'] }));
  expect(await asksAgain(other, 'c', ['{"c":1}', '{"c":2}'])).toEqual(WAITING);
  await one.leave('b', [{ id: 'c', text: 'done' }]);
  expect(await asksAgain(other, 'c', ['{"c":1}', '{"c":2}'])).toEqual({ is: 'answered', text: 'done' });
  expect(await asks(other, 'd')).toEqual(granted());
});

test('a commit that must go alone takes no batch with it', async () => {
  const { one, other } = await openTwo();
  await asks(one, 'a');
  await asks(one, 'b');
  await asks(other, 'c', ['1']);
  await one.leave('a', []);
  expect(await asksOn(one, 'b')).toEqual(granted());
  await one.leave('b', []);
  expect(await asksOn(other, 'c', ['1'])).toEqual(granted());
});

test('batches of another kind are not taken with a turn', async () => {
  const { one, other } = await openTwo();
  await asks(one, 'a');
  await asks(one, 'b', ['1']);
  const staging = { id: 'c', kind: 'staging', entries: ['2'], isGathering: false };
  expect(await other.enter({ ...staging, isRepeated: false })).toEqual(WAITING);
  await one.leave('a', []);
  expect(await asksOn(one, 'b', ['1'])).toEqual(granted());
});

test('a batch that gathers waits although the turn is free, and is taken along by the next one', async () => {
  const { one, other } = await openTwo();
  const batch = { id: 'a', kind: 'commit', entries: ['1'], isRepeated: false };
  expect(await one.enter({ ...batch, isGathering: true })).toEqual(WAITING);
  expect(await asks(other, 'b', ['2'])).toEqual(granted({ id: 'a', entries: ['1'] }));
});

test('a batch behind one of another kind, or behind a commit that must go alone, is not taken before it', async () => {
  const { one, other } = await openTwo();
  await asks(one, 'a');
  await asks(one, 'alone');
  await asks(other, 'c', ['1']);
  await one.leave('a', []);
  expect(await asksAgain(other, 'c', ['1'])).toEqual(WAITING);
  expect(await asksOn(one, 'alone')).toEqual(granted());
  const staging = { id: 'd', kind: 'staging', entries: ['2'], isGathering: false };
  await other.enter({ ...staging, isRepeated: false });
  await one.leave('alone', []);
  expect(await other.enter({ ...staging, isRepeated: true })).toEqual(WAITING);
  expect(await asksOn(other, 'c', ['1'])).toEqual(granted());
});

test('a turn takes at most 1,000 entries with it, and a batch that does not fit waits for its own', async () => {
  const { one, other } = await openTwo();
  const many = Array.from({ length: 600 }, (_, index) => String(index));
  await asks(one, 'a');
  await asks(one, 'b', many);
  await asks(other, 'c', many);
  await asks(other, 'd', ['d']);
  await one.leave('a', []);
  expect(await asksOn(one, 'b', many)).toEqual(granted({ id: 'd', entries: ['d'] }));
  await one.leave('b', []);
  expect(await asksOn(other, 'c', many)).toEqual(granted());
});

test('when a gateway is killed in its turn, the next one goes on, and a batch that was taken is lost, not offered again', async () => {
  const { one, other, endTurn } = await openTwo();
  await asks(one, 'a');
  await asks(one, 'killed', ['1']);
  await asks(other, 'taken', ['2']);
  await one.leave('a', []);
  expect(await asksOn(one, 'killed', ['1'])).toEqual(granted({ id: 'taken', entries: ['2'] }));
  // The turn ends by the clock of Redis, which a test cannot set.
  await endTurn();
  expect(await asksAgain(other, 'taken', ['2'])).toEqual({ is: 'lost' });
  expect(await asks(other, 'next')).toEqual(granted());
});

test('a turn lasts less than 16 s, and as long again from each renewal', async () => {
  const { one, keyOf } = await openTwo();
  await asks(one, 'a');
  const lasts = async () => Number((await sayToRedis(redis, `PTTL ${keyOf('turn')}`)).slice(1));
  expect(await lasts()).toBeLessThan(16_000);
  await sayToRedis(redis, `PEXPIRE ${keyOf('turn')} 600000`);
  await one.renew('a');
  expect(await lasts()).toBeLessThan(16_000);
});

test('a gateway whose turn has lapsed neither renews nor ends the turn of another one', async () => {
  const { one, other, endTurn } = await openTwo();
  await asks(one, 'late');
  await endTurn();
  expect(await asks(other, 'b')).toEqual(granted());
  await one.renew('late');
  await one.leave('late', []);
  expect(await asks(one, 'c')).toEqual(WAITING);
});

test('a waiting gateway that stops asking loses its place and keeps its batch', async () => {
  const { one, other, keyOf } = await openTwo();
  await asks(one, 'a');
  await asks(other, 'silent', ['1']);
  await asks(one, 'b', ['2']);
  await one.leave('a', []);
  await sayToRedis(redis, `HSET ${keyOf('seen')} silent 0`);
  expect(await asksOn(one, 'b', ['2'])).toEqual(granted());
  await one.leave('b', []);
  expect(await asksOn(other, 'silent', ['1'])).toEqual(granted());
});

test('a batch that Redis has forgotten counts as lost, because another gateway may have taken it', async () => {
  const { one, other } = await openTwo();
  await asks(one, 'a');
  await asks(other, 'b', ['1']);
  await sayToRedis(redis, 'FLUSHALL');
  expect(await asksAgain(other, 'b', ['1'])).toEqual({ is: 'lost' });
});

test('ended turns leave no key in Redis except the number of entries that are expected for 5 s', async () => {
  const { one, other, keyOf } = await openTwo();
  await asks(one, 'a');
  await asks(one, 'b', ['1']);
  await asks(other, 'c', ['2']);
  await asks(other, 'left', ['3']);
  await other.leave('left', []);
  await one.leave('a', []);
  await asksOn(one, 'b', ['1']);
  await one.leave('b', [{ id: 'c', text: '' }]);
  expect(await asksAgain(other, 'c', ['2'])).toEqual({ is: 'answered', text: '' });
  expect(Number((await sayToRedis(redis, `PTTL ${keyOf('expected')}`)).slice(1))).toBeLessThanOrEqual(5000);
  await sayToRedis(redis, `DEL ${keyOf('expected')}`);
  expect(await sayToRedis(redis, 'KEYS *commits*')).toBe('*0\r\n');
});

/** Takes a turn with batches of two gateways, which are expected again. */
async function takeTogether({
  one,
  other,
}: {
  readonly one: CommitTurnStore;
  readonly other: CommitTurnStore;
}) {
  await asks(one, 'a');
  await asks(one, 'b', ['1']);
  await asks(other, 'c', ['2']);
  await one.leave('a', []);
  expect(await asksOn(one, 'b', ['1'])).toEqual(granted({ id: 'c', entries: ['2'] }));
  await one.leave('b', [{ id: 'c', text: '' }]);
}

test('after a turn with batches of two gateways, the next one waits until both have their next batch', async () => {
  const { one, other, keyOf } = await openTwo();
  await takeTogether({ one, other });
  expect(await asks(one, 'd', ['3'])).toEqual(WAITING);
  // However long the machine stands still, it has just begun to wait.
  await sayToRedis(redis, `ZADD ${keyOf('line')} 9000000000000 d`);
  expect(await asksAgain(one, 'd', ['3'])).toEqual(WAITING);
  expect(await asks(other, 'e', ['4'])).toEqual(granted({ id: 'd', entries: ['3'] }));
});

test('a turn waits 0.1 s at most for batches that do not come, and the turns after it wait for half as many entries', async () => {
  const { one, other, keyOf } = await openTwo();
  await takeTogether({ one, other });
  await asks(one, 'd', ['3']);
  await sayToRedis(redis, `ZADD ${keyOf('line')} 0 d`);
  expect(await asksAgain(one, 'd', ['3'])).toEqual(granted());
  await one.leave('d', []);
  expect(await asks(one, 'e', ['4'])).toEqual(granted());
});

test('a commit that must go alone waits for no batch', async () => {
  const { one, other } = await openTwo();
  await takeTogether({ one, other });
  expect(await asks(one, 'd')).toEqual(granted());
});

/** Asks for a turn in which contents are staged. */
function asksToStage(store: CommitTurnStore, id: string, entries: readonly string[], isRepeated = false) {
  return store.enter({ id, kind: 'staging', entries, isRepeated, isGathering: false });
}

test('those who wait to stage while files are committed wait for the writers of these files too', async () => {
  const { one, other, keyOf } = await openTwo();
  await asks(one, 'a', ['1', '2']);
  expect(await asksToStage(other, 'b', ['3'])).toEqual(WAITING);
  // However long the commit took, the time to wait begins at its end.
  await sayToRedis(redis, `ZADD ${keyOf('line')} 0 b`);
  await one.leave('a', []);
  await sayToRedis(redis, `HSET ${keyOf('expected')} since_staging 9000000000000`);
  expect(await asksToStage(other, 'b', ['3'], true)).toEqual(WAITING);
  const offers = [{ id: 'b', entries: ['3'] }];
  expect(await asksToStage(one, 'c', ['4', '5'])).toEqual(granted(...offers));
});

test('those who wait to commit while contents are staged wait for these contents too', async () => {
  const { one, other, keyOf } = await openTwo();
  await asksToStage(one, 'a', ['1', '2']);
  expect(await asks(other, 'b', ['3'])).toEqual(WAITING);
  await sayToRedis(redis, `ZADD ${keyOf('line')} 0 b`);
  await one.leave('a', []);
  await sayToRedis(redis, `HSET ${keyOf('expected')} since_commit 9000000000000`);
  expect(await asksAgain(other, 'b', ['3'])).toEqual(WAITING);
  expect(await asks(one, 'c', ['1', '2'])).toEqual(granted({ id: 'b', entries: ['3'] }));
});

test('a gateway that commits alone stages at once, however few contents it has', async () => {
  const { one } = await openTwo();
  await asks(one, 'a', ['1', '2']);
  await one.leave('a', []);
  expect(await asksToStage(one, 'b', ['3'])).toEqual(granted());
});

test('after two stagings that waited in vain, the next one does not wait for the writers of the commit', async () => {
  const { one, other, keyOf } = await openTwo();
  const says = (word: string) => sayToRedis(redis, `HSET ${keyOf('expected')} ${word}`);
  await takeTogether({ one, other });
  expect(await asksToStage(one, 'staging 0', ['1'])).toEqual(WAITING);
  for (const round of [0, 1]) {
    await sayToRedis(redis, `ZADD ${keyOf('line')} 0 "staging ${round}"`);
    await says('since_staging 0');
    expect(await asksToStage(one, `staging ${round}`, ['1'], true)).toEqual(granted());
    await asks(other, `commit ${round}`, ['2']);
    await one.leave(`staging ${round}`, []);
    await says('since_commit 0');
    expect(await asksOn(other, `commit ${round}`, ['2'])).toEqual(granted());
    await asksToStage(one, `staging ${round + 1}`, ['1']);
    await other.leave(`commit ${round}`, []);
    if (round === 0) await says('since_staging 9000000000000');
    const next = await asksToStage(one, `staging ${round + 1}`, ['1'], true);
    expect(next).toEqual(round === 0 ? WAITING : granted());
  }
});
