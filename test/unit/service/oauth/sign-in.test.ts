import { expect, test } from 'vitest';
import { type GuessStore, memoryStore } from '../../../../src/http/guess-counter.ts';
import type { Account, Accounts } from '../../../../src/service/accounts/accounts.ts';
import { hashOfPassword } from '../../../../src/service/accounts/secrets.ts';
import { signInTo } from '../../../../src/service/oauth/sign-in.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { unhurried } from '../../../support/unhurried.ts';

const ANN: Account = {
  id: 'dbid:ann',
  namespace: '1',
  email: 'ann@example.org',
  givenName: 'Ann',
  surname: 'Other',
  mayDeletePermanently: false,
  passwordHash: await hashOfPassword('correct horse'),
};

/** An account whose email address has a capital letter that SQLite does not fold. */
const EVE: Account = { ...ANN, id: 'dbid:eve', email: 'Ève@example.org' };

const accounts = {
  withEmail: async (email: string) =>
    email === EVE.email ? EVE : email.toLowerCase() === ANN.email ? ANN : undefined,
} as Accounts;

const HERE = '192.0.2.1';
const newSignIn = (clock = new ManualClock(), guesses = memoryStore()) =>
  signInTo({ accounts, guesses, clock, log: silentLog, closing: unhurried() });

test('guesses at unknown email addresses do not delay a sign-in', async () => {
  const signIn = newSignIn();
  const guesses = Array.from({ length: 12 }, (_, index) =>
    signIn.check(`${index}@example.org`, 'x', `198.51.100.${index}`),
  );
  expect(await signIn.check(ANN.email, 'correct horse', HERE)).toBe(ANN);
  expect(await Promise.all(guesses)).toEqual(Array(12).fill('wrong'));
});

test('wrong passwords from one address do not delay a sign-in from another', async () => {
  const clock = new ManualClock();
  const signIn = newSignIn(clock);
  for (let wrong = 0; wrong < 10; wrong++) await clock.during(signIn.check(ANN.email, 'x', HERE));
  expect(await signIn.check(ANN.email, 'correct horse', HERE)).toHaveProperty('retryAfterMs');
  expect(await signIn.check(ANN.email, 'correct horse', '198.51.100.1')).toBe(ANN);
});

test('an email address with a letter beyond A to Z is found as it was registered', async () => {
  expect(await newSignIn().check(EVE.email, 'correct horse', HERE)).toBe(EVE);
});

test('sign-in ignores letter case and blanks around the email address, but not in the password', async () => {
  const signIn = newSignIn();
  expect(await signIn.check('  ANN@Example.org ', 'correct horse', HERE)).toBe(ANN);
  expect(await signIn.check(ANN.email, 'correct horse ', HERE)).toBe('wrong');
});

test('a right password resets the count of wrong ones', async () => {
  const signIn = newSignIn();
  for (let round = 0; round < 2; round++) {
    for (let wrong = 0; wrong < 3; wrong++) expect(await signIn.check(ANN.email, 'x', HERE)).toBe('wrong');
    expect(await signIn.check(ANN.email, 'correct horse', HERE)).toBe(ANN);
  }
});

test('on a full disk a right password signs in, and wrong ones are still delayed', async () => {
  const clock = new ManualClock();
  const full: GuessStore = {
    find: async () => ({ name: undefined, client: undefined }),
    update: async () => {
      throw Object.assign(new Error('injected'), { code: 'SQLITE_FULL' });
    },
  };
  const signIn = newSignIn(clock, full);
  expect(await signIn.check(ANN.email, 'correct horse', HERE)).toBe(ANN);
  for (let wrong = 0; wrong < 10; wrong++) await clock.during(signIn.check(ANN.email, 'x', HERE));
  expect(await signIn.check(ANN.email, 'correct horse', HERE)).toHaveProperty('retryAfterMs');
});

test('a sign-in is delayed by wrong passwords seen by a process whose clock is half a minute ahead', async () => {
  const guesses = memoryStore();
  const ahead = new ManualClock();
  const behind = new ManualClock(ahead.now() - 30_000);
  const other = newSignIn(ahead, guesses);
  for (let wrong = 0; wrong < 10; wrong++) await ahead.during(other.check(ANN.email, 'x', HERE));
  expect(await newSignIn(behind, guesses).check(ANN.email, 'correct horse', HERE)).toHaveProperty(
    'retryAfterMs',
  );
});

test('wrong passwords from before the clock was set back by a day delay no sign-in', async () => {
  const clock = new ManualClock();
  const signIn = newSignIn(clock);
  for (let wrong = 0; wrong < 10; wrong++) await clock.during(signIn.check(ANN.email, 'x', HERE));
  clock.stepWall(-24 * 60 * 60_000);
  expect(await signIn.check(ANN.email, 'correct horse', HERE)).toBe(ANN);
});
