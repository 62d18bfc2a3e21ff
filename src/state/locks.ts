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

/** Maximum number of locks that protect one resource; only shared ones can be more than one. */
export const LOCKS_ON_RESOURCE_MAX = 32;
/** Maximum number of locks that one user holds on one drive. */
export const LOCKS_OF_USER_MAX = 1_000;

/** What has as many locks as it may have. */
export type LocksFull = 'resource' | 'user';

/** A resource that a running request changes; with depth infinity, all below it too. */
export interface Claim {
  readonly root: Path;
  readonly depth: '0' | 'infinity';
}

/** The claim of a request that is running. */
export interface RunningClaim extends Claim {
  /** Of the request: see `endClaims`. */
  readonly id: string;
}

/** The locks that protect what one claim names. */
export interface Protection {
  /** Locks at its root, and locks above it with depth infinity. */
  readonly covering: readonly Lock[];
  /** Locks at its root and below, of a claim with depth infinity; otherwise none. */
  readonly within: readonly Lock[];
}

export interface Claimed {
  /** Names them to `endClaims`. */
  readonly id: string;
  /** One for each claim, in their order. */
  readonly protections: readonly Protection[];
}

/**
 * The write locks of one drive (RFC 4918 §6 and §7), and the claims of the requests that are changing it. A lock
 * that was granted survives a kill of davgate; a power cut may take the last ones, as a client has to expect of any
 * lock (§6.6). Time is an argument; a lock whose `expiresMs` has come counts nowhere and is dropped in passing.
 */
export interface Locks {
  /**
   * Takes the lock, or says what is in its way: another lock, or a claim. Two locks conflict when either is
   * exclusive and one of them protects the other's root; a claim conflicts with every lock that would protect
   * what it names. `full`: nothing is in its way, but there are too many already. Atomic.
   */
  create(
    nowMs: number,
    wanted: Lock,
  ): Promise<
    Lock | { readonly conflict: Lock } | { readonly claim: RunningClaim } | { readonly full: LocksFull }
  >;
  /**
   * Keeps new locks away from what `claims` name until `endClaims`, and returns the locks that are there already.
   * One atomic step with that look: a lock is either among those returned or refused. Claims do not exclude each
   * other. Those of a process that dies end with it, on shared state a few seconds later.
   */
  claim(nowMs: number, claims: readonly Claim[]): Promise<Claimed>;
  /**
   * Whether these claims, of a request of this process, have kept new locks away without a gap until now. On shared
   * state that was out of reach for some seconds, a lock may have been granted in spite of them.
   */
  claimsHold(id: string): Promise<boolean>;
  /** Never rejects, and nobody has to wait for it: in this process the claims have ended when it returns. */
  endClaims(id: string): Promise<void>;
  /** Resolves once the claims of this id have ended, or may have; rejects when `signal` is aborted first. */
  claimsEnd(id: string, signal: AbortSignal): Promise<void>;
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
