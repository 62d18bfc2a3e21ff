import type { Lock, Locks } from './state/locks.ts';
import type { Clock } from './util/clock.ts';
import type { Path } from './util/path.ts';

/** A lock, and the drive that it is on. */
export interface ListedLock extends Lock {
  readonly drive: string;
}

/** The locks of all drives, for whoever looks after them. */
export interface LockKeeper {
  locks(): Promise<readonly ListedLock[]>;
  /** Ends a lock, whoever took it. The lock that it was; `undefined`: there is none of this token. */
  removeLock(token: string): Promise<ListedLock | undefined>;
}

/** What it takes of a drive. */
export interface LockedDrive {
  readonly locks: Locks;
  /** Commits what waits under a lock for its content, as UNLOCK does; left out where no gateway runs. */
  readonly settle?: (path: Path) => Promise<void>;
}

export function createLockKeeper(drives: ReadonlyMap<string, LockedDrive>, clock: Clock): LockKeeper {
  const locks = async (): Promise<readonly ListedLock[]> => {
    const each = [...drives].map(async ([drive, { locks: kept }]) =>
      (await kept.all(clock.now())).map((lock) => ({ ...lock, drive })),
    );
    return (await Promise.all(each)).flat();
  };
  return {
    locks,
    async removeLock(token) {
      const lock = (await locks()).find((one) => one.token === token);
      const drive = lock && drives.get(lock.drive);
      if (!drive) return undefined;
      await drive.settle?.(lock.root);
      return (await drive.locks.release(token)) ? lock : undefined;
    },
  };
}
