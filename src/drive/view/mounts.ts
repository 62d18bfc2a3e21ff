import type { RequestState } from '../../state/state.ts';
import { foldName, isWithin, nameOf, namesOf, type Path, pathOf, ROOT, relocate } from '../../util/path.ts';
import type { Changes } from '../changes.ts';
import { FileError } from '../errors.ts';
import type {
  ChangeLog,
  Entry,
  FileEntry,
  Files,
  FolderEntry,
  Listing,
  NameSearch,
  Thumbnails,
} from '../files.ts';
import type { History } from '../history.ts';
import { withShownErrors } from './shown-errors.ts';

/** A drive as the protocols use it. */
export interface ViewedDrive {
  readonly files: Files & NameSearch & Thumbnails;
  readonly history: History;
  readonly changes: Changes;
  /** `undefined`: the drive cannot tell what has changed since an earlier moment. */
  readonly changeLog?: ChangeLog | undefined;
  readonly state: RequestState;
  /** Resolves when reads show what other gateways have acknowledged until now; `undefined` without others. */
  readonly catchUp: (() => Promise<void>) | undefined;
}

/** Returns a drive that refuses some changes of another. */
export interface DriveLimit {
  limit(drive: ViewedDrive): ViewedDrive;
}

/** Limits a user by path. */
export interface DriveRules extends DriveLimit {
  /** Whether the user may not change what is at `path`. */
  isReadOnly(path: Path): boolean;
}

/** A folder of a drive, and where a user sees it. */
export interface Mount {
  /** `/` if the user sees nothing else, otherwise a folder at the top. */
  readonly at: Path;
  readonly drive: ViewedDrive;
  readonly root: Path;
  readonly isReadOnly: boolean;
  /** Rights of the user in single folders of the drive. */
  readonly rules?: DriveRules | undefined;
  /** Keeps `root` from growing too large. */
  readonly quota?: DriveLimit | undefined;
}

/** A path that a user sees, as its drive knows it. */
export interface Place {
  readonly mount: MountedRoot;
  readonly path: Path;
}

/** One mount, and the entries of it that were shown. */
export class MountedRoot {
  readonly drive: ViewedDrive;
  /** The files and the history of the drive; their errors name the user's paths. */
  readonly files: ViewedDrive['files'];
  readonly history: History;
  readonly at: Path;
  readonly isReadOnly: boolean;
  readonly #root: Path;
  readonly #rules: DriveRules | undefined;
  /** The files of the drive without the user's limits. */
  readonly #unlimited: ViewedDrive['files'];
  /** Entries and listings are immutable values: the same one is shown as the same, so that answers made of it last. */
  readonly #shown = new WeakMap<Entry, Entry>();
  readonly #originals = new WeakMap<FileEntry, FileEntry>();
  readonly #listings = new WeakMap<Listing, Listing>();
  #isReady: boolean;
  /** Present while changes at the root, and above it, end `#isReady`. */
  #unfollow: (() => void) | undefined;
  /** Number of these changes. */
  #changes = 0;

