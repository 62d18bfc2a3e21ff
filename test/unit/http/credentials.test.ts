import { beforeEach, describe, expect, test, vi } from 'vitest';
import { Credentials, type User } from '../../../src/http/credentials.ts';
import { hashPassword, PasswordHashError, verifyPassword } from '../../../src/http/passwords.ts';
import { type LogFields, silentLog } from '../../../src/util/log.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { unhurried } from '../../support/unhurried.ts';

// The real functions, spied on: the cache exists to save these calls.
vi.mock('../../../src/http/passwords.ts', { spy: true });

const ADDRESS = '192.0.2.1';
const CHEAP = { n: 2, r: 1, p: 1 };

const ann: User = {
  name: 'ann',
  passwordHash: await hashPassword('pä:ss', CHEAP),
  grants: [{ drive: 'main' }],
};
const joe: User = {
  name: 'Jörg',
  passwordHash: await hashPassword('€uro', CHEAP),
  grants: [{ drive: 'other' }],
};

const basic = (login: string, encoding: BufferEncoding = 'utf8') =>
  `Basic ${Buffer.from(login, encoding).toString('base64')}`;

let clock: ManualClock;
let credentials: Credentials;
const failures: LogFields[] = [];
const log = {
  ...silentLog,
  warn: (event: string, fields?: LogFields) => void failures.push({ event, ...fields }),
};

beforeEach(() => {
  clock = new ManualClock();
  failures.length = 0;
  credentials = new Credentials([ann, joe], { clock, log, closing: unhurried() });
  vi.mocked(verifyPassword).mockClear();
});

const hashes = () => vi.mocked(verifyPassword).mock.calls.length;
const check = async (header: string | undefined, address = ADDRESS, connection = {}) =>
  credentials.check(header, address, connection);

describe('a user without a password', () => {
  test('no password logs in as such a user, and a guess takes as long as for the others', async () => {
    credentials.replaceUsers([ann, { name: 'eve', grants: ann.grants }]);
    expect(await check(basic('eve:pä:ss'))).toBe('unauthorized');
    expect(await check(basic('eve:'))).toBe('unauthorized');
    expect(hashes()).toBe(2);
  });

  test('without any password there is nothing to compare, whatever the name', async () => {
    credentials.replaceUsers([{ name: 'eve', grants: ann.grants }]);
    for (const name of ['eve', 'nobody']) expect(await check(basic(`${name}:x`))).toBe('unauthorized');
    expect([hashes(), credentials.hasPasswords]).toEqual([0, false]);
  });
});

