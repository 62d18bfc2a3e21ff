import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify<string, Uint8Array, number, Buffer>(scrypt);

/** 256 bits, which cannot be guessed, so that a plain SHA-256 is safe to store. */
const SECRET_BYTES = 32;

/** Returns a new token or app secret, which needs no escaping in headers and URLs. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** 96 bits, which cannot be guessed at a form with a guess limit, and are short enough to type. */
const PASSWORD_BYTES = 12;

/** Returns a password for an account whose owner has not chosen one. */
export function newPassword(): string {
  return randomBytes(PASSWORD_BYTES).toString('base64url');
}

/** Returns the stored form of a secret that nobody can guess: of `newSecret`, or `newPassword`. */
export function hashOfSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** Compares a secret with its stored hash in constant time. */
export function isSecret(secret: string, hash: Uint8Array): boolean {
  return timingSafeEqual(hashOfSecret(secret), hash);
}

/** Compares two secrets in constant time. */
export function isSameSecret(given: string, expected: string): boolean {
  return isSecret(given, hashOfSecret(expected));
}

const SALT_BYTES = 16;
const PASSWORD_HASH_BYTES = 32;
const SECRET_HASH_BYTES = 32;

/** Returns the salt and scrypt hash of a password that a person chose. */
export async function hashOfPassword(password: string): Promise<Buffer> {
  const salt = randomBytes(SALT_BYTES);
  return Buffer.concat([salt, await derive(password, salt, PASSWORD_HASH_BYTES)]);
}

/** Whether `stored` is `hashOfPassword` or `hashOfSecret` of this password; takes the same time either way. */
export async function isPassword(password: string, stored: Uint8Array): Promise<boolean> {
  if (stored.length === SECRET_HASH_BYTES) return isSecret(password, stored);
  const hash = await derive(password, stored.subarray(0, SALT_BYTES), PASSWORD_HASH_BYTES);
  return timingSafeEqual(hash, stored.subarray(SALT_BYTES));
}
