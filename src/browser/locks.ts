import type { Lock } from '../state/locks.ts';
import { keyOf, parentOf } from '../util/path.ts';
import { answerJson, type Route } from './route.ts';

/** Maximum number of locks in one answer. */
const LISTED_MAX = 1_000;

/**
 * `locks`: the locks on the folder at `path`, on its entries, and on the folders above it. The user who took a lock also
 * gets its token, for UNLOCK.
 */
export const locks: Route = {
  method: 'GET',
  async run({ exchange, drive, input, user, clock }) {
    const path = input.path('path');
    const { locks } = drive.state;
    const [above, below] = [await locks.covering(clock.now(), path), await locks.within(clock.now(), path)];
    const direct = below.filter(({ root }) => keyOf(parentOf(root)) === keyOf(path));
    const all = new Map([...above, ...direct].map((lock) => [lock.token, lock]));
    const listed = [...all.values()].slice(0, LISTED_MAX).map((lock) => described(lock, user ?? ''));
    await answerJson(exchange, { locks: listed });
  },
};

function described(lock: Lock, user: string): object {
  const { token, root, scope, depth, ownerXml, principal, expiresMs } = lock;
  const isOwn = principal === user;
  return { path: root, scope, depth, ownerXml, user: principal, expiresMs, ...(isOwn && { token }) };
}
