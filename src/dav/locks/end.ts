import type { Lock } from '../../state/locks.ts';
import { keyOf, type Path } from '../../util/path.ts';
import type { Context } from '../method.ts';

/**
 * The locks that end with what is at `path` and below (RFC 4918 §7.5, §9.6.1). To be asked for before that goes: a
 * lock that comes while it goes is on what comes next.
 */
export function locksWithin({ drive, clock }: Context, path: Path): Promise<readonly Lock[]> {
  return drive.state.locks.within(clock.now(), path);
}

/** Those that end with what is below `path` when something else takes its place: the lock on `path` stays (§7.5). */
export async function locksBelow(context: Context, path: Path): Promise<readonly Lock[]> {
  const within = await locksWithin(context, path);
  return within.filter(({ root }) => keyOf(root) !== keyOf(path));
}

export async function endLocks({ drive }: Context, locks: readonly Lock[]): Promise<void> {
  await Promise.all(locks.map(({ token }) => drive.state.locks.release(token)));
}
