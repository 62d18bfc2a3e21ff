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

const accounts = {
  withEmail: (email: string) => (email === ANN.email ? ANN : undefined),
} as Accounts;

test('four passwords are compared at once, and who comes fifth is asked to wait', async () => {
  const signIn = signInTo(accounts, new ManualClock());
  const five = Array.from({ length: 5 }, (_, index) => signIn.check(`${index}@example.org`, 'x'));
  expect(await Promise.all(five)).toEqual(['wrong', 'wrong', 'wrong', 'wrong', 'too-many']);
  expect(await signIn.check(ANN.email, 'correct horse')).toBe(ANN);
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
