import type { Path } from '../util/path.ts';

export interface Lock {
  /** An absolute URI, as in `Lock-Token` (RFC 4918 §6.5). */
  readonly token: string;
  readonly root: Path;
  readonly scope: 'exclusive' | 'shared';
  readonly depth: '0' | 'infinity';
  /** The inside of the client's `owner` element, as XML that stands by itself; may be empty. */
  readonly ownerXml: string;
  /** Who took it: only this user may use, refresh and release it. */
  readonly principal: string;
  readonly timeoutSeconds: number;
  readonly expiresMs: number;
}

/**
 * The write locks of one drive (RFC 4918 §6 and §7). A lock that was given outlives a kill of
 * davgate; after a power cut the last ones may be gone, as a client has to expect of any lock (§6.6).
 * Time is handed in; a lock whose `expiresMs` has come counts nowhere and is dropped on the way.
 */
export interface Locks {
  /**
   * Takes the lock, or says which lock stands in the way: exclusive against any, shared against exclusive,
   * at `root`, above it with depth infinity and, when `wanted` is of depth infinity, below it. Atomic.
   */
  create(nowMs: number, wanted: Lock): Promise<Lock | { readonly conflict: Lock }>;
  /** `undefined` when there is no such lock any more. */
  refresh(
    nowMs: number,
    token: string,
    span: { readonly timeoutSeconds: number; readonly expiresMs: number },
  ): Promise<Lock | undefined>;
  /** Whether there was such a lock. */
  release(token: string): Promise<boolean>;
  /** The locks that protect `path`: those at it, and those above it with depth infinity. */
  covering(nowMs: number, path: Path): Promise<readonly Lock[]>;
  /** The locks whose root is `path` or below it. */
  within(nowMs: number, path: Path): Promise<readonly Lock[]>;
  /** All locks; for people who look after a drive. */
  all(nowMs: number): Promise<readonly Lock[]>;
}
