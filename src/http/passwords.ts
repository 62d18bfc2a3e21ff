import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';
import { foreignScheme } from './foreign-hashes.ts';

/** Cost of one hash: CPU time grows with `n`·`r`·`p`, memory is 128·`n`·`r` bytes. */
export interface PasswordCost {
  readonly n: number;
  readonly r: number;
  readonly p: number;
}

/** The variant of OWASP's password storage cheat sheet with 16 MiB of memory. */
const COST: PasswordCost = { n: 2 ** 14, r: 8, p: 5 };

/** For passwords of 120 random bits: they cannot be guessed, however fast their hash is computed. */
export const RANDOM_PASSWORD_COST: PasswordCost = { n: 2, r: 1, p: 1 };

/** Maximum memory that a hash in a configuration may ask for, in bytes. */
const MEMORY_BYTES_MAX = 256 * 1024 * 1024;

const PARALLEL_MAX = 64;
const SALT_BYTES = 16;
const KEY_BYTES = 32;

/** The string is not a password hash; `message` says what to do, and does not contain the string. */
export class PasswordHashError extends Error {
  override readonly name = 'PasswordHashError';
}

/** Returns `scrypt$N$r$p$salt$hash`, with salt and hash in base64url. The password is hashed as UTF-8 in NFC. */
export async function hashPassword(password: string, cost: PasswordCost = COST): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const key = await deriveKey(password, salt, KEY_BYTES, cost);
  const { n, r, p } = cost;
  return ['scrypt', n, r, p, salt.toString('base64url'), key.toString('base64url')].join('$');
}

/**
 * Returns whether `hash` was made from `password`, in the same time for every wrong one. The hash may be another program's.
 * Throws `PasswordHashError`.
 */
export async function verifyPassword(password: string, hash: string): Promise<boolean> {
  // Hashes in C end at a NUL, and the HMAC inside scrypt pads short keys with NULs.
  if (password.includes('\0')) return false;
  const scheme = foreignScheme(hash);
  if (scheme) return scheme.verify(password.normalize('NFC'), hash);
  const { cost, salt, key } = parsePasswordHash(hash);
  return timingSafeEqual(key, await deriveKey(password, salt, key.length, cost));
}

/** Throws `PasswordHashError` for a text that `verifyPassword` cannot use. */
export function checkPasswordHash(hash: string): void {
  if (!foreignScheme(hash)) parsePasswordHash(hash);
}

/** Splits a hash of `hashPassword` into its parts. Throws `PasswordHashError`. */
function parsePasswordHash(hash: string): { cost: PasswordCost; salt: Buffer; key: Buffer } {
  const match = /^scrypt\$(\d{1,9})\$(\d{1,3})\$(\d{1,3})\$([\w-]{11,})\$([\w-]{22,})$/.exec(hash);
  const [n = 0, r = 0, p = 0] = match?.slice(1, 4).map(Number) ?? [];
  const isPowerOfTwo = n >= 2 && Number.isInteger(Math.log2(n));
  if (!match || !isPowerOfTwo || r < 1 || p < 1 || p > PARALLEL_MAX || 128 * n * r > MEMORY_BYTES_MAX)
    throw new PasswordHashError(
      'not a password hash of davgate, bcrypt (up to cost 17), apr1 or {SHA}; make one with davgate hash-password or htpasswd -B',
    );
  const [salt, key] = [match[4], match[5]].map((part) => Buffer.from(part ?? '', 'base64url'));
  return { cost: { n, r, p }, salt: salt ?? Buffer.of(), key: key ?? Buffer.of() };
}

function deriveKey(password: string, salt: Buffer, keyBytes: number, cost: PasswordCost): Promise<Buffer> {
  const options: ScryptOptions = { N: cost.n, r: cost.r, p: cost.p, maxmem: 2 * MEMORY_BYTES_MAX };
  return new Promise((resolve, reject) => {
    scrypt(password.normalize('NFC'), salt, keyBytes, options, (error, key) => {
      if (error) reject(error);
      else resolve(key);
    });
  });
}
