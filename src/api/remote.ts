import type { ByteSource } from '../util/byte-source.ts';
import type { Instant } from '../util/clock.ts';
import type { Path } from '../util/path.ts';
import type { ByteRange } from '../util/ranges.ts';

/** A file as the service last described it. Immutable: a change makes a new value. */
export interface FileEntry {
  readonly kind: 'file';
  /** Stays the same when the file is moved or overwritten; case-sensitive. */
  readonly id: string;
  /** Relative to the drive's root, in display case. */
  readonly path: Path;
  readonly name: string;
  /** Changes with each change of content or place. */
  readonly rev: string;
  readonly sizeBytes: number;
  /** Absent where the service gives none. */
  readonly contentHash?: string;
  /** `false` for a document of an application, like a Google Doc, which has no bytes; absent for all other files. */
  readonly isDownloadable?: false;
  /** The time that the writer gave (`client_modified`), in ms since 1970. */
  readonly modifiedMs: number;
  /** Time of the commit at the service (`server_modified`), in ms since 1970. */
  readonly committedMs: number;
  /** Time of the deletion, in ms since 1970, of a file that the drive shows among the deleted ones. */
  readonly deletedMs?: number;
}

/** A folder. The service keeps no times of folders; the drive may add them. */
export interface FolderEntry {
  readonly kind: 'folder';
  readonly id: string;
  readonly path: Path;
  readonly name: string;
  readonly modifiedMs?: number;
}

export type Entry = FileEntry | FolderEntry;

/** The condition of a write; the service checks it in the commit itself. */
export type WriteMode =
  | { readonly if: 'any' }
  | { readonly if: 'absent' }
  | { readonly if: 'rev'; readonly rev: string };

/** One step of a listing or of the change feed, in order. */
export type Change =
  | { readonly kind: 'put'; readonly entry: Entry }
  | { readonly kind: 'deleted'; readonly path: Path };

/** One step of the change feed. `unknown-below`: what is below the folder at `path` may be something else now. */
export type FeedChange = Change | { readonly kind: 'unknown-below'; readonly path: Path };

export interface Page<C extends FeedChange = Change> {
  readonly changes: readonly C[];
  /** Position to continue from: first the rest of the listing, then later changes. */
  readonly cursor: string;
  readonly hasMore: boolean;
}

/** The revisions of a file at one path. */
export interface Revisions {
  /** Newest first. */
  readonly files: readonly FileEntry[];
  /** Whether the service has older ones too. */
  readonly hasMore: boolean;
  /** Whether nothing is at the path now. */
  readonly isDeleted: boolean;
  /** Time of the deletion, in ms since 1970; absent where the service gives none. */
  readonly deletedMs?: number;
}

export interface RevisionsOptions {
  /** At most 100. */
  readonly limit: number;
  /** Returns the revisions of the file at the path, wherever it was before, instead of all that were at the path. */
  readonly followsMoves?: boolean;
}

export interface ListOptions {
  readonly recursive: boolean;
  /** Marks a prefetch, which lets all other calls go first. */
  readonly ahead?: boolean;
  /** Adds a `deleted` change for each path that had an entry once. */
  readonly withDeleted?: boolean;
}

export interface Download extends ByteSource {
  /** The file in the revision of the bytes. */
  readonly file: FileEntry;
}

/** Runs `commit` while the write may happen, and throws why it may not happen any more. */
export type AroundCommit = <T>(commit: () => Promise<T>) => Promise<T>;

export interface RemoteWriteOptions {
  readonly mode: WriteMode;
  /** Milliseconds since 1970; the service keeps whole seconds. */
  readonly modifiedMs?: number;
  /** The announced length of the body, in bytes. A body of another length is not committed. */
  readonly sizeBytes?: number;
  /**
   * Called once, when the whole body has been sent and earlier writes to the path have ended. The write is committed
   * inside it. The drive takes its path locks here, so that a long body delays no move, and checks again what may
   * have changed while the body came.
   */
  readonly aroundCommit?: AroundCommit;
}

