import type { FileEntry } from '../api/remote.ts';
import type { Path } from '../util/path.ts';
import type { ByteRange } from '../util/ranges.ts';

/** The versions of a file. */
export interface Versions {
  /** Newest first. */
  readonly files: readonly FileEntry[];
  /** The revision that is current; `undefined` after a deletion. */
  readonly currentRev: string | undefined;
  /** Whether the service has older ones, which are not listed. */
  readonly hasMore: boolean;
}

/** Something that was deleted and can be restored. */
export interface Deleted {
  readonly path: Path;
  /** The last version of a file; `undefined` for a folder. */
  readonly file: FileEntry | undefined;
  /** In ms since 1970; absent for a folder, whose deletion the service keeps no time of. */
  readonly deletedMs?: number;
}

export interface Trash {
  readonly items: readonly Deleted[];
  /** Number of deleted names that are not described, because there are too many. */
  readonly leftOut: number;
}

/**
 * The former versions of a drive's files, and what was deleted. Every failure is a `FileError`. Only the service has this:
 * while it is away, every call fails.
 */
export interface History {
  /** Returns the versions of a file, also of a deleted one. Throws `not-found`, `is-a-folder`. */
  versions(path: Path, signal?: AbortSignal): Promise<Versions>;
  /** Returns one of `versions`. Throws `not-found` when there is no such version. */
  version(path: Path, rev: string, signal?: AbortSignal): Promise<FileEntry>;
  /** Reads the bytes of a version, or of a deleted file, as `Files.read` does. */
  read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array>;
  /** Makes the content of an old version current again. Throws `not-found`, and `exists` for a folder. */
  restore(path: Path, rev: string): Promise<FileEntry>;
  /**
   * Returns what was deleted from a folder, which may be deleted itself. Costs one or two calls for each deleted name. Throws
   * `not-found`, `not-a-folder`.
   */
  trash(folder: Path, signal?: AbortSignal): Promise<Trash>;
  /**
   * Brings back what was deleted at `path`: a file in its last version, or a folder with all files that were deleted with
   * it. Throws `exists` when something is there again, and `not-found` when nothing can be brought back.
   */
  undelete(path: Path): Promise<void>;
}
