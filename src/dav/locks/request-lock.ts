import { FileError } from '../../drive/errors.ts';
import type { Claim, Claimed, Lock } from '../../state/locks.ts';
import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import type { Context } from '../context.ts';
import { DavError } from '../errors.ts';
import { hrefOf } from '../resource-url.ts';

/** The parts of a request that the locks need. A request of the web application has them too. */
type LockedRequest = Pick<Context, 'exchange' | 'drive' | 'principal' | 'clock'>;

/** A change that a request is about to make. */
export interface Change {
  readonly path: Path;
  /** Includes everything below `path`. */
  readonly tree?: boolean;
  /** Adds or removes a member of the parent collection, which a lock on that collection forbids (RFC 4918 §7.4). */
  readonly membership?: boolean;
}

export interface LockCheckOptions {
  /**
   * The lock's owner need not submit its token. Office sends its PROPPATCH without the token of its own lock and treats
   * a refusal as a failed save.
   */
  readonly ownerMayOmitToken?: boolean;
}

/** The locks on the resources that a request changes. No lock is added while the request lock is held. */
export interface RequestLock {
  /**
   * Call before committing a change that took long. Throws `FileError` busy if the request lock may have been lost, so
   * that another lock may have been granted.
   */
  requireUnbroken(): Promise<void>;
  /** Ends the locks at and below `path`, whose resource was removed (RFC 4918 §7.5, §9.6.1). Never rejects. */
  endWithin(path: Path): Promise<void>;
  /** Ends the locks below `path`, whose resource was replaced; a lock on `path` itself stays (§7.5). Never rejects. */
  endBelow(path: Path): Promise<void>;
}

/**
 * Runs `work`, which makes `changes`, under a request lock: until `work` settles, no LOCK is granted on what it changes,
 * even if the request's own lock expires. Request locks do not exclude each other. Answer the request afterwards,
 * because a client that has its answer may lock at once.
 *
 * Throws `DavError` 423 unless `tokens` contains a token for every locked resource that the request changes. One of
 * several shared locks suffices (RFC 4918 §6.2); a token is valid only for the user who took the lock (§6.4).
 */
export async function withRequestLock<T>(
  context: LockedRequest,
  { tokens }: { readonly tokens: ReadonlySet<string> },
  changes: readonly Change[],
  work: (lock: RequestLock) => Promise<T>,
  options: LockCheckOptions = {},
): Promise<T> {
  const { locks } = context.drive.state;
  const claims = changes.flatMap(claimsOf);
  const claimed = await locks.claim(context.clock.now(), claims);
  try {
    await requireTokens(context, tokens, claimed, options);
    return await work(requestLock(context, claims, claimed));
  } finally {
    void locks.endClaims(claimed.id);
  }
}

/** Returns the body, which ends with an error if the request lock may have been lost while it arrived. */
export async function* untilUnbroken(
  body: AsyncIterable<Uint8Array>,
  lock: RequestLock,
): AsyncIterable<Uint8Array> {
  yield* body;
  await lock.requireUnbroken();
}

/** Returns the href of a lock's root. */
export async function lockRootHref(
  { exchange, drive }: Pick<LockedRequest, 'exchange' | 'drive'>,
  root: Path,
): Promise<string> {
  const entry = await drive.files.stat(root, exchange.signal);
  return hrefOf(exchange, root, entry?.kind === 'folder');
}

/** A change of membership claims the parent collection itself, but nothing else below it. */
function claimsOf({ path, tree = false, membership = false }: Change): Claim[] {
  const own: Claim = { root: path, depth: tree ? 'infinity' : '0' };
  return membership && path !== ROOT ? [own, { root: parentOf(path), depth: '0' }] : [own];
}

async function requireTokens(
  context: LockedRequest,
  tokens: ReadonlySet<string>,
  { protections }: Claimed,
  { ownerMayOmitToken = false }: LockCheckOptions,
): Promise<void> {
  const isHeld = ({ principal, token }: Lock) =>
    principal === context.principal && (ownerMayOmitToken || tokens.has(token));
  for (const { covering, within } of protections) {
    for (const group of [covering, ...byRoot(within)]) {
      const [first] = group;
      if (first && !group.some(isHeld)) throw await locked(context, first);
    }
  }
}

function byRoot(locks: readonly Lock[]): Iterable<Lock[]> {
  const groups = new Map<string, Lock[]>();
  for (const lock of locks) {
    const key = keyOf(lock.root);
    groups.set(key, [...(groups.get(key) ?? []), lock]);
  }
  return groups.values();
}

async function locked(context: LockedRequest, { root }: Lock): Promise<DavError> {
  return new DavError(
    423,
    `${root} is locked; submit the lock's token in the If header, or try again once the lock has ended`,
    {
      precondition: 'lock-token-submitted',
      hrefs: [await lockRootHref(context, root)],
    },
  );
}

function requestLock(
  { drive }: LockedRequest,
  claims: readonly Claim[],
  { id, protections }: Claimed,
): RequestLock {
  const within = (path: Path) => {
    const index = claims.findIndex(({ root, depth }) => root === path && depth === 'infinity');
    return protections[index]?.within ?? [];
  };
  const { locks } = drive.state;
  // The change is made: an error now would tell the client that it is not.
  const end = async (ended: readonly Lock[]) => {
    await Promise.all(ended.map((lock) => locks.release(lock.token).catch(() => locks.withdraw(lock))));
  };
  return {
    async requireUnbroken() {
      if (!(await drive.state.locks.claimsHold(id)))
        throw new FileError(
          'busy',
          'the lock store was unreachable during the upload, so another user may have locked the file; send it again',
          { retryAfterMs: 1000 },
        );
    },
    endWithin: (path) => end(within(path)),
    endBelow: (path) => end(within(path).filter(({ root }) => keyOf(root) !== keyOf(path))),
  };
}
