import type { Drive } from '../browser/route.ts';
import type { FolderGrant, Grant } from '../config/grant.ts';
import type { Drive as DavDrive } from '../dav/context.ts';
import { createDriveView } from '../drive/view/drive-view.ts';
import { FolderRules } from '../drive/view/folder-rules.ts';
import { FolderSize } from '../drive/view/folder-size.ts';
import { HistoryFolders } from '../drive/view/history-folders.ts';
import type { Mount, ViewedDrive } from '../drive/view/mounts.ts';
import { Quota } from '../drive/view/quota.ts';
import type { User } from '../http/credentials.ts';
import { type Clock, systemClock } from '../util/clock.ts';
import { createLru } from '../util/lru.ts';
import { keyOf, namesOf, type Path, pathOf, ROOT, relocate } from '../util/path.ts';

/** Maximum number of remembered drives of users: as many as logins are remembered, which cost more to check again. */
const DRIVES_MAX = 1_000;

/** A drive that is served to users. */
export interface SharedDrive extends ViewedDrive, Pick<Drive, 'keptWrites'> {
  /** Whether none of them may change it. */
  readonly isReadOnly: boolean;
  /** Whether deletions can be undone. */
  readonly keepsDeleted: boolean;
}

interface UserMount extends Mount {
  readonly drive: SharedDrive;
  readonly rules: FolderRules | undefined;
}

/** A drive as one of its users sees it, without the folders of its past. */
interface PlainDrive extends Drive {
  /** Releases the drives that it follows; it can still be used. */
  unfollow(): void;
}

/** The drive of a user. */
interface UserDrive extends PlainDrive {
  /** The drive as WebDAV shows it. */
  readonly webdav: DavDrive;
}

interface UserDrivesOptions {
  readonly clock?: Clock;
  /** Whether WebDAV shows folders with former versions and deleted files. */
  readonly hasHistoryFolders?: boolean | undefined;
}

/**
 * Returns a function that finds the drive of a user; without users, the first one. Users with the same rights get the same
 * object, so that they share its cached answers.
 *
 * It remembers the drives that were used last, because an external check of logins may give every user other rights, and new
 * ones every minute. A forgotten drive may still serve a request or a stream of changes. It must neither listen for as long as
 * davgate runs nor trust what it knew, so it asks each time from then on. The listener of a stream is the stream's own.
 */
export function userDrives(
  drives: ReadonlyMap<string, SharedDrive>,
  { clock = systemClock, hasHistoryFolders = false }: UserDrivesOptions = {},
): (user: User | undefined) => UserDrive {
  const [first = ''] = drives.keys();
  const sizes = new FolderSizes(clock);
  const known = createLru<UserDrive>(DRIVES_MAX, (drive) => drive.unfollow());
  const everyones = [{ drive: first }];
  /** The rights of users as text. To write them for each request would cost more than all else here. */
  const keys = new WeakMap<readonly Grant[], string>();
  return (user) => {
    const grants = user?.grants ?? everyones;
    const key = keys.get(grants) ?? JSON.stringify(grants);
    keys.set(grants, key);
    const found = known.get(key);
    if (found) return found;
    const plain = { ...driveOf(grants, drives, sizes), rights: key };
    const drive = hasHistoryFolders ? withHistoryFolders(plain, clock) : { ...plain, webdav: plain };
    known.set(key, drive);
    return drive;
  };
}

/** Returns `drive` with folders of its past. The web application, which has its own views of them, does not see the folders. */
export function withHistoryFolders(drive: PlainDrive, clock: Clock): UserDrive {
  const folders = new HistoryFolders(drive, clock);
  const isReadOnly = (path: Path) => folders.owns(path) || drive.isReadOnly?.(path) === true;
  const { files: present } = drive;
  const historyFolders = {
    owns: (path: Path) => folders.owns(path),
    versionsOf: (path: Path) => folders.versionsOf(path),
    present,
  };
  return {
    ...drive,
    isReadOnly,
    hiddenPaths: folders.paths,
    webdav: { ...drive, files: folders.files, isReadOnly, historyFolders },
    unfollow() {
      folders.unfollow();
      drive.unfollow();
    },
  };
}

/** One drive is at the address itself, several are folders there. */
function driveOf(
  grants: readonly Grant[],
  drives: ReadonlyMap<string, SharedDrive>,
  sizes: FolderSizes,
): Omit<PlainDrive, 'rights'> {
  const mounts = grants.map((grant): UserMount => {
    const { drive: name, folder, isReadOnly = false, quotaBytes } = grant;
    const drive = drives.get(name);
    if (!drive) throw new Error('a user has no drive, although the configuration was checked for that');
    const at = folder === undefined ? ROOT : pathOf([folder]);
    const root = pathOf((grant.root ?? '').split('/').filter(Boolean));
    const quota = quotaBytes === undefined ? undefined : sizes.quota(drive, root, quotaBytes);
    const rules = grant.folders && rulesBelow(root, grant.folders);
    return { drive, at, root, quota, rules, isReadOnly: isReadOnly || drive.isReadOnly };
  });
  const name = grants.map(({ drive }) => drive).join(', ');
  const places = mounts.flatMap(placesOf);
  const whole = mounts.find(({ at, root, rules }) => at === ROOT && root === ROOT && !rules);
  if (!whole) return { name, places, ...createDriveView(mounts) };
  // Without paths to translate, the drive serves as it is, and nothing follows it.
  const isReadOnly = whole.isReadOnly ? () => true : undefined;
  const unfollow = () => {};
  return { name, places, ...whole.drive, ...whole.quota?.limit(whole.drive), isReadOnly, unfollow };
}

/** Returns the rules of `folders`, whose paths begin at `root`. */
function rulesBelow(root: Path, folders: readonly FolderGrant[]): FolderRules {
  const below = (path: string) => pathOf([...namesOf(root), ...path.split('/').filter(Boolean)]);
  return new FolderRules(folders.map(({ path, right }) => ({ path: below(path), right })));
}

/** Returns the folders in which the rights of a user change, as the user sees them. */
function placesOf({ at, root, rules, isReadOnly, drive: { keepsDeleted } }: UserMount) {
  const places = new Map([[at, isReadOnly]]);
  for (const place of rules?.places ?? [])
    places.set(relocate(place.path, root, at), isReadOnly || place.isReadOnly);
  return [...places].map(([path, isOnlyRead]) => ({ path, isReadOnly: isOnlyRead, keepsDeleted }));
}

/**
 * The measured folders. All users of a folder share its size, so that their writes together stay within its quota. There are
 * no more of them than folders, whatever quotas they have had.
 */
class FolderSizes {
  readonly #sizes = new Map<ViewedDrive, Map<string, FolderSize>>();

  constructor(private readonly clock: Clock) {}

  quota(drive: ViewedDrive, folder: Path, bytesMax: number): Quota {
    const { clock } = this;
    const ofDrive = this.#sizes.get(drive) ?? new Map<string, FolderSize>();
    this.#sizes.set(drive, ofDrive);
    const size = ofDrive.get(keyOf(folder)) ?? new FolderSize(drive, folder, clock);
    ofDrive.set(keyOf(folder), size);
    return new Quota(size, bytesMax, clock);
  }
}
