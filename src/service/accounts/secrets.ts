import { createHash, randomBytes, scrypt, timingSafeEqual } from 'node:crypto';
import { promisify } from 'node:util';

const derive = promisify<string, Uint8Array, number, Buffer>(scrypt);

/** 256 bits: beyond guessing, so that a plain SHA-256 of it is a safe thing to store. */
const SECRET_BYTES = 32;

/** A new token or app secret, good in headers and addresses as it is. */
export function newSecret(): string {
  return randomBytes(SECRET_BYTES).toString('base64url');
}

/** 96 bits: beyond guessing at a form that counts the guesses, and short enough to be typed. */
const PASSWORD_BYTES = 12;

/** A password for whoever has not chosen one. */
export function newPassword(): string {
  return randomBytes(PASSWORD_BYTES).toString('base64url');
}

/** What is stored of a token or an app secret. Only for what `newSecret` made: it is no password hash. */
export function hashOfSecret(secret: string): Buffer {
  return createHash('sha256').update(secret).digest();
}

/** In a time that tells nothing of how much of it is right. */
export function isSecret(secret: string, hash: Uint8Array): boolean {
  return timingSafeEqual(hashOfSecret(secret), hash);
}

/** Likewise, of a secret that is known in clear. */
export function isSameSecret(given: string, expected: string): boolean {
  return isSecret(given, hashOfSecret(expected));
}

const SALT_BYTES = 16;
const PASSWORD_HASH_BYTES = 32;

/** Salt and scrypt hash of a password that a person chose. */
export async function hashOfPassword(password: string): Promise<Buffer> {
  const salt = randomBytes(SALT_BYTES);
  return Buffer.concat([salt, await derive(password, salt, PASSWORD_HASH_BYTES)]);
}

/** Whether `hashOfPassword` made this of the password; takes as long whether or not. */
export async function isPassword(password: string, stored: Uint8Array): Promise<boolean> {
  const hash = await derive(password, stored.subarray(0, SALT_BYTES), PASSWORD_HASH_BYTES);
  return timingSafeEqual(hash, stored.subarray(SALT_BYTES));
}