/** A page of the entries that a search has found. */
export interface SearchPage {
  readonly entries: readonly Entry[];
  /** Leads to the next page; absent on the last one. */
  readonly cursor?: string;
}

export type LinkVisibility = 'public' | 'password';

export interface LinkSettings {
  readonly visibility?: LinkVisibility;
  readonly password?: string;
  readonly expiresMs?: number;
}

/** New settings of a link. Those that are absent stay as they are. */
export interface LinkChange extends Omit<LinkSettings, 'expiresMs'> {
  /** `never` removes the expiry. */
  readonly expiresMs?: number | 'never';
}

export interface SharedLink {
  readonly url: string;
  readonly visibility: LinkVisibility;
  readonly expiresMs?: number;
}

/** A link, and the entry that it shows. */
export interface LinkedEntry extends SharedLink {
  readonly kind: Entry['kind'];
  /** The names of the folders above may be in another letter case. */
  readonly path: Path;
}

export interface Quota {
  readonly usedBytes: number;
  /** All bytes that the account may use, including the used ones. */
  readonly allocatedBytes: number;
}

/** The path of an entry in the drive. `'outside'`: the entry exists, but not below the drive's root. */
export type EntryLocation = Path | 'outside';

/** Whether the service answers, as the last finished call showed. */
export interface Availability {
  /** Time at which a call first found the service away; `undefined` while it answers. */
  readonly awaySince: Instant | undefined;
  /** Calls `listener` when the service answers again after an outage. Returns a function that removes the listener. */
  onBack(listener: () => void): () => void;
}

/**
 * The lower seam: the storage service of one account, over paths relative to the drive's root. Rate limits, lost
 * connections and expired tokens are waited out below it. Methods throw an `ApiError` (`api/errors.ts`), which is
 * final, or the signal's reason. A missing entry is `undefined`, never an error, and only if the service said so.
 */
