import type {
  Entry,
  FileEntry,
  FolderEntry,
  LinkChange,
  LinkedEntry,
  LinkSettings,
  SearchPage,
  SharedLink,
  WriteMode,
} from '../api/remote.ts';
import type { Path } from '../util/path.ts';
import type { ByteRange } from '../util/ranges.ts';

export type {
  Entry,
  FileEntry,
  FolderEntry,
  LinkChange,
  LinkedEntry,
  LinkSettings,
  SearchPage,
  SharedLink,
  WriteMode,
} from '../api/remote.ts';

/** A folder and its children at one moment. A change makes a new object, so the same object means "unchanged". */
export interface Listing {
  readonly folder: FolderEntry;
  readonly children: readonly Entry[];
}

export interface Written {
  readonly entry: Entry;
  /** Whether the write created the file. */
  readonly created: boolean;
}

export interface RemoveOptions {
  readonly recoverable: boolean;
  readonly rev?: string;
}

export interface RelocateOptions {
  readonly overwrite: boolean;
  /** The revision that the file to be moved or copied must have. */
  readonly rev?: string;
  /** The revision that the file to be replaced must have. */
  readonly targetRev?: string;
}

export interface WriteOptions {
  readonly mode: WriteMode;
  /** The announced length of the body, in bytes. A body of another length is not committed. */
  readonly sizeBytes?: number;
  /** Modification time, in ms since 1970. */
  readonly modifiedMs?: number;
}

export interface FreeSpace {
  readonly usedBytes: number;
  readonly availableBytes: number;
}

/**
 * One drive as the protocol layer sees it. Every failure is a `FileError`; a missing entry is `undefined`. Every call
 * sees the effects of all acknowledged calls. All methods may be called in parallel.
 */
export interface Files {
  /**
   * Returns the entry at `path` if it is in memory and certain; otherwise `undefined`, and `stat` finds the entry or its
   * absence. Saves most requests a wait.
   */
  known(path: Path): Entry | undefined;
  /** Returns the entry at `path`, without a call while the change feed is alive and the parent is cached. */
  stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined>;
  /**
   * Like `stat`, before a write. While the service is unavailable, the last known state decides, also the last known
   * absence. `isPinned`: the write depends on the current revision, so the service is asked even about a cached entry,
   * if it answers soon.
   */
  statForWrite(
    path: Path,
    options: { readonly isPinned: boolean },
    signal?: AbortSignal,
  ): Promise<Entry | undefined>;
  /**
   * Lists a folder. Throws `not-found` or `not-a-folder`. `isCovered`: whether the caller has its own entry for a path;
   * such a path may be missing while the service is unavailable.
   */
  list(folder: Path, signal?: AbortSignal, isCovered?: (path: Path) => boolean): Promise<Listing>;
  /** Lists every folder at and below `folder`, parents first; for depth infinity. */
  walk(folder: Path, signal?: AbortSignal, isCovered?: (path: Path) => boolean): AsyncIterable<Listing>;
  /** Returns all bytes of exactly this revision, checked, if they are in memory; most often `undefined`. */
  inMemory(file: FileEntry): Uint8Array | undefined;
  /**
   * Reads bytes of exactly this revision; without `range`, all of them. A piece is valid until the next one is asked
   * for. The bytes end early only by throwing, and a whole read ends only with the right content hash. Ending the
   * iteration ends the download.
   */
  read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * Reads all of `body` and resolves when it is stored as the drive's write mode promises. When `body` throws or has
   * another length than announced, nothing is written and the old content stays. Throws `changed` when the condition in
   * `mode` is false, `is-a-folder`, `parent-missing`, `bad-name`, `no-space`.
   */
  write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Written>;
  /**
   * Keeps an empty file at `path` as a placeholder for `waitMs` from now, or creates one if the path is free: the first
   * half of a create, whose body follows. A committed file stays unchanged.
   */
  keepPlaceholder(path: Path, waitMs: number): Promise<Written>;
  /** Commits the placeholder at `path`, if there is one. */
  commitPlaceholder(path: Path): Promise<void>;
  /** Creates a folder. Throws `exists` or `parent-missing`. */
  createFolder(path: Path): Promise<FolderEntry>;
  /**
   * Removes a file, or a folder with everything below it. `recoverable` requires a deletion that can be undone. With
   * `rev`, removes only this revision of a file. Throws `not-found`, and `changed` for another revision.
   */
  remove(path: Path, options: RemoveOptions): Promise<void>;
  /**
   * Copies a file, or a folder: with everything below it, or without when `shallow`. Throws `exists` when the target
   * exists and `overwrite` is off, `parent-missing`, `into-itself`, `not-found`, and `changed` for another revision
   * than `options` names. After a failure the old target still exists.
   */
  copy(from: Path, to: Path, options: RelocateOptions & { readonly shallow: boolean }): Promise<Written>;
  /**
   * Moves a file or a folder with everything below it. Throws like `copy`. `from` and `to` may differ only in letter
   * case.
   */
  move(from: Path, to: Path, options: RelocateOptions): Promise<Written>;
  /** Sets the modification time at `path`, until the content changes. */
  setModified(path: Path, modifiedMs: number): Promise<Entry>;
  /**
   * Returns the free space at `path`; `undefined` when the service names no limit or is unavailable. One drive has the same
   * everywhere.
   */
  freeSpace(signal?: AbortSignal, path?: Path): Promise<FreeSpace | undefined>;
  sharedLink(path: Path, signal?: AbortSignal): Promise<SharedLink | undefined>;
  /** Creates a shared link in place of an existing one. Throws `unsupported` with the service's reason. */
  shareLink(path: Path, settings: LinkSettings): Promise<SharedLink>;
  /** Revokes the link, if there is one. */
  unshareLink(path: Path): Promise<void>;
  /**
   * Returns the links of exactly `path`, or without a path those of all entries of the drive, in whose paths the names of
   * folders may be in another letter case. Throws `not-found`.
   */
  sharedLinks(path: Path | undefined, signal?: AbortSignal): Promise<readonly LinkedEntry[]>;
  /** Creates a shared link. Throws `exists` when there is one, `unsupported` with the service's reason. */
  createLink(path: Path, settings: LinkSettings): Promise<SharedLink>;
  /** Changes a link of exactly `path`. Throws `not-found` for any other `url`, `unsupported` with the service's reason. */
  changeLink(path: Path, url: string, change: LinkChange): Promise<SharedLink>;
  /** Revokes a link of exactly `path`. Throws `not-found` for any other `url`. */
  revokeLink(path: Path, url: string): Promise<void>;
}

