import type { Path } from '../util/path.ts';

export interface Lock {
  /** An absolute URI, as in `Lock-Token` (RFC 4918 §6.5). */
  readonly token: string;
  readonly root: Path;
  readonly scope: 'exclusive' | 'shared';
  readonly depth: '0' | 'infinity';
  /** The content of the client's `owner` element as standalone XML; may be empty. */
  readonly ownerXml: string;
  /** The user who created it: only this user may use, refresh and release it. */
  readonly principal: string;
  readonly timeoutSeconds: number;
  /** The end by the clock of the gateway that asks, in ms since 1970. */
  readonly expiresMs: number;
}

/** Maximum number of locks on one resource; only shared locks can be more than one. */
export const LOCKS_ON_RESOURCE_MAX = 32;
/** Maximum number of locks that one user holds on one drive. */
export const LOCKS_OF_USER_MAX = 1_000;

/** The limit on locks that is reached. */
export type LocksFull = 'resource' | 'user';

/** A resource that a running request changes; with depth infinity, everything below it too. */
export interface Claim {
  readonly root: Path;
  readonly depth: '0' | 'infinity';
}

/** A claim of a running request. */
export interface RunningClaim extends Claim {
  /** The id of the request's claims, for `endClaims`. */
  readonly id: string;
}

/** The locks that protect the resources of a claim. */
export interface Protection {
  /** Locks at its root, and locks above it with depth infinity. */
  readonly covering: readonly Lock[];
  /** Locks at its root and below, of a claim with depth infinity; otherwise none. */
  readonly within: readonly Lock[];
}

export interface Claimed {
  /** The id for `endClaims`. */
  readonly id: string;
  /** One per claim, in the same order. */
  readonly protections: readonly Protection[];
}

/**
 * The write locks of one drive (RFC 4918 §6 and §7), and the claims of the requests that are changing it. A granted lock
 * survives a kill of davgate; a power cut may lose the last ones, as clients have to expect of any lock (§6.6). Time is an
 * argument, by the caller's clock; shared state measures how long a lock lasts by a clock of its own. A lock that has
 * expired is ignored everywhere and removed on occasion. Its functions do without `this`, so that an object may take over
 * some of them.
 */
export interface Locks {
  /**
   * Creates the lock, or returns the lock or claim that conflicts with it. Two locks conflict when either is exclusive
   * and one of them protects the other's root. A claim conflicts with every lock that would protect its resources.
   * `full`: no conflict, but a limit is reached. Atomic.
   */
  create(
    nowMs: number,
    wanted: Lock,
  ): Promise<
    Lock | { readonly conflict: Lock } | { readonly claim: RunningClaim } | { readonly full: LocksFull }
  >;
  /**
   * Keeps new locks off the resources of `claims` until `endClaims`, and returns the existing locks, in one atomic step: a
   * lock is either returned or refused. Claims do not exclude each other. The claims of a process that dies end with it,
   * in shared state a few seconds later.
   */
  claim(nowMs: number, claims: readonly Claim[]): Promise<Claimed>;
  /**
   * Returns whether these claims of this process have prevented new locks until now without interruption. While shared
   * state is unreachable for some seconds, a lock may be granted in spite of them.
   */
  claimsHold(id: string): Promise<boolean>;
  /** Ends claims. Never rejects, and need not be awaited: in this process the claims have ended when it returns. */
  endClaims(id: string): Promise<void>;
  /** Resolves when the claims of this id have ended, or may have; rejects when `signal` aborts first. */
  claimsEnd(id: string, signal: AbortSignal): Promise<void>;
  /** Renews a lock. Returns `undefined` when the lock no longer exists. */
  refresh(
    nowMs: number,
    token: string,
    span: { readonly timeoutSeconds: number; readonly expiresMs: number },
  ): Promise<Lock | undefined>;
  /** Removes a lock. Returns whether it existed. */
  release(token: string): Promise<boolean>;
  /**
   * Removes a lock that must end whatever happens: no client has received its token, or its resource is gone. Shared state
   * goes on in the background, until it can. Never rejects. A lock whose `create` rejects needs none of this.
   */
  withdraw(lock: Lock): Promise<void>;
  /** Returns the locks that protect `path`: those at it, and those above it with depth infinity. */
  covering(nowMs: number, path: Path): Promise<readonly Lock[]>;
  /** Returns the locks whose root is `path` or below it. */
  within(nowMs: number, path: Path): Promise<readonly Lock[]>;
  /** Returns all locks, for administrators. */
  all(nowMs: number): Promise<readonly Lock[]>;
}
