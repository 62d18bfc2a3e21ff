import { beforeEach, describe, expect, test } from 'vitest';
import { PasswordGate, WRONG_PER_MINUTE_MAX } from '../../../src/http/password-gate.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HERE = '192.0.2.1';
const THERE = '198.51.100.1';

let clock: ManualClock;
let gate: PasswordGate;
let closing: AbortController;

beforeEach(() => {
  clock = new ManualClock();
  closing = new AbortController();
  gate = new PasswordGate({ clock, longestWaitMs: 900_000, delayMsMax: 10_000, closing: closing.signal });
});

interface Said {
  readonly name?: string;
  readonly address?: string;
  readonly isRight?: boolean;
  readonly exists?: boolean;
}

const say = ({ name = 'ann', address = HERE, isRight = false, exists = true }: Said = {}) =>
  gate.check({ name, address, exists }, async () => isRight);

/** Wrong passwords one after the other, each as soon as it is allowed; the waits before each, in seconds. */
async function guess(times: number): Promise<number[]> {
  const waits: number[] = [];
  for (let count = 0; count < times; count++) {
    const before = clock.now();
    for (let verdict = await during(say()); verdict !== false; verdict = await during(say()))
      await clock.advance(typeof verdict === 'object' ? verdict.retryAfterMs : 0);
    waits.push((clock.now() - before) / 1000);
  }
  return waits;
}

const during = <T>(work: Promise<T>): Promise<T> => clock.during(work);

describe('a client that says wrong passwords for a name', () => {
  test('waits twice as long after each beyond three slips, up to a quarter of an hour', async () => {
    expect(await guess(16)).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  });

  test('is told how long to wait when that is too long to be held back', async () => {
    await guess(8);
    expect(await say({ isRight: true })).toEqual({ retryAfterMs: 16_000 });
    await clock.advance(6_000);
    const held = say({ isRight: true });
    await clock.untilSleeping();
    await clock.advance(10_000);
    expect(await held).toBe(true);
  });

  test('keeps nobody out who asks from elsewhere, nor for another name', async () => {
    await guess(12);
    expect(await say({ isRight: true, address: THERE })).toBe(true);
    expect(await say({ isRight: true, name: 'joe' })).toBe(true);
  });

  test('starts again once it has said the right one', async () => {
    await guess(5);
    expect(await during(say({ isRight: true }))).toBe(true);
    expect(await guess(4)).toEqual([0, 0, 0, 0]);
  });

  test('does not get round it by many tries at once', async () => {
    const verdicts = Promise.all(Array.from({ length: 8 }, () => say()));
    await clock.untilSleeping(4);
    const start = clock.now();
    expect((await clock.during(verdicts)).filter((verdict) => verdict === false)).toHaveLength(7);
    // One, two and four seconds lie between them; the last would have had to wait for eight more.
    expect(clock.now() - start).toBe(7_000);
  });
});

test('all addresses of an IPv6 /64 are one client', async () => {
  for (let count = 0; count < 9; count++) {
    const verdict = await during(say({ address: `2001:db8:0:1::${count}` }));
    if (typeof verdict === 'object') expect(count).toBe(8);
  }
  expect(await say({ address: '2001:db8:0:1:ffff::1' })).toHaveProperty('retryAfterMs');
  expect(await say({ address: '2001:db8:0:2::1', isRight: true })).toBe(true);
});

test('thirty wrong passwords in a minute from one address are enough, whatever the names', async () => {
  for (let count = 0; count < WRONG_PER_MINUTE_MAX; count++)
    expect(await say({ name: `name ${count}`, exists: false })).toBe(false);
  expect(await say({ name: 'another' })).toEqual({ retryAfterMs: 60_000 });
  expect(await say({ name: 'another', address: THERE, isRight: true })).toBe(true);
  await clock.advance(60_000);
  expect(await say({ name: 'another', isRight: true })).toBe(true);
});

describe('a crowd', () => {
  test('of one address has eight turns, and the ninth try is told to come back', async () => {
    const verdicts = await Promise.all(
      Array.from({ length: 9 }, (_, index) => say({ name: `name ${index}`, exists: false })),
    );
    expect(verdicts.slice(0, 8)).toEqual(Array(8).fill(false));
    expect(verdicts[8]).toEqual({ retryAfterMs: 5_000 });
  });

  test('that guesses at names that do not exist leaves room for one that does, and it goes first', async () => {
    const order: string[] = [];
    const compare = (name: string) => async () => {
      order.push(name);
      return name === 'ann';
    };
    const flood = Array.from({ length: 80 }, (_, index) =>
      gate.check(
        { name: `name ${index}`, address: `203.0.113.${index}`, exists: false },
        compare(`name ${index}`),
      ),
    );
    const honest = gate.check({ name: 'ann', address: HERE, exists: true }, compare('ann'));
    expect(await honest).toBe(true);
    await Promise.all(flood);
    expect(order.indexOf('ann')).toBeLessThanOrEqual(3);
    expect(order.length).toBeLessThan(80);
  });
});

test('a try that is held back is told how long to wait as soon as davgate ends', async () => {
  await guess(5);
  const held = say();
  await clock.untilSleeping();
  closing.abort();
  expect(await held).toEqual({ retryAfterMs: 2_000 });
  expect(await say()).toEqual({ retryAfterMs: 2_000 });
});
