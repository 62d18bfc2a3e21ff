import type { Lock } from '../../state/locks.ts';
import { keyOf, type Path, parentOf, ROOT } from '../../util/path.ts';
import { DavError } from '../errors.ts';
import { hrefOf } from '../href.ts';
import type { Context } from '../method.ts';

/** What a method is about to change. */
export interface Change {
  readonly path: Path;
  /** With all below it. */
  readonly tree?: boolean;
  /** It will be added to its folder or taken out of it, which a lock on that folder forbids too (RFC 4918 §7.4). */
  readonly membership?: boolean;
}

export interface LockCheckOptions {
  /**
   * Whoever took a lock need not name it: Office sends its PROPPATCH without the token of its own lock,
   * and takes a refusal for a failed save.
   */
  readonly ownerMayOmitToken?: boolean;
}

/**
 * Throws `DavError` 423 unless the request holds, with `tokens`, a lock wherever one protects what it is about
 * to change. Of shared locks on one resource one is enough (§6.2); a lock counts only for who took it (§6.4).
 */
export async function requireLocks(
  context: Context,
  tokens: ReadonlySet<string>,
  changes: readonly Change[],
  options: LockCheckOptions = {},
): Promise<void> {
  const { locks } = context.drive.state;
  const nowMs = context.clock.now();
  const isHeld = ({ principal, token }: Lock) =>
    principal === context.principal && (options.ownerMayOmitToken === true || tokens.has(token));
  const require = async (protecting: readonly Lock[]) => {
    const [first] = protecting;
    if (first && !protecting.some(isHeld)) throw await locked(context, first);
  };
  for (const { path, tree, membership } of changes) {
    await require(await locks.covering(nowMs, path));
    if (membership && path !== ROOT) await require(await locks.covering(nowMs, parentOf(path)));
    if (tree) for (const group of byRoot(await locks.within(nowMs, path))) await require(group);
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

/** The address of what is locked; that of a folder ends with a slash (§5.2). */
export async function lockedHref({ drive, signal }: Context, { root }: Lock): Promise<string> {
  const entry = await drive.files.stat(root, signal);
  return hrefOf(root, entry?.kind === 'folder');
}

async function locked(context: Context, lock: Lock): Promise<DavError> {
  return new DavError(
    423,
    `${lock.root} is locked; whoever locked it can change it, and so can all when it is released`,
    {
      precondition: 'lock-token-submitted',
      hrefs: [await lockedHref(context, lock)],
    },
  );
}