describe('credentials', () => {
  test.each([
    ['a plain password', basic('ann:pä:ss'), ann],
    ['a domain', basic('OFFICE\\ann:pä:ss'), ann],
    ['Latin-1 encoding', basic('ann:pä:ss', 'latin1'), ann],
    ['the Windows code page', `Basic ${Buffer.from('J\xf6rg:\x80uro', 'latin1').toString('base64')}`, joe],
    ['a decomposed name', basic('Jo\u0308rg:€uro'), joe],
    ['an upper-case scheme and two spaces', basic('ann:pä:ss').replace('Basic ', 'BASIC  '), ann],
    ['no base64 padding', basic('ann:pä:ss').replace(/=+$/, ''), ann],
  ])('a login with %s is accepted', async (_, header, user) => {
    expect(await check(header)).toEqual({ user });
  });

  test.each([
    ['no Authorization header', undefined],
    ['an empty Authorization header', ''],
    ['another scheme', basic('ann:pä:ss').replace('Basic', 'Bearer')],
    ['no login', 'Basic'],
    ['broken base64', `${basic('ann:pä:ss')}!`],
    ['two values', `${basic('ann:pä:ss')}, ${basic('ann:pä:ss')}`],
    ['no colon', basic('ann')],
    ['no name', basic(':pä:ss')],
    ['a wrong password', basic('ann:pass')],
    ['an empty password', basic('ann:')],
    ['the beginning of the password', basic('ann:pä')],
    ['something appended', basic('ann:pä:ss1')],
    ['a colon appended', basic('ann:pä:ss:')],
    ['a space appended', basic('ann:pä:ss ')],
    ['a NUL appended', basic('ann:pä:ss\0')],
    ['a NUL and more appended', basic('ann:pä:ss\0x')],
    ['a line end appended', basic('ann:pä:ss\r\n')],
    ['a NUL in the name', basic('ann\0x:pä:ss')],
    ['bytes that are no text', `Basic ${Buffer.of(0x61, 0x3a, 0xff, 0xfe, 0xc0).toString('base64')}`],
    ['another letter case of the name', basic('Ann:pä:ss')],
    ["another user's password", basic('Jörg:pä:ss')],
    ['an unknown name', basic('eve:pä:ss')],
    ['the hash itself', basic(`ann:${ann.passwordHash}`)],
  ])('a request with %s is refused as unauthorized', async (_, header) => {
    expect(await check(header)).toBe('unauthorized');
  });

  test('the same login costs one password hash, whether it comes concurrently, later or from another address', async () => {
    await Promise.all(Array.from({ length: 20 }, () => check(basic('ann:pä:ss'))));
    await check(basic('ann:pä:ss'), '192.0.2.2');
    expect(hashes()).toBe(1);
  });

  test('each request of a connection is judged by its own login, and by the users of its moment', async () => {
    const connection = {};
    const here = (login: string) => check(basic(login), ADDRESS, connection);
    expect(await here('ann:pä:ss')).toEqual({ user: ann });
    expect(await here('ann:wrong')).toBe('unauthorized');
    expect(await here('Jörg:€uro')).toEqual({ user: joe });
    credentials.replaceUsers([ann]);
    expect(await here('Jörg:€uro')).toBe('unauthorized');
    expect(await here('ann:pä:ss')).toEqual({ user: ann });
  });

  test('a verified login is hashed again after ten minutes', async () => {
    await check(basic('ann:pä:ss'));
    await clock.advance(10 * 60_000);
    expect(await check(basic('ann:pä:ss'))).toEqual({ user: ann });
    expect(hashes()).toBe(2);
  });

  test('a login with an unknown name costs one password hash, like one with a wrong password', async () => {
    await check(basic('eve:wrong'));
    const known = [ann, joe].map(({ passwordHash }) => ['wrong', passwordHash]);
    expect(known).toContainEqual(vi.mocked(verifyPassword).mock.calls[0]);
    expect(hashes()).toBe(1);
    await check(basic('ann:wrong'));
    expect(hashes()).toBe(2);
  });

  test('the right password is accepted after a delay when the same address has sent ten wrong ones', async () => {
    for (let index = 0; index < 10; index++)
      expect(await clock.during(check(basic(`ann:guess${index}`)))).toBe('unauthorized');
    const late = check(basic('ann:pä:ss'));
    await clock.untilSleeping();
    await clock.advance(10_000);
    expect(await late).toEqual({ user: ann });
  });

  test('wrong passwords for a user delay no login from another address, and count with and without a domain', async () => {
    for (let index = 0; index < 4; index++) await check(basic(`NEW\\ann:guess${index}`));
    expect(await check(basic('ann:pä:ss'), '192.0.2.2')).toEqual({ user: ann });
    const delayed = check(basic('ann:guess'));
    await clock.untilSleeping();
    expect(await clock.during(delayed)).toBe('unauthorized');
  });

  test('an active user stays logged in without a new hash while the same address sends wrong passwords', async () => {
    await check(basic('ann:pä:ss'));
    for (let index = 0; index < 40; index++) {
      await clock.advance(60_000);
      await check(basic(`ann:guess${index}`));
      expect(await check(basic('ann:pä:ss'))).toEqual({ user: ann });
    }
    expect(hashes()).toBe(41);
  });

  test('requests without a login, or repeating one wrong login, do not count as guesses', async () => {
    for (let index = 0; index < 50; index++) {
      expect(await check(undefined)).toBe('unauthorized');
      expect(await check(basic('ann:old password'))).toBe('unauthorized');
    }
    expect(hashes()).toBe(1);
    expect(await check(basic('ann:pä:ss'))).toEqual({ user: ann });
  });

  test('a failed login is logged once for each login, with its address and the first 100 characters of its name', async () => {
    await check(basic('ann:s3cret-guess'), '192.0.2.7');
    await check(basic('ann:s3cret-guess'), '192.0.2.7');
    await check(basic(`${'n'.repeat(200)}:x`), '192.0.2.8');
    expect(failures).toEqual([
      { event: 'login failed', address: '192.0.2.7', user: 'ann' },
      { event: 'login failed', address: '192.0.2.8', user: 'n'.repeat(100) },
    ]);
  });

  test('a user with an invalid password hash is refused at the start', () => {
    expect(
      () => new Credentials([{ ...ann, passwordHash: 'geheim' }], { clock, log, closing: unhurried() }),
    ).toThrow(PasswordHashError);
  });
});
