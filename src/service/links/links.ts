import { randomBytes } from 'node:crypto';

export type LinkVisibility = 'public' | 'password' | 'no_one';

/** A shared link. It belongs to the item's id, and so survives moves; while the item is gone it serves nothing. */
export interface Link {
  /** The part of the URL that identifies the link. */
  readonly token: string;
  /** The `rlkey` of the URL, without which the token opens nothing. */
  readonly rlkey: string;
  readonly accountId: string;
  readonly itemId: string;
  readonly itemKind: 'file' | 'folder';
  readonly visibility: LinkVisibility;
  readonly passwordHash?: Uint8Array;
  readonly expiresMs?: number;
  readonly allowDownload: boolean;
  /** Larger for each later link; a listing continues after it. */
  readonly sequence: number;
}

export type NewLink = Omit<Link, 'token' | 'rlkey' | 'sequence'>;

export interface Links {
  /** Adds a link to an item, in place of one that has expired. Returns the existing link of an item that has one. */
  add(nowMs: number, link: NewLink): Promise<{ readonly link: Link; readonly isNew: boolean }>;
  withToken(token: string): Promise<Link | undefined>;
  /** Returns the links of those of the items that have one, in the order of the items. */
  ofItems(accountId: string, itemIds: readonly string[]): Promise<readonly Link[]>;
  /** Returns links of the account made after the one numbered `afterSequence`, oldest first. */
  ofAccount(accountId: string, afterSequence: number, limit: number): Promise<readonly Link[]>;
  /**
   * Changes visibility, password, expiry and downloads of the link with this token as `change` says, which gets the
   * current link. Returns the changed link. A link for which `change` throws stays as it is.
   */
  change(token: string, change: (link: Link) => Link): Promise<Link | undefined>;
  remove(token: string): Promise<void>;
  /** Removes up to `limit` links that expired long ago. Returns how many. */
  forgetOld(nowMs: number, limit: number): Promise<number>;
}

export function isExpired({ expiresMs }: NewLink, nowMs: number): boolean {
  return expiresMs !== undefined && expiresMs <= nowMs;
}

/** Returns a random half of a link's URL. */
export function newLinkKey(): string {
  return randomBytes(KEY_BYTES).toString('hex');
}

/** Size of each half of a link's URL, in bytes: 128 bits cannot be guessed. */
const KEY_BYTES = 16;

/** How long a driver keeps an expired link, in ms, so that its page says that it has expired: 30 days. */
export const EXPIRED_KEPT_MS = 30 * 24 * 60 * 60 * 1000;
