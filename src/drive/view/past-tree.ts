import type { Clock } from '../../util/clock.ts';
import { splitName } from '../../util/file-name.ts';
import {
  foldName,
  isWithin,
  join,
  keyOf,
  nameOf,
  type Path,
  parentOf,
  ROOT,
  relocate,
} from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Entry, FileEntry, FolderEntry, Listing } from '../files.ts';
import type { Deleted, Trash } from '../history.ts';
import type { ViewedDrive } from './mounts.ts';
import { PastCache } from './past-cache.ts';

/** The folder that has the older versions of each file of the drive. */
export const VERSIONS = join(ROOT, '.versions');

/** The folder that has what was deleted from each folder of the drive. */
export const TRASH = join(ROOT, '.trash');

/** Maximum number of files whose versions are remembered. */
const VERSION_LISTS_MAX = 1_000;

/**
 * The folders whose deleted files are remembered. Their time is limited because the service does not tell when it forgets
 * deleted files, nor anything while the change feed is down.
 */
const TRASH_KEPT = { pathsMax: 500, keptMs: 60_000 };

/** Maximum length of an extension that the name of a version keeps, with its dot, in UTF-16 units. */
const EXTENSION_LENGTH_MAX = 20;

/** Something that the folders of former versions and deleted files show. */
export type Past =
  /** Stands for a folder of the drive, or for a file as the folder of its versions. */
  | { readonly kind: 'mirror'; readonly entry: FolderEntry }
  | { readonly kind: 'version'; readonly entry: FileEntry; readonly path: Path; readonly file: FileEntry }
  | {
      readonly kind: 'deleted-file';
      readonly entry: FileEntry;
      readonly path: Path;
      readonly file: FileEntry;
    }
  | { readonly kind: 'deleted-folder'; readonly entry: FolderEntry; readonly path: Path };

/** A folder with what is in it. */
interface PastListing extends Listing {
  readonly pasts: readonly Past[];
}

/**
 * The tree below `/.versions` and `/.trash`. Both mirror the folders of the drive, which it knows without a call. It asks the
 * service for the versions of a file once until the file changes, and for what was deleted from a folder once until something
 * in that folder changes.
 */
export class PastTree {
  readonly #versions: PastCache<PastListing>;
  readonly #trash: PastCache<Trash>;
  /** The same listing is shown as the same object, so that answers made of it last. */
  readonly #mirrors = new WeakMap<Listing, PastListing>();
  readonly #trashListings = new WeakMap<
    Trash,
    { readonly of: Listing | undefined; readonly shown: PastListing }
  >();

  constructor(
    private readonly drive: Pick<ViewedDrive, 'files' | 'history' | 'changes'>,
    clock: Clock,
  ) {
    this.#versions = new PastCache(drive.changes, clock, { pathsMax: VERSION_LISTS_MAX });
    this.#trash = new PastCache(drive.changes, clock, TRASH_KEPT);
  }

  /** Follows the drive no longer. From then on nothing is remembered. */
  unfollow(): void {
    this.#versions.unfollow();
    this.#trash.unfollow();
  }

  /** Whether `path` is one of the two folders or lies in one. */
  owns(path: Path): boolean {
    // Asked about every path, and most begin otherwise.
    return path.startsWith('/.') && (isWithin(path, VERSIONS) || isWithin(path, TRASH));
  }

  /** Returns what is at `path`, which is in this tree. */
  async find(path: Path, signal?: AbortSignal): Promise<Past | undefined> {
    const isVersion = isWithin(path, VERSIONS);
    const top = isVersion ? VERSIONS : TRASH;
    const original = relocate(path, top, ROOT);
    const folder = parentOf(original);
    const named = (past: Past) => foldName(past.entry.name) === foldName(nameOf(path));
    // Before the version itself, which the drive does not know.
    const versions = isVersion ? await this.#versionsIn(folder, signal) : undefined;
    if (versions) return versions.pasts.find(named);
    const entry = await this.drive.files.stat(original, signal);
    if (entry && (isVersion || entry.kind === 'folder')) return mirrorOf(entry, top);
    return entry || isVersion ? undefined : (await this.#deletedFrom(folder, signal))?.find(named);
  }

  /** Lists a folder of this tree. Throws `not-found`, `not-a-folder`. */
  async list(path: Path, signal?: AbortSignal): Promise<Listing> {
    const past = await this.find(path, signal);
    if (!past) throw new FileError('not-found', `${path} does not exist`);
    if (past.entry.kind === 'file') throw new FileError('not-a-folder', `${path} is a file`);
    const isVersion = isWithin(path, VERSIONS);
    const original = relocate(past.entry.path, isVersion ? VERSIONS : TRASH, ROOT);
    if (!isVersion) return this.#deletedIn(past.entry, original, signal);
    return (await this.#versionsIn(original, signal)) ?? this.#mirror(original, signal);
  }

  /** Returns the listing of a folder of the drive as folders. */
  async #mirror(original: Path, signal: AbortSignal | undefined): Promise<Listing> {
    const listing = await this.drive.files.list(original, signal);
    const known = this.#mirrors.get(listing);
    if (known) return known;
    const pasts = listing.children.map((child) => mirrorOf(child, VERSIONS));
    const shown = listingOf(mirrorOf(listing.folder, VERSIONS).entry, pasts);
    this.#mirrors.set(listing, shown);
    return shown;
  }

  /** Returns the older versions of the file at `original`; `undefined` if there is no file. */
  async #versionsIn(original: Path, signal: AbortSignal | undefined): Promise<PastListing | undefined> {
    const file = await this.drive.files.stat(original, signal);
    if (file?.kind !== 'file') return undefined;
    return this.#versions.of(file.path, (stop) => this.#loadVersions(file, stop), signal, file.rev);
  }

