import { describe, expect, test } from 'vitest';
import {
  hashPassword,
  PasswordHashError,
  parsePasswordHash,
  verifyPassword,
} from '../../../src/http/passwords.ts';

const CHEAP = { n: 2, r: 1, p: 1 };

describe('password hashes', () => {
  test('the right password fits, others do not', async () => {
    const hash = await hashPassword('pässwort: 1', CHEAP);
    expect(await verifyPassword('pässwort: 1', hash)).toBe(true);
    for (const wrong of ['', 'pässwort: 1 ', 'pässwort: 1\0', 'pässwort', 'Pässwort: 1'])
      expect(await verifyPassword(wrong, hash)).toBe(false);
  });

  test('a password is the same however its letters are composed', async () => {
    const hash = await hashPassword('u\u0308', CHEAP);
    expect(await verifyPassword('\u00fc', hash)).toBe(true);
  });

  test('a hash says how it was made, hides the password and differs each time', async () => {
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
  ])('%j is refused as a hash, without being repeated', (text) => {
    expect(() => parsePasswordHash(text)).toThrow(PasswordHashError);
    expect(() => parsePasswordHash(text)).toThrow('davgate hash-password');
    if (text !== '') expect(() => parsePasswordHash(text)).not.toThrow(text);
  });
});
