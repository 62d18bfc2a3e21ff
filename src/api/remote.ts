import type { Instant } from '../util/clock.ts';
import type { Path } from '../util/path.ts';
import type { ByteRange } from '../util/ranges.ts';

/** A file as the service last told us. Immutable: a change makes a new value. */
export interface FileEntry {
  readonly kind: 'file';
  /** Stays with the file when it is moved or overwritten; case-sensitive. */
  readonly id: string;
  /** Relative to the drive's root, in display case. */
  readonly path: Path;
  readonly name: string;
  /** Changes with each change of content or place. */
  readonly rev: string;
  readonly sizeBytes: number;
  /** Absent where the service gives none. */
  readonly contentHash?: string;
  /** What the writer said (`client_modified`), in ms since 1970. */
  readonly modifiedMs: number;
  /** When the service took it (`server_modified`), in ms since 1970. */
  readonly committedMs: number;
}

/** A folder. The service knows no times of folders; the layer above may. */
export interface FolderEntry {
  readonly kind: 'folder';
  readonly id: string;
  readonly path: Path;
  readonly name: string;
  readonly modifiedMs?: number;
}

export type Entry = FileEntry | FolderEntry;

/** The condition under which a write is to happen; the service checks it in the commit itself. */
export type WriteMode =
  | { readonly if: 'any' }
  | { readonly if: 'absent' }
  | { readonly if: 'rev'; readonly rev: string };

/** One step of a listing or of the change feed, in order. */
export type Change =
  | { readonly kind: 'put'; readonly entry: Entry }
  | { readonly kind: 'deleted'; readonly path: Path };

export interface Page {
  readonly changes: readonly Change[];
  /** Where to go on: with the rest of the listing, and after that with what changed since. */
  readonly cursor: string;
  readonly hasMore: boolean;
}

export interface Download {
  /** The file as it was when its bytes were read. */
  readonly file: FileEntry;
  readonly bytes: AsyncIterable<Uint8Array>;
}

export interface CommitOptions {
  readonly mode: WriteMode;
  /** Milliseconds since 1970; the service keeps whole seconds. */
  readonly modifiedMs?: number;
}

/** Bytes sent before their commit; they cost nothing until then and lapse after days. */
export interface UploadSession {
  readonly id: string;
}

export interface UploadPart {
  readonly offset: number;
  readonly bytes: Uint8Array;
  readonly last: boolean;
  /** Of `bytes` alone, where the sender knows it already; made here otherwise. */
  readonly contentHash?: string;
}

/** All of a short file's bytes, at most 4 MiB. */
export interface ShortContent {
  readonly bytes: Uint8Array;
  readonly contentHash: string;
}

export interface SessionCommit {
  readonly session: UploadSession;
  readonly sizeBytes: number;
  /**
   * Of all the bytes. With it, a commit whose answer was lost is recognised, and one whose content is not
   * this is reported as `hash-mismatch`.
   */
  readonly contentHash?: string;
  readonly path: Path;
  readonly options: CommitOptions;
}

export type LinkVisibility = 'public' | 'password';

export interface LinkSettings {
  readonly visibility?: LinkVisibility;
  readonly password?: string;
  readonly expiresMs?: number;
}

export interface SharedLink {
  readonly url: string;
  readonly visibility: LinkVisibility;
  readonly expiresMs?: number;
}

export interface Quota {
  readonly usedBytes: number;
  /** All that the account may use, used or not. */
  readonly allocatedBytes: number;
}

/** The path of an entry in the drive. `'outside'`: the entry exists, but not below the drive's root. */
export type EntryLocation = Path | 'outside';

/** Whether the service can be asked, as the last call that ended showed. */
export interface Availability {
  /** When a call first found that it cannot; `undefined` while it can. */
  readonly awaySince: Instant | undefined;
  /** Calls `listener` when a call has succeeded after others found the service away. Returns how to stop that. */
  onBack(listener: () => void): () => void;
}

/**
 * The lower seam: one account's storage service, one method for each thing it does, over paths
 * relative to the drive's root. Waiting out rate limits, lost connections and expired tokens happens
 * below it; what it throws is an `ApiError` (`api/errors.ts`) and is final, or the signal's reason.
 * A missing entry is `undefined`, never an error, and only if the service said so.
 */