  constructor({ drive, at, root, isReadOnly, rules, quota }: Mount) {
    this.drive = rules?.limit(drive) ?? drive;
    this.at = at;
    this.isReadOnly = isReadOnly;
    this.#root = root;
    this.#rules = rules;
    this.#unlimited = drive.files;
    const { files, history } = quota?.limit(this.drive) ?? this.drive;
    this.files = withShownErrors(files, { root, at });
    this.history = withShownErrors(history, { root, at });
    this.#isReady = root === ROOT || isReadOnly;
    if (this.#isReady) return;
    // Another user may move or remove the root, or a folder above it.
    this.#unfollow = drive.changes.follow((change) => {
      if (change.kind !== 'entry' || !isWithin(root, change.path)) return;
      this.#changes += 1;
      this.#isReady = false;
    });
  }

  /** Whether there are folders that the user may not change. */
  get hasReadOnly(): boolean {
    return this.isReadOnly || this.#rules !== undefined;
  }

  /** Returns whether the user may not change what is at a path of the drive. */
  isReadOnlyAt(path: Path): boolean {
    return this.isReadOnly || this.#rules?.isReadOnly(path) === true;
  }

  /** Returns the drive's path of one that the user sees. */
  inner(path: Path): Path {
    return relocate(path, this.at, this.#root);
  }

  /** Returns the path that the user sees; `undefined` outside the root. */
  outer(path: Path): Path | undefined {
    return isWithin(path, this.#root) ? relocate(path, this.#root, this.at) : undefined;
  }

  /** Returns the entry that the user sees. */
  shown<Kind extends Entry>(entry: Kind): Kind {
    const known = this.#shown.get(entry);
    if (known) return known as Kind; // made from an entry of this kind, below
    const path = this.outer(entry.path);
    if (path === undefined) throw new Error('an entry outside the root of a mount was asked for');
    const shown: Kind = { ...entry, id: this.idOf(entry.id), path, name: nameOf(path) };
    this.#shown.set(entry, shown);
    if (entry.kind === 'file' && shown.kind === 'file') this.#originals.set(shown, entry);
    return shown;
  }

  /** Returns a file as the user sees it at `path`, wherever it was before. */
  shownAt(file: FileEntry, path: Path): FileEntry {
    const shown = { ...file, id: this.idOf(file.id), path, name: nameOf(path) };
    this.#originals.set(shown, file);
    return shown;
  }

  /** Returns the drive's own entry of a file that the user sees. */
  original(file: FileEntry): FileEntry | undefined {
    return this.#originals.get(file);
  }

  listing(listing: Listing): Listing {
    const known = this.#listings.get(listing);
    if (known) return known;
    const children = listing.children.map((child) => this.shown(child));
    const shown = { folder: this.shown(listing.folder), children };
    this.#listings.set(listing, shown);
    return shown;
  }

  /** Returns the id that the user sees: entries of two drives may have the same one, as their roots do. */
  idOf(id: string): string {
    return this.at === ROOT ? id : `${this.#idStart}${id}`;
  }

  /** Returns the drive's own id; `undefined` for one of another mount. */
  originalId(id: string): string | undefined {
    if (this.at === ROOT) return id;
    return id.startsWith(this.#idStart) ? id.slice(this.#idStart.length) : undefined;
  }

  get #idStart(): string {
    return `${foldName(this.at)}:`;
  }

  /** Whether the root folder needs no `ready` any more. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Follows the drive no longer. From then on each use asks whether the root folder is there. */
  unfollow(): void {
    if (!this.#unfollow) return;
    this.#unfollow();
    this.#unfollow = undefined;
    this.#isReady = false;
  }

  /** Makes the root folder if it is not there, or not any more. A failure is left to the request, which meets it too. */
  async ready(): Promise<void> {
    if (this.#isReady) return;
    const changes = this.#changes;
    try {
      const names = namesOf(this.#root);
      for (let depth = 1; depth <= names.length; depth++)
        await this.#makeFolder(pathOf(names.slice(0, depth)));
      this.#isReady = this.#unfollow !== undefined && changes === this.#changes;
    } catch (error) {
      if (!(error instanceof FileError)) throw error;
    }
  }

  async #makeFolder(path: Path): Promise<void> {
    const files = this.#unlimited;
    if (await files.stat(path)) return;
    try {
      await files.createFolder(path);
    } catch (error) {
      // Another request was faster.
      if (!(error instanceof FileError) || error.fault !== 'exists') throw error;
    }
  }
}

/** All mounts of a user. */
export class Mounts {
  readonly all: readonly MountedRoot[];
  readonly #byName = new Map<string, MountedRoot>();

  constructor(mounts: readonly Mount[]) {
    this.all = mounts.map((mount) => new MountedRoot(mount));
    for (const mount of this.all) this.#byName.set(foldName(mount.at), mount);
  }

  /** Returns the drive and its path; `undefined` where no drive is. */
  find(path: Path): Place | undefined {
    const top = this.#byName.has(ROOT) ? ROOT : `/${foldName(namesOf(path)[0] ?? '')}`;
    const mount = this.#byName.get(top);
    return mount && { mount, path: mount.inner(path) };
  }

  /** Like `find`, for work that needs a drive. Throws `FileError`. */
  place(path: Path): Place {
    const place = this.find(path);
    if (place) return place;
    if (namesOf(path).length > 1) throw new FileError('not-found', `${path} does not exist`);
    throw new FileError('forbidden', `${path} is beside the drives; use a path within ${this.#tops()}`);
  }

  /** Like `place`, for work that would remove or replace the folder of a drive itself. Throws `FileError`. */
  placeBelow(path: Path): Place {
    const place = this.place(path);
    if (!isTop(place)) return place;
    throw new FileError('forbidden', `${path} is a drive; it cannot be moved, replaced or deleted`);
  }

  /** Like `place`, for a file that is written: the folder of a drive is none, even while it is missing. */
  placeOfFile(path: Path): Place {
    const place = this.place(path);
    if (!isTop(place)) return place;
    throw new FileError('is-a-folder', `${path} is a folder`);
  }

  #tops(): string {
    return this.all.map(({ at }) => at).join(' or ');
  }

  /** The folder above all drives. */
  readonly top: FolderEntry = { kind: 'folder', id: 'drives', path: ROOT, name: '' };

  /** Returns the drive's own entry of a file that was shown. */
  original(file: FileEntry): { readonly mount: MountedRoot; readonly file: FileEntry } {
    for (const mount of this.all) {
      const original = mount.original(file);
      if (original) return { mount, file: original };
    }
    throw new Error('a file is read that no drive has shown');
  }
}

/** Returns whether a path is that of a drive itself. */
function isTop({ mount, path }: Place): boolean {
  return mount.outer(path) === mount.at;
}
