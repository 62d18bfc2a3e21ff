import { describe, expect, test } from 'vitest';
import {
  checkPasswordHash,
  hashPassword,
  PasswordHashError,
  verifyPassword,
} from '../../../src/http/passwords.ts';

const CHEAP = { n: 2, r: 1, p: 1 };

describe('password hashes', () => {
  test('verifyPassword accepts the right password and no other', async () => {
    const hash = await hashPassword('pässwort: 1', CHEAP);
    expect(await verifyPassword('pässwort: 1', hash)).toBe(true);
    for (const wrong of ['', 'pässwort: 1 ', 'pässwort: 1\0', 'pässwort', 'Pässwort: 1'])
      expect(await verifyPassword(wrong, hash)).toBe(false);
  });

  test('verifyPassword accepts another Unicode composition of the password', async () => {
    const hash = await hashPassword('u\u0308', CHEAP);
    expect(await verifyPassword('\u00fc', hash)).toBe(true);
  });

  test('hashPassword returns its parameters and a new salt each time, without the password', async () => {
    const [one, other] = [await hashPassword('geheim'), await hashPassword('geheim')];
    expect(one).toMatch(/^scrypt\$16384\$8\$5\$[\w-]{22}\$[\w-]{43}$/);
    expect(one).not.toBe(other);
    expect(await verifyPassword('geheim', one)).toBe(true);
  });

  test.each([
    '',
    'geheim',
    '$2b$12$abcdefghijklmnopqrstuv',
    'scrypt$3$8$1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    'scrypt$1048576$8$1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
    'scrypt$16384$8$1$AAAAAAAAAAAAAAAAAAAAAA$AAAA',
    'scrypt$16384$8$0$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA',
  ])('%j is refused as a password hash with a message that does not repeat it', (text) => {
    expect(() => checkPasswordHash(text)).toThrow(PasswordHashError);
    expect(() => checkPasswordHash(text)).toThrow('davgate hash-password');
    if (text !== '') expect(() => checkPasswordHash(text)).not.toThrow(text);
  });
});
