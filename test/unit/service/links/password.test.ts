import { expect, test } from 'vitest';
import { memoryStore } from '../../../../src/http/guess-counter.ts';
import { hashOfPassword } from '../../../../src/service/accounts/secrets.ts';
import type { Link } from '../../../../src/service/links/links.ts';
import { linkPasswords } from '../../../../src/service/links/password.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { unhurried } from '../../../support/unhurried.ts';

const LINK: Link = {
  token: 'token',
  rlkey: 'key',
  accountId: 'dbid:ann',
  itemId: 'id:x',
  itemKind: 'file',
  visibility: 'password',
  passwordHash: await hashOfPassword('open sesame'),
  allowDownload: true,
  sequence: 1,
};

const HERE = '192.0.2.1';

const passwordsOf = (clock = new ManualClock()) =>
  linkPasswords({ guesses: memoryStore(), clock, log: silentLog, closing: unhurried() });

const atOnce = (passwords: ReturnType<typeof linkPasswords>, password: string) =>
  Promise.all(Array.from({ length: 20 }, () => passwords.check(LINK, password, HERE)));

test('20 concurrent requests with the right password of a link are all accepted', async () => {
  expect(await atOnce(passwordsOf(), 'open sesame')).toEqual(Array(20).fill('right'));
});

test('20 concurrent requests with one wrong password of a link count as one guess', async () => {
  const passwords = passwordsOf();
  for (let guess = 0; guess < 4; guess++)
    expect(await atOnce(passwords, `guess ${guess}`)).toEqual(Array(20).fill('wrong'));
  expect(await passwords.check(LINK, 'open sesame', '198.51.100.1')).toBe('right');
});

test("guesses at a link's password delay no request from another address", async () => {
  const clock = new ManualClock();
  const passwords = passwordsOf(clock);
  for (let guess = 0; guess < 10; guess++) await clock.during(passwords.check(LINK, `guess ${guess}`, HERE));
  expect(await passwords.check(LINK, 'guess', HERE)).toHaveProperty('retryAfterMs');
  expect(await passwords.check(LINK, 'open sesame', '198.51.100.1')).toBe('right');
});

test("the waits after guesses at a link's password grow, up to 15 minutes", async () => {
  const clock = new ManualClock();
  const passwords = passwordsOf(clock);
  const waits: number[] = [];
  for (let guess = 0; guess < 40; guess++) {
    const answer = await clock.during(passwords.check(LINK, `guess ${guess}`, HERE));
    if (typeof answer === 'string') continue;
    waits.push(answer.retryAfterMs);
    await clock.advance(answer.retryAfterMs);
  }
  expect(Math.max(...waits)).toBe(15 * 60_000);
  expect(waits).toEqual(waits.toSorted((one, other) => one - other));
  expect(waits.slice(-3)).toEqual(Array(3).fill(15 * 60_000));
});
