import { beforeEach, describe, expect, test } from 'vitest';
import { guessesInMemory, WRONG_PER_MINUTE_MAX } from '../../../src/http/guess-counter.ts';
import { OPEN_PER_CLIENT_MAX, PasswordGate } from '../../../src/http/password-gate.ts';
import { eventually } from '../../support/eventually.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HERE = '192.0.2.1';
const THERE = '198.51.100.1';

let clock: ManualClock;
let gate: PasswordGate;
let closing: AbortController;

beforeEach(() => {
  clock = new ManualClock();
  closing = new AbortController();
  const guesses = guessesInMemory(clock, 900_000);
  gate = new PasswordGate({ clock, guesses, delayMsMax: 10_000, closing: closing.signal });
});

interface LoginAttempt {
  readonly name?: string;
  readonly address?: string;
  readonly isRight?: boolean;
  readonly exists?: boolean;
}

const login = ({ name = 'ann', address = HERE, isRight = false, exists = true }: LoginAttempt = {}) =>
  gate.check({ name, address, exists }, async () => isRight);

/** Sends wrong passwords one after the other, each as soon as it is allowed, and returns the waits in seconds. */
async function guess(times: number): Promise<number[]> {
  const waits: number[] = [];
  for (let count = 0; count < times; count++) {
    const before = clock.now();
    for (let result = await during(login()); result !== false; result = await during(login()))
      await clock.advance(typeof result === 'object' ? result.retryAfterMs : 0);
    waits.push((clock.now() - before) / 1000);
  }
  return waits;
}

const during = <T>(work: Promise<T>): Promise<T> => clock.during(work);

describe('a client with wrong passwords for one name', () => {
  test('after four wrong passwords the wait doubles with each further one, up to 15 minutes', async () => {
    expect(await guess(16)).toEqual([0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900]);
  });

  test('a login whose delay is over 10 seconds is refused with the time to wait, and a shorter delay holds it back', async () => {
    await guess(8);
    expect(await login({ isRight: true })).toEqual({ retryAfterMs: 16_000 });
    await clock.advance(6_000);
    const delayed = login({ isRight: true });
    await clock.untilSleeping();
    await clock.advance(10_000);
    expect(await delayed).toBe(true);
  });

  test('a delay for one name and address delays no other address and no other name', async () => {
    await guess(12);
    expect(await login({ isRight: true, address: THERE })).toBe(true);
    expect(await login({ isRight: true, name: 'joe' })).toBe(true);
  });

  test('the right password resets the delay of its client', async () => {
    await guess(5);
    expect(await during(login({ isRight: true }))).toBe(true);
    expect(await guess(4)).toEqual([0, 0, 0, 0]);
  });

  test('concurrent wrong passwords are delayed like consecutive ones', async () => {
    const results = Promise.all(Array.from({ length: 8 }, () => login()));
    await clock.untilSleeping(4);
    const start = clock.now();
    expect((await clock.during(results)).filter((result) => result === false)).toHaveLength(7);
    // The delays are one, two and four seconds; the eighth login would have to wait eight more.
    expect(clock.now() - start).toBe(7_000);
  });
});

test('all addresses of an IPv6 /64 network count as one client', async () => {
  for (let count = 0; count < 9; count++) {
    const result = await during(login({ address: `2001:db8:0:1::${count}` }));
    if (typeof result === 'object') expect(count).toBe(8);
  }
  expect(await login({ address: '2001:db8:0:1:ffff::1' })).toHaveProperty('retryAfterMs');
  expect(await login({ address: '2001:db8:0:2::1', isRight: true })).toBe(true);
});

test('thirty wrong passwords in a minute from one address block it for a minute, whatever the names', async () => {
  for (let count = 0; count < WRONG_PER_MINUTE_MAX; count++)
    expect(await login({ name: `name ${count}`, exists: false })).toBe(false);
  expect(await login({ name: 'another' })).toEqual({ retryAfterMs: 60_000 });
  expect(await login({ name: 'another', address: THERE, isRight: true })).toBe(true);
  await clock.advance(60_000);
  expect(await login({ name: 'another', isRight: true })).toBe(true);
});

describe('concurrent logins', () => {
  test('fifty people behind one address who log in at the same moment are all let in, without a delay', async () => {
    const logins = Array.from({ length: 50 }, (_, index) => login({ name: `name ${index}`, isRight: true }));
    expect(await Promise.all(logins)).toEqual(Array(50).fill(true));
  });

  test('while 64 logins from one address are open, eight of them are compared, and a further one is refused with the time to wait', async () => {
    const answers: ((isRight: boolean) => void)[] = [];
    const gateForMany = new PasswordGate({
      ...{ clock, guesses: guessesInMemory(clock, 900_000), delayMsMax: 10_000, closing: closing.signal },
      comparedAtOnce: OPEN_PER_CLIENT_MAX,
    });
    const logins = Array.from({ length: OPEN_PER_CLIENT_MAX }, (_, index) =>
      gateForMany.check({ name: `name ${index}`, address: HERE, exists: true }, () => {
        return new Promise<boolean>((resolve) => answers.push(resolve));
      }),
    );
    await eventually(() => expect(answers).toHaveLength(8));
    const one = { name: 'ann', exists: true };
    expect(await gateForMany.check({ ...one, address: HERE }, async () => true)).toEqual({
      retryAfterMs: 5_000,
    });
    expect(await gateForMany.check({ ...one, address: THERE }, async () => true)).toBe(true);
    for (let answered = 0; answered < OPEN_PER_CLIENT_MAX; answered++) {
      await eventually(() => expect(answers.length).toBeGreaterThan(answered));
      expect(answers.length - answered).toBeLessThanOrEqual(8);
      answers[answered]?.(true);
    }
    expect(await Promise.all(logins)).toEqual(Array(OPEN_PER_CLIENT_MAX).fill(true));
    expect(await gateForMany.check({ ...one, address: HERE }, async () => true)).toBe(true);
  });

  test('a delayed guess holds up no right password for another name from the same address', async () => {
    await guess(8);
    const delayed = Array.from({ length: 20 }, () => login());
    expect(await login({ name: 'joe', isRight: true })).toBe(true);
    closing.abort();
    await Promise.all(delayed);
  });

  test('a flood of logins for unknown names delays a login for an existing name by at most three checks', async () => {
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

test('a delayed login is refused with the time to wait as soon as davgate shuts down', async () => {
  await guess(5);
  const delayed = login();
  await clock.untilSleeping();
  closing.abort();
  expect(await delayed).toEqual({ retryAfterMs: 2_000 });
  expect(await login()).toEqual({ retryAfterMs: 2_000 });
});