export interface Remote {
  readonly availability: Availability;
  /** `get_metadata`. Must not be called for the root of an account, which the service does not describe. */
  stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined>;
  /** `get_metadata` by id. Returns where the entry is now, `undefined` only if it is gone. */
  locate(id: string, signal?: AbortSignal): Promise<EntryLocation | undefined>;
  /**
   * `list_folder` (+ `continue`): the children of `folder`, or with `recursive` everything below it. Throws
   * `not-found`, `not-folder`, or `reset` when the listing must be started again. When a name comes twice, the later
   * entry counts.
   */
  list(folder: Path, options: ListOptions, signal?: AbortSignal): AsyncIterable<Page>;
  /** `list_folder/get_latest_cursor`: a cursor for all later changes in the drive. */
  latestCursor(signal?: AbortSignal): Promise<string>;
  /** `list_folder/longpoll`: resolves with `true` when something changed, with `false` after about `timeoutMs`. */
  awaitChange(cursor: string, timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  /** `list_folder/continue`: the changes since `cursor`. Throws `reset` when the cursor is no longer valid. */
  changesSince(cursor: string, signal?: AbortSignal): Promise<Page<FeedChange>>;
  /**
   * `download` of exactly the revision in `file`, or of a range of it. Throws `not-found` when that revision
   * is gone. The bytes end early only by throwing: an `ApiError` with `details.cut` when the connection was
   * lost, so that the caller can ask for the rest. The caller must read them or abort the signal: until then they
   * occupy a connection. `ahead` as in `list`.
   */
  download(
    file: FileEntry,
    range: ByteRange | undefined,
    signal?: AbortSignal,
    options?: { readonly ahead?: boolean },
  ): Promise<Download>;
  /**
   * Stores all of `body` as the file at `path`, or nothing: one `upload`, or the parts of an upload session. Small
   * files that are written at the same time are committed together. The condition in `options.mode` is checked by the
   * service in the commit itself. Writes to one path are committed one after the other.
   *
   * When `body` throws or `signal` is aborted nothing is committed, except when the commit is already under way: then
   * the outcome is unknown. Throws `incomplete` for a body of another length than announced, `conflict-file` or
   * `conflict-folder` when the condition does not hold, `hash-mismatch` when the service stored other bytes, what
   * `body` or `aroundCommit` throws, or the signal's reason.
   */
  write(
    path: Path,
    body: AsyncIterable<Uint8Array>,
    options: RemoteWriteOptions,
    signal?: AbortSignal,
  ): Promise<FileEntry>;
  /** `create_folder_v2`. Throws `conflict-file` or `conflict-folder` when something is there. */
  createFolder(path: Path, signal?: AbortSignal): Promise<FolderEntry>;
  /**
   * Removes a file, or a folder with everything below it, by `permanently_delete` or by `delete_v2`, which can be
   * undone. With `permanent`, throws `not-allowed` when the account or token may not use that call. `id` names the entry,
   * so that a retry after a lost answer does not remove another entry at the same path. With `rev`, throws
   * `conflict-file` unless the file has that revision.
   */
  remove(
    path: Path,
    options: { readonly permanent: boolean; readonly id?: string; readonly rev?: string },
    signal?: AbortSignal,
  ): Promise<void>;
  /** `copy_v2`. Never overwrites. */
  copy(from: Path, to: Path, signal?: AbortSignal): Promise<Entry>;
  /**
   * `move_v2`. Never overwrites, and cannot change only the case of a name. `id` is the id of the entry at `from`;
   * without it, it is asked for first.
   */
  move(from: Path, to: Path, signal?: AbortSignal, id?: string): Promise<Entry>;
  /**
   * `list_revisions`: the revisions of the file that is at `path` or was last there. Each has the folder of `path`, and
   * the name that it had. Throws `not-found`, and `not-file` for a folder, also for a deleted one.
   */
  revisions(path: Path, options: RevisionsOptions, signal?: AbortSignal): Promise<Revisions>;
  /**
   * `restore`: stores the content of an old revision as a new one of the file at `path`, and creates missing folders
   * above it. Throws `revision-gone` unless `rev` is a revision of that file, and `conflict-folder`.
   */
  restore(path: Path, rev: string, signal?: AbortSignal): Promise<FileEntry>;
  /** `get_space_usage`. Returns `undefined` when the service names no limit. */
  quota(signal?: AbortSignal): Promise<Quota | undefined>;
  /**
   * `search_v2`: the files and folders below the drive's root whose names have the words of `query`, best first. Its index
   * may lag behind changes. `cursor`: the page after another one (`search/continue_v2`).
   */
  search(query: string, cursor: string | undefined, signal?: AbortSignal): Promise<SearchPage>;
  /**
   * `get_thumbnail_v2`: a WebP image of at most 256 by 256 pixels of exactly the revision in `file`. Throws `no-thumbnail`
   * when the service makes none of it.
   */
  thumbnail(file: FileEntry, signal?: AbortSignal): Promise<Uint8Array>;
  /** `list_shared_links` of exactly this path. Returns the first link, if there is one. */
  sharedLink(path: Path, signal?: AbortSignal): Promise<SharedLink | undefined>;
  /** `list_shared_links`, all pages: the links of exactly `path`, or of all entries of the drive. Throws `reset`. */
  sharedLinks(path: Path | undefined, signal?: AbortSignal): Promise<readonly LinkedEntry[]>;
  /** `create_shared_link_with_settings`. Throws `link-exists`, `link-settings`. */
  createSharedLink(path: Path, settings: LinkSettings, signal?: AbortSignal): Promise<SharedLink>;
  /** `modify_shared_link_settings`. Throws `link-gone`, `link-settings`. */
  changeSharedLink(url: string, change: LinkChange, signal?: AbortSignal): Promise<SharedLink>;
  /** `revoke_shared_link`. */
  revokeSharedLink(url: string, signal?: AbortSignal): Promise<void>;
}
