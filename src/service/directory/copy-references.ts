import { randomBytes } from 'node:crypto';

/** A text with which any account can copy the item. */
export interface CopyReference {
  readonly reference: string;
  readonly accountId: string;
  readonly itemId: string;
  readonly expiresMs: number;
}

export interface CopyReferences {
  /** Returns the item's reference: the same at each call. */
  ofItem(nowMs: number, accountId: string, itemId: string): Promise<CopyReference>;
  /** Returns `undefined` for an unknown or expired reference. */
  find(nowMs: number, reference: string): Promise<CopyReference | undefined>;
}

/** Size of a reference, in bytes: 128 bits cannot be guessed. */
const REFERENCE_BYTES = 16;

/** Lifetime of a reference, in ms: thirty years, as at the real service. */
export const REFERENCE_LIFETIME_MS = 30 * 365 * 24 * 60 * 60 * 1000;

/** Returns a random reference. */
export function newReference(): string {
  return randomBytes(REFERENCE_BYTES).toString('base64url');
}