  async #loadVersions(file: FileEntry, signal: AbortSignal): Promise<PastListing> {
    const { entry: folder } = mirrorOf(file, VERSIONS);
    try {
      const { files, currentRev } = await this.drive.history.versions(file.path, signal);
      const older = files.filter(({ rev }) => rev !== currentRev);
      return listingOf(
        folder,
        older.map((version) => versionIn(folder, file, version)),
      );
    } catch (error) {
      // A file that only this machine has.
      if (error instanceof FileError && error.fault === 'unsupported') return listingOf(folder, []);
      throw error;
    }
  }

  /** Returns what was deleted from a folder, which may be deleted too; `undefined` where none was. */
  async #deletedFrom(folder: Path, signal: AbortSignal | undefined): Promise<readonly Past[] | undefined> {
    try {
      return (await this.#trashOf(folder, signal)).items.map((item) => deletedOf(item));
    } catch (error) {
      if (error instanceof FileError && (error.fault === 'not-found' || error.fault === 'not-a-folder'))
        return undefined;
      throw error;
    }
  }

  /** Throws `not-found`, `not-a-folder`. */
  #trashOf(folder: Path, signal: AbortSignal | undefined): Promise<Trash> {
    return this.#trash.of(folder, (stop) => this.drive.history.trash(folder, stop), signal);
  }

  /** Lists what was deleted from a folder, and the folders that are still in it. */
  async #deletedIn(folder: FolderEntry, original: Path, signal: AbortSignal | undefined): Promise<Listing> {
    const isThere = (await this.drive.files.stat(original, signal)) !== undefined;
    const [listing, deleted] = await Promise.all([
      isThere ? this.drive.files.list(original, signal) : undefined,
      this.#trashOf(original, signal),
    ]);
    const known = this.#trashListings.get(deleted);
    if (known && known.of === listing) return known.shown;
    const folders = listing?.children.filter(({ kind }) => kind === 'folder') ?? [];
    const mirrors = folders.map((child) => mirrorOf(child, TRASH));
    const shown = listingOf(folder, [...mirrors, ...deleted.items.map((item) => deletedOf(item))]);
    this.#trashListings.set(deleted, { of: listing, shown });
    return shown;
  }
}

function listingOf(folder: FolderEntry, pasts: readonly Past[]): PastListing {
  return { folder, children: pasts.map(({ entry }) => entry), pasts };
}

/** Returns the folder that stands for `entry` below `top`. */
function mirrorOf(entry: Entry, top: Path): Past & { readonly kind: 'mirror' } {
  return { kind: 'mirror', entry: folderAt(relocate(entry.path, ROOT, top), entry.modifiedMs) };
}

/** Its id is no other's, so that it has no properties. */
export function folderAt(path: Path, modifiedMs?: number): FolderEntry {
  return {
    kind: 'folder',
    id: `past ${keyOf(path)}`,
    path,
    name: nameOf(path),
    ...(modifiedMs !== undefined && { modifiedMs }),
  };
}

/** Returns a version of `current`, with a name that sorts by time and has the extension of the file. */
function versionIn(folder: FolderEntry, current: FileEntry, file: FileEntry): Past {
  const time = new Date(file.committedMs).toISOString().slice(0, 19).replaceAll(':', '-');
  const { extension } = splitName(current.name, EXTENSION_LENGTH_MAX);
  const name = `${time}Z-${file.rev}${extension}`;
  const entry = { ...file, id: `version ${file.rev}`, path: join(folder.path, name), name };
  return { kind: 'version', entry, path: current.path, file };
}

function deletedOf({ path, file, deletedMs }: Deleted): Past {
  const shownPath = relocate(path, ROOT, TRASH);
  if (!file) return { kind: 'deleted-folder', entry: folderAt(shownPath), path };
  const entry = {
    ...file,
    id: `deleted ${file.rev}`,
    path: shownPath,
    name: nameOf(shownPath),
    ...(deletedMs !== undefined && { deletedMs }),
  };
  return { kind: 'deleted-file', entry, path, file };
}
