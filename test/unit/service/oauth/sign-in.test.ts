import { expect, test } from 'vitest';
import type { Account, Accounts } from '../../../../src/service/accounts/accounts.ts';
import { hashOfPassword } from '../../../../src/service/accounts/secrets.ts';
import { signInTo } from '../../../../src/service/oauth/sign-in.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const ANN: Account = {
  id: 'dbid:ann',
  namespace: '1',
  email: 'ann@example.org',
  givenName: 'Ann',
  surname: 'Other',
  mayDeletePermanently: false,
  passwordHash: await hashOfPassword('correct horse'),
};

/** With another whose address has a capital letter that SQLite does not take for the same as the small one. */
const EVE: Account = { ...ANN, id: 'dbid:eve', email: 'Ève@example.org' };

const accounts = {
  withEmail: (email: string) =>
    email === EVE.email ? EVE : email.toLowerCase() === ANN.email ? ANN : undefined,
} as Accounts;

test('four passwords are compared at once, and who comes fifth is asked to wait', async () => {
  const signIn = signInTo(accounts, new ManualClock());
  const five = Array.from({ length: 5 }, (_, index) => signIn.check(`${index}@example.org`, 'x'));
  expect(await Promise.all(five)).toEqual(['wrong', 'wrong', 'wrong', 'wrong', 'too-many']);
  expect(await signIn.check(ANN.email, 'correct horse')).toBe(ANN);
});

test('who has to wait for others has not guessed', async () => {
  const signIn = signInTo(accounts, new ManualClock());
  const four = Array.from({ length: 4 }, (_, index) => signIn.check(`${index}@example.org`, 'x'));
  for (let attempt = 0; attempt < 11; attempt++)
    expect(await signIn.check(ANN.email, 'correct horse')).toBe('too-many');
  await Promise.all(four);
  expect(await signIn.check(ANN.email, 'correct horse')).toBe(ANN);
});

test('an address with letters beyond A to Z is found as it was registered', async () => {
  expect(await signInTo(accounts, new ManualClock()).check(EVE.email, 'correct horse')).toBe(EVE);
});

test('the address counts in any case and without blanks around it, the password as it is', async () => {
  const signIn = signInTo(accounts, new ManualClock());
  expect(await signIn.check('  ANN@Example.org ', 'correct horse')).toBe(ANN);
  expect(await signIn.check(ANN.email, 'correct horse ')).toBe('wrong');
});

test('who types the right one before the tenth wrong one may go on being wrong', async () => {
  const signIn = signInTo(accounts, new ManualClock());
  for (let round = 0; round < 2; round++) {
    for (let wrong = 0; wrong < 9; wrong++) expect(await signIn.check(ANN.email, 'x')).toBe('wrong');
    expect(await signIn.check(ANN.email, 'correct horse')).toBe(ANN);
  }
});
