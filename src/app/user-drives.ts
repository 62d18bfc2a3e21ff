import type { Drive } from '../browser/route.ts';
import type { Grant } from '../config/grant.ts';
import type { Access } from '../http/gateway-server.ts';

/** A drive that is served to users, and whether none of them may change it. */
export type SharedDrive = Omit<Drive, 'isReadOnly'> & { readonly isReadOnly: boolean };

/** A user's name and drive, as the protocols take them. */
interface UserDrive {
  /** `undefined` when the drive is open to all. */
  readonly user: string | undefined;
  readonly drive: Drive;
  readonly csrfToken?: string | undefined;
  readonly isOver?: (() => boolean) | undefined;
}

/**
 * Returns a function that finds the drive of an admitted user; without users, the first one. Users with the same rights get
 * the same object, so that what is kept for one serves all.
 */
export function userDrives(drives: ReadonlyMap<string, SharedDrive>): (access: Access) => UserDrive {
  const [first] = drives.keys();
  const known = new Map<string, Drive>();
  const driveOf = (grant: Grant): Drive => {
    const shared = drives.get(grant.drive);
    if (!shared) throw new Error('a user has no drive, although the configuration was checked for that');
    const isReadOnly = shared.isReadOnly || grant.isReadOnly === true;
    const key = `${grant.drive} ${isReadOnly}`;
    const drive = known.get(key) ?? { ...shared, isReadOnly: isReadOnly ? () => true : undefined };
    known.set(key, drive);
    return drive;
  };
  return ({ user, csrfToken, isOver }) => {
    const [grant = { drive: first ?? '' }] = user?.grants ?? [];
    return { user: user?.name, csrfToken, isOver, drive: driveOf(grant) };
  };
}
