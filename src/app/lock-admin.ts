import type { Lock, Locks } from '../state/locks.ts';
import type { Clock } from '../util/clock.ts';
import { isWithin, type Path, pathOf } from '../util/path.ts';

/** A lock, and the drive that it is on. */
export interface ListedLock extends Lock {
  readonly drive: string;
}

/** Which locks to end: those that fit all that is given. Nothing given fits none. */
export interface LockChoice {
  readonly token?: string;
  /** Who took them. */
  readonly user?: string;
  /** Where they are: at this path and below. */
  readonly path?: string;
}

/** The locks of all drives, for the people who look after them. */
export interface LockAdmin {
  locks(): Promise<readonly ListedLock[]>;
  /** Ends locks of any user, and returns them. Throws `PathError` for a path that cannot be one. */
  removeLocks(choice: LockChoice): Promise<readonly ListedLock[]>;
}

/** What it takes of a drive. */
export interface LockedDrive {
  readonly locks: Locks;
  /** Commits what waits under a lock for its content, as UNLOCK does; left out where no gateway runs. */
  readonly commitPlaceholder?: (path: Path) => Promise<void>;
}

export function createLockAdmin(drives: ReadonlyMap<string, LockedDrive>, clock: Clock): LockAdmin {
  const locks = async (): Promise<readonly ListedLock[]> => {
    const each = [...drives].map(async ([drive, { locks: kept }]) =>
      (await kept.all(clock.now())).map((lock) => ({ ...lock, drive })),
    );
    return (await Promise.all(each)).flat();
  };
  const remove = async (lock: ListedLock): Promise<boolean> => {
    const drive = drives.get(lock.drive);
    if (!drive) return false;
    await drive.commitPlaceholder?.(lock.root);
    return drive.locks.release(lock.token);
  };
  return {
    locks,
    async removeLocks(choice) {
      const isChosen = fits(choice);
      const removed: ListedLock[] = [];
      for (const lock of await locks()) if (isChosen(lock) && (await remove(lock))) removed.push(lock);
      return removed;
    },
  };
}

function fits({ token, user, path }: LockChoice): (lock: Lock) => boolean {
  if (token === undefined && user === undefined && path === undefined) return () => false;
  const above = path === undefined ? undefined : pathOf(path.split('/').filter((name) => name !== ''));
  return (lock) =>
    (token === undefined || lock.token === token) &&
    (user === undefined || lock.principal === user) &&
    (above === undefined || isWithin(lock.root, above));
}
