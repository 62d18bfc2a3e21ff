import type { Lock, Locks } from '../state/locks.ts';
import type { Clock } from '../util/clock.ts';
import { isWithin, type Path, pathOf } from '../util/path.ts';

/** A lock, and the drive that it is on. */
export interface ListedLock extends Lock {
  readonly drive: string;
}

/** Selects the locks that match all given fields; none without any field. */
export interface LockChoice {
  readonly token?: string;
  /** Name of the user who took them. */
  readonly user?: string;
  /** Path that they are on or below. */
  readonly path?: string;
}

/** Lists and removes the locks of all drives, for `davgate locks`. */
export interface LockAdmin {
  locks(): Promise<readonly ListedLock[]>;
  /** Removes locks of any user, and returns them. Throws `PathError` for an invalid path. */
  removeLocks(choice: LockChoice): Promise<readonly ListedLock[]>;
}

/** The part of a drive that `createLockAdmin` uses. */
export interface LockedDrive {
  readonly locks: Locks;
  /** Commits the placeholder under a lock, as UNLOCK does. Absent without a running gateway. */
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
