import type { Claim, Claimed, Lock } from '../../state/locks.ts';
import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { DavError } from '../errors.ts';
import { hrefOf } from '../href.ts';
import type { Context } from '../method.ts';

/** A resource that a request is about to change. */
export interface Change {
  readonly path: Path;
  /** With all below it. */
  readonly tree?: boolean;
  /** Its name appears in its folder or disappears, which a lock on that folder forbids too (RFC 4918 §7.4). */
  readonly membership?: boolean;
}

export interface LockCheckOptions {
  /**
   * The user who took a lock need not name it: Office sends its PROPPATCH without the token of its own lock,
   * and takes a refusal for a failed save.
   */
  readonly ownerMayOmitToken?: boolean;
  /** The locks that the request needs a token for; all unless given. */
  readonly concerns?: (lock: Lock) => boolean;
}

/** The locks on what a request changes, while it holds its request lock: none is added meanwhile. */
export interface RequestLock {
  /**
   * To be awaited before what took long is committed. Throws `DavError` 503 when locks may have been granted meanwhile
   * in spite of this one.
   */
  requireUnbroken(): Promise<void>;
  /** Ends the locks at `path` and below, as what was there is gone (RFC 4918 §7.5, §9.6.1). */
  endWithin(path: Path): Promise<void>;
  /** Ends the locks below `path`, as something else took its place: a lock on `path` itself stays (§7.5). */
  endBelow(path: Path): Promise<void>;
}

/**
 * Runs `work`, which makes `changes`, under a request lock: from the check of the locks until `work` has ended, in
 * whatever way, no LOCK of what it changes is granted, even if the request's own lock runs out meanwhile. Running
 * requests do not exclude each other. Answer the request afterwards: a client that has its answer may lock at once.
 *
 * Throws `DavError` 423 unless the request holds, with `tokens`, a lock wherever one protects what it changes. Of
 * shared locks on one resource one is enough (§6.2); a lock counts only for the user who took it (§6.4).
 */
export async function withRequestLock<T>(
  context: Context,
  { tokens }: { readonly tokens: ReadonlySet<string> },
  changes: readonly Change[],
  work: (held: RequestLock) => Promise<T>,
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

/** The address of what is locked; that of a folder ends with a slash (§5.2). */
export async function lockedHref({ drive, signal }: Context, root: Path): Promise<string> {
  const entry = await drive.files.stat(root, signal);
  return hrefOf(root, entry?.kind === 'folder');
}

/** A change of a folder's members is one of the folder itself, but of nothing else below it. */
function claimsOf({ path, tree = false, membership = false }: Change): Claim[] {
  const own: Claim = { root: path, depth: tree ? 'infinity' : '0' };
  return membership && path !== ROOT ? [own, { root: parentOf(path), depth: '0' }] : [own];
}

async function requireTokens(
  context: Context,
  tokens: ReadonlySet<string>,
  { protections }: Claimed,
  { ownerMayOmitToken = false, concerns = () => true }: LockCheckOptions,
): Promise<void> {
  const isHeld = ({ principal, token }: Lock) =>
    principal === context.principal && (ownerMayOmitToken || tokens.has(token));
  for (const { covering, within } of protections) {
    for (const group of [covering, ...byRoot(within)]) {
      const [first] = group.filter(concerns);
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

async function locked(context: Context, { root }: Lock): Promise<DavError> {
  return new DavError(
    423,
    `${root} is locked; send the token of its lock, or try again when the lock has ended`,
    {
      precondition: 'lock-token-submitted',
      hrefs: [await lockedHref(context, root)],
    },
  );
}

function requestLock(
  { drive }: Context,
  claims: readonly Claim[],
  { id, protections }: Claimed,
): RequestLock {
  const within = (path: Path) => {
    const index = claims.findIndex(({ root, depth }) => root === path && depth === 'infinity');
    return protections[index]?.within ?? [];
  };
  const end = async (locks: readonly Lock[]) => {
    await Promise.all(locks.map(({ token }) => drive.state.locks.release(token)));
  };
  return {
    async requireUnbroken() {
      if (!(await drive.state.locks.claimsHold(id)))
        throw new DavError(
          503,
          'the lock state could not be reached while the file came, and somebody may have locked it; send it again',
          { headers: { 'Retry-After': '1' } },
        );
    },
    endWithin: (path) => end(within(path)),
    endBelow: (path) => end(within(path).filter(({ root }) => keyOf(root) !== keyOf(path))),
  };
}
