import type { Clock } from '../../util/clock.ts';
import { overlaid } from '../../util/overlaid.ts';
import { join, keyOf, nameOf, type Path, ROOT, relocate } from '../../util/path.ts';
import { FileError } from '../errors.ts';
import type { Entry, FileEntry, Files, Listing, RelocateOptions, WriteMode, Written } from '../files.ts';
import type { ViewedDrive } from './mounts.ts';
import { folderAt, type Past, PastTree, TRASH, VERSIONS } from './past-tree.ts';

/** The two folders, as the root of the drive lists them. */
const FOLDERS = [folderAt(TRASH), folderAt(VERSIONS)];

type CopyOptions = Parameters<Files['copy']>[2];

/**
 * The folders `/.versions` and `/.trash` in front of a drive. They are read-only: callers ask `owns` before a
 * change. A copy out of them restores.
 */
export class HistoryFolders {
  /** The files of the drive, with the two folders in its root. Searches and walks of the whole drive leave them out. */
  readonly files: Files;
  /** The paths of the two folders. */
  readonly paths: readonly Path[] = FOLDERS.map(({ path }) => path);
  readonly #past: PastTree;
  /** The file of the drive for each file that was shown. */
  readonly #originals = new WeakMap<FileEntry, FileEntry>();
  readonly #roots = new WeakMap<Listing, Listing>();

  constructor(
    private readonly drive: Pick<ViewedDrive, 'files' | 'history' | 'changes'>,
    clock: Clock,
  ) {
    this.#past = new PastTree(drive, clock);
    this.files = overlaid<Files>(drive.files, this.#reading(drive.files));
  }

  /** Follows the drive no longer. From then on nothing is remembered. */
  unfollow(): void {
    this.#past.unfollow();
  }

  /** Whether `path` is one of the two folders or lies in one. */
  owns(path: Path): boolean {
    return this.#past.owns(path);
  }

  /** Returns the path of the folder that has the older versions of the file at `path`. */
  versionsOf(path: Path): Path {
    return relocate(path, ROOT, VERSIONS);
  }

  #reading(files: Files): Partial<Files> {
    const find = async (path: Path, signal?: AbortSignal): Promise<Entry | undefined> =>
      (await this.#find(path, signal))?.entry;
    return {
      known: (path) => (this.owns(path) ? undefined : files.known(path)),
      stat: (path, signal) => (this.owns(path) ? find(path, signal) : files.stat(path, signal)),
      list: (folder, ...how) => this.#list(folder, ...how),
      inMemory: (file) => (this.#originals.has(file) ? undefined : files.inMemory(file)),
      read: (file, range, signal) => {
        const original = this.#originals.get(file);
        return original ? this.drive.history.read(original, range, signal) : files.read(file, range, signal);
      },
      copy: (from, to, options) =>
        this.owns(from) ? this.#restore(from, to, options) : files.copy(from, to, options),
      // The service knows no link, and no limit of space, of a path that it does not have.
      sharedLink: async (path, signal) => (this.owns(path) ? undefined : files.sharedLink(path, signal)),
      freeSpace: (signal, path = ROOT) => files.freeSpace(signal, this.owns(path) ? ROOT : path),
    };
  }

  async #find(path: Path, signal?: AbortSignal): Promise<Past | undefined> {
    const past = await this.#past.find(path, signal);
    if (past && 'file' in past) this.#originals.set(past.entry, past.file);
    return past;
  }

  async #list(folder: Path, ...how: [AbortSignal?, ((path: Path) => boolean)?]): Promise<Listing> {
    if (this.owns(folder)) return this.#past.list(folder, how[0]);
    const listing = await this.drive.files.list(folder, ...how);
    if (folder !== ROOT) return listing;
    const known = this.#roots.get(listing);
    if (known) return known;
    const others = listing.children.filter(({ path }) => !this.owns(path));
    const shown = { ...listing, children: [...FOLDERS, ...others] };
    this.#roots.set(listing, shown);
    return shown;
  }

  /** Copies a version or something deleted. In its old place that costs no transfer. */
  async #restore(from: Path, to: Path, options: CopyOptions): Promise<Written> {
    const { files, history } = this.drive;
    const past = await this.#find(from);
    if (!past) throw new FileError('not-found', `${from} does not exist`);
    if (past.kind === 'mirror')
      throw new FileError('forbidden', `${from} cannot be copied; copy a file or deleted folder in it`);
    if (past.entry.kind === 'file' && options.rev !== undefined && options.rev !== past.entry.rev)
      throw new FileError('changed', `${from} has another revision`);
    const target = await files.stat(to);
    checkTarget(to, target, past, options);
    const isHome = keyOf(past.path) === keyOf(to);
    if (past.kind === 'version' && isHome && target && options.targetRev === undefined)
      return { entry: await history.restore(past.path, past.file.rev), created: false };
    if (past.kind !== 'version' && isHome && !target && !options.shallow) {
      await history.undelete(past.path);
      const entry = await files.stat(to);
      if (entry) return { entry, created: true };
    }
    if ('file' in past) return this.#write(past.file, to, modeFor(options));
    return { entry: await this.#copyFolder(from, to, options.shallow), created: true };
  }

  #write(file: FileEntry, to: Path, mode: WriteMode): Promise<Written> {
    const { sizeBytes, modifiedMs } = file;
    // Like every other copy it goes on when the client has gone.
    const body = this.drive.history.read(file, undefined, new AbortController().signal);
    return this.drive.files.write(to, body, { mode, sizeBytes, modifiedMs });
  }

  /** Copies a deleted folder. After a failure the part that was copied stays. */
  async #copyFolder(from: Path, to: Path, isShallow: boolean): Promise<Entry> {
    const folder = await this.drive.files.createFolder(to);
    if (isShallow) return folder;
    for (const { path } of (await this.#past.list(from)).children) {
      const past = await this.#find(path);
      const target = join(folder.path, nameOf(path));
      if (past?.kind === 'deleted-file') await this.#write(past.file, target, { if: 'absent' });
      else if (past?.kind === 'deleted-folder') await this.#copyFolder(path, target, false);
    }
    return folder;
  }
}

/** Throws `exists`, `forbidden`. */
function checkTarget(to: Path, target: Entry | undefined, past: Past, { overwrite }: RelocateOptions): void {
  if (!target) return;
  if (!overwrite) throw new FileError('exists', `${to} exists already`);
  if (target.kind === 'folder' || past.entry.kind === 'folder')
    throw new FileError('forbidden', `${to} exists already; rename or delete it first`);
}

function modeFor({ overwrite, targetRev }: RelocateOptions): WriteMode {
  if (targetRev !== undefined) return { if: 'rev', rev: targetRev };
  return overwrite ? { if: 'any' } : { if: 'absent' };
}