/** Finds files and folders by name. Every failure is a `FileError`. */
export interface NameSearch {
  /**
   * Returns the entries anywhere in the drive whose names have the words of `query`. Local files are not among them.
   * `cursor`: the page after another one. The service's index may lag behind changes made elsewhere.
   */
  search(query: string, cursor: string | undefined, signal?: AbortSignal): Promise<SearchPage>;
}

/** The changes of a drive since an earlier moment. */
export interface LoggedChanges {
  /** The paths below the folder at which an entry appeared, changed or disappeared. */
  readonly changed: readonly Path[];
  /** Those of `changed` at which something was deleted, whatever is there now. */
  readonly deleted: readonly Path[];
  /** The position after these changes. */
  readonly position: string;
}

/** Tells what has changed since an earlier moment, also after a restart. Every failure is a `FileError`. */
export interface ChangeLog {
  /**
   * Returns the position after all changes so far at and below `folder`, and resolves when reads of the drive show all of
   * them. It may contain the path of the drive's root: a client gets it sealed.
   */
  position(folder: Path, signal: AbortSignal): Promise<string>;
  /**
   * Returns the changes since `position`, and resolves when reads of the drive show all of them. Returns `undefined` if the
   * position is not valid any more.
   */
  since(folder: Path, position: string, signal: AbortSignal): Promise<LoggedChanges | undefined>;
  /**
   * Returns the revisions, by path, of the entries below `folder` that only davgate has: local files, placeholders and
   * pending writes. Their changes are not in the log. Also entries whose folder has disappeared.
   */
  unlogged(folder: Path): Promise<ReadonlyMap<Path, string>>;
  /** Returns a text that a client may keep: it can neither read the content nor change it. */
  seal(folder: Path, content: Uint8Array): Promise<string>;
  /** Returns the content of a text that this drive has sealed for this folder; `undefined` for any other text. */
  unseal(folder: Path, text: string): Promise<Uint8Array | undefined>;
}

/** Makes small images. Every failure is a `FileError`. */
export interface Thumbnails {
  /**
   * Returns a WebP image of at most 256 by 256 pixels of an image file. Throws `not-found` if the file has another revision
   * than `rev`, and `unsupported` if there is no small image of it.
   */
  thumbnail(path: Path, rev: string, signal?: AbortSignal): Promise<Uint8Array>;
}