export interface Remote {
  readonly availability: Availability;
  /** `get_metadata`. The root, which the service does not describe, is the caller's to know. */
  stat(path: Path, signal?: AbortSignal): Promise<Entry | undefined>;
  /** `get_metadata` by id: where that entry is now. `undefined` only if it is gone. */
  locate(id: string, signal?: AbortSignal): Promise<EntryLocation | undefined>;
  /**
   * `list_folder` (+ `continue`): the children of `folder`, or with `recursive` all below it. Throws
   * `not-found` or `not-folder`, or `reset` when it has to be begun again. A name may come twice: the later
   * one counts. `ahead`: nobody waits for it yet, so it goes behind all that somebody waits for.
   */
  list(
    folder: Path,
    options: { readonly recursive: boolean; readonly ahead?: boolean },
    signal?: AbortSignal,
  ): AsyncIterable<Page>;
  /** `list_folder/get_latest_cursor` of everything in the drive. */
  latestCursor(signal?: AbortSignal): Promise<string>;
  /** `list_folder/longpoll`: resolves when something changed, or with `false` after about `timeoutMs`. */
  awaitChange(cursor: string, timeoutMs: number, signal?: AbortSignal): Promise<boolean>;
  /** `list_folder/continue`: what changed since `cursor`. Throws `reset` when the cursor is of no more use. */
  changesSince(cursor: string, signal?: AbortSignal): Promise<Page>;
  /**
   * `download` of exactly the revision in `file`, or of a part. Throws `not-found` when that revision
   * is gone. The bytes end early only by throwing: an `ApiError` with `details.cut` when the connection was
   * lost, so that the rest can be asked for. They must be read, or ended by the signal: until then they
   * hold a connection. `ahead` as in `list`.
   */
  download(
    file: FileEntry,
    range: ByteRange | undefined,
    signal?: AbortSignal,
    options?: { readonly ahead?: boolean },
  ): Promise<Download>;
  /** `upload` in one call, at most 150 MiB. The service compares the bytes' hash before it commits. */
  upload(path: Path, body: Uint8Array, options: CommitOptions, signal?: AbortSignal): Promise<FileEntry>;
  /**
   * How many of `upload` the service takes side by side, as far as is known: 1 when it refuses a second one, and
   * then those that are committed together are through sooner.
   */
  uploadsAtOnce(): number;
  /** `upload_session/start` of a concurrent session: parts may be sent in any order and in parallel. */
  startSession(signal?: AbortSignal): Promise<UploadSession>;
  /**
   * `upload_session/append_v2` with the part's hash. Offset and size are multiples of 4 MiB, except the
   * size of the `last` part, which may be empty. Sending a part again is harmless; of one that the service has the
   * beginning of (`incorrect_offset`), only the rest is sent again.
   */
  appendSession(session: UploadSession, part: UploadPart, signal?: AbortSignal): Promise<void>;
  /**
   * Sends short contents ahead of their commits, each into a session of its own that is then closed: one by
   * `upload_session/start`, several by `append_batch`, into sessions that `start_batch` gave. An outcome each, in order.
   */
  stageContents(
    contents: readonly ShortContent[],
    signal?: AbortSignal,
  ): Promise<readonly (UploadSession | Error)[]>;
  /** Commits a session whose last part was sent. */
  finishSession(commit: SessionCommit, signal?: AbortSignal): Promise<FileEntry>;
  /**
   * `upload_session/finish_batch_v2`: up to 1,000 commits in one call, each with its own outcome. `onOutcome` hears
   * of each as soon as it is final, while others are still tried again.
   */
  finishSessions(
    commits: readonly SessionCommit[],
    signal?: AbortSignal,
    onOutcome?: (index: number, outcome: FileEntry | Error) => void,
  ): Promise<readonly (FileEntry | Error)[]>;
  /** `create_folder_v2`. Throws `conflict-file` or `conflict-folder` when something is there. */
  createFolder(path: Path, signal?: AbortSignal): Promise<FolderEntry>;
  /**
   * A file or a folder with all below it: `permanently_delete`, or `delete_v2`, which can be undone.
   * With `permanent`, throws `not-allowed` when account or token may not use that call. `id`: of what is
   * meant, so that after a lost answer nothing else is removed that has come to the same place. `rev`: of a file
   * that is to be removed only while that is its revision; else throws `conflict-file`.
   */
  remove(
    path: Path,
    options: { readonly permanent: boolean; readonly id?: string; readonly rev?: string },
    signal?: AbortSignal,
  ): Promise<void>;
  /** `copy_v2`; never overwrites. */
  copy(from: Path, to: Path, signal?: AbortSignal): Promise<Entry>;
  /**
   * `move_v2`; never overwrites, and does not change only the case of a name. `id`: of what is at `from`;
   * knowing it saves the call that asks for it.
   */
  move(from: Path, to: Path, signal?: AbortSignal, id?: string): Promise<Entry>;
  /** `get_space_usage`; `undefined` where the service names no limit. */
  quota(signal?: AbortSignal): Promise<Quota | undefined>;
  /** `list_shared_links` of exactly this path: the first, if there is one. */
  sharedLink(path: Path, signal?: AbortSignal): Promise<SharedLink | undefined>;
  /** `create_shared_link_with_settings`. Throws `link-exists`, `link-settings`. */
  createSharedLink(path: Path, settings: LinkSettings, signal?: AbortSignal): Promise<SharedLink>;
  /** `revoke_shared_link`. */
  revokeSharedLink(url: string, signal?: AbortSignal): Promise<void>;
}
