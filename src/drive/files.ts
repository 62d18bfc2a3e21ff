import type { Entry, FileEntry, FolderEntry, LinkSettings, SharedLink, WriteMode } from '../api/remote.ts';
import type { Path } from '../util/path.ts';
import type { ByteRange } from '../util/ranges.ts';

export type {
  Entry,
  FileEntry,
  FolderEntry,
  LinkSettings,
  SharedLink,
  WriteMode,
} from '../api/remote.ts';

/** A folder and its children at one moment. A change makes a new value, so identity says "unchanged". */
export interface Listing {
  readonly folder: FolderEntry;
  readonly children: readonly Entry[];
}

export interface Written {
  readonly entry: Entry;
  /** Nothing was there before. */
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
  /** What the sender says of the body, in bytes; a body of another length is not committed. */
  readonly sizeBytes?: number;
  /** Milliseconds since 1970. */
  readonly modifiedMs?: number;
}

export interface FreeSpace {
  readonly usedBytes: number;
  readonly availableBytes: number;
}

/**
 * The upper seam: one drive, as the protocol sees it. Every failure is a `FileError`; a missing entry is
 * `undefined`. What a method acknowledged, the next call of any method sees. All are safe to call in parallel.
 */
export interface Files {
  /** The entry at `path`; no call to the service while the change feed is alive and the parent is known. */
  stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined>;
  /**
   * As `stat`, for a write that is about to come. While the service cannot be asked, what was last known decides, also
   * that nothing was there. `isPinned`: the write is to replace only what is there now, so the service is asked even
   * about what is known, if it answers soon.
   */
  statForWrite(
    path: Path,
    options: { readonly isPinned: boolean },
    signal?: AbortSignal,
  ): Promise<Entry | undefined>;
  /**
   * Throws `not-found` or `not-a-folder`. `isCovered`: the caller knows by itself what is at a path; where the service
   * cannot be asked about it, it may be missing.
   */
  list(folder: Path, signal?: AbortSignal, isCovered?: (path: Path) => boolean): Promise<Listing>;
  /** Every folder at and below `folder`, each with its children, parents first; for depth infinity. */
  walk(folder: Path, signal?: AbortSignal, isCovered?: (path: Path) => boolean): AsyncIterable<Listing>;
  /**
   * The bytes of exactly this revision; `undefined` for all of it. They end early only by throwing, and
   * a whole read ends only if it has the file's content hash. Ending the iteration ends the download.
   */
  read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /**
   * Takes all of `body` and resolves once it is where the drive's write mode promises. When `body` throws,
   * or is not as long as announced, nothing is written and the old content stays. Throws `changed` when
   * `mode` does not hold, `is-a-folder`, `parent-missing`, `bad-name`, `no-space`.
   */
  write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: WriteOptions,
    signal?: AbortSignal,
  ): Promise<Written>;
  /**
   * Keeps the empty file at `path` back from the service for `placeholderMs` from now, making one when nothing is
   * there: the first half of a create, whose body is about to follow. A file that has been committed stays as it is.
   */
  keepPlaceholder(path: Path, placeholderMs: number): Promise<Written>;
  /** Commits what `hold` kept back at `path`, if anything. */
  commitPlaceholder(path: Path): Promise<void>;
  /** Throws `exists` or `parent-missing`. */
  createFolder(path: Path): Promise<FolderEntry>;
  /**
   * A file, or a folder with all below it. `recoverable` insists on a deletion that can be undone. `rev`: of a
   * file that is to be removed only while that is its revision. Throws `not-found`, and `changed` where `rev` is not.
   */
  remove(path: Path, options: RemoveOptions): Promise<void>;
  /**
   * A file, or a folder: with all below it, or `shallow` without. Throws `exists` when something is at `to`
   * and `overwrite` is off, `parent-missing`, `into-itself`, `not-found`, and `changed` where a revision is not the one
   * in `options`. On failure the old target is still there.
   */
  copy(from: Path, to: Path, options: RelocateOptions & { readonly shallow: boolean }): Promise<Written>;
  /** As `copy`, always whole; `from` and `to` may differ only in letter case. */
  move(from: Path, to: Path, options: RelocateOptions): Promise<Written>;
  /** Makes `modifiedMs` the time that `entry` shows from now on, for as long as its content stays. */
  setModified(path: Path, modifiedMs: number): Promise<Entry>;
  /** `undefined` when the service names no limit or cannot be asked. */
  freeSpace(signal?: AbortSignal): Promise<FreeSpace | undefined>;
  sharedLink(path: Path, signal?: AbortSignal): Promise<SharedLink | undefined>;
  /** Replaces a link that is there. Throws `unsupported` with the service's reason. */
  shareLink(path: Path, settings: LinkSettings): Promise<SharedLink>;
  /** Revokes the link, if there is one. */
  unshareLink(path: Path): Promise<void>;
}
