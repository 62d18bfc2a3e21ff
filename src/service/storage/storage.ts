import type { ByteRange } from '../../util/ranges.ts';

export interface StoredFile {
  readonly kind: 'file';
  readonly id: string;
  readonly name: string;
  readonly pathLower: string;
  readonly pathDisplay: string;
  readonly rev: string;
  readonly sizeBytes: number;
  readonly contentHash: string;
  readonly clientModifiedMs: number;
  readonly serverModifiedMs: number;
}

export interface StoredFolder {
  readonly kind: 'folder';
  readonly id: string;
  readonly name: string;
  readonly pathLower: string;
  readonly pathDisplay: string;
}

export interface StoredDeletion {
  readonly kind: 'deleted';
  readonly name: string;
  readonly pathLower: string;
  readonly pathDisplay: string;
  /** `restore` can bring it back: it was a file, and its revisions are kept. */
  readonly restorable: boolean;
}

export type Stored = StoredFile | StoredFolder;

/** Refusals with the tags of the API's LookupError, WriteError and so on. */
export type StorageRefusal =
  | { readonly kind: 'lookup'; readonly tag: 'malformed_path' | 'not_found' | 'not_file' | 'not_folder' }
  | {
      readonly kind: 'write';
      readonly tag:
        | 'malformed_path'
        | 'disallowed_name'
        | 'insufficient_space'
        | 'no_write_permission'
        | 'too_many_write_operations';
    }
  | { readonly kind: 'conflict'; readonly tag: 'file' | 'folder' | 'file_ancestor' }
  | {
      readonly kind: 'relocation';
      readonly tag:
        | 'cant_move_folder_into_itself'
        | 'duplicated_or_nested_paths'
        | 'too_many_files'
        | 'insufficient_quota';
    }
  | {
      readonly kind: 'session';
      readonly tag:
        | 'not_found'
        | 'incorrect_offset'
        | 'closed'
        | 'not_closed'
        | 'too_large'
        | 'concurrent_session_invalid_offset'
        | 'concurrent_session_invalid_data_size'
        | 'concurrent_session_data_not_allowed'
        | 'concurrent_session_close_not_allowed'
        | 'concurrent_session_not_closed'
        | 'concurrent_session_missing_data';
      /** Present with `incorrect_offset`. */
      readonly correctOffset?: number;
    }
  | {
      readonly kind: 'body';
      readonly tag: 'payload_too_large' | 'content_hash_mismatch' | 'length_mismatch';
    }
  | { readonly kind: 'cursor'; readonly tag: 'reset' | 'malformed' }
  | { readonly kind: 'revision'; readonly tag: 'invalid_revision' | 'invalid_before_rev' };

/** A refusal, which a route turns into the error union of its function. `side` says which of two paths it concerns. */
export class StorageError extends Error {
  override readonly name = 'StorageError';

  constructor(
    readonly refusal: StorageRefusal,
    readonly side: 'from' | 'to' = 'to',
    /** Set by `upload`: the upload session that keeps the bytes, so that only the commit needs a retry. */
    readonly uploadSession?: string,
  ) {
    super(`${refusal.kind}/${refusal.tag}`);
  }
}

export type StoredWriteMode =
  | { readonly tag: 'add' }
  | { readonly tag: 'overwrite' }
  | { readonly tag: 'update'; readonly rev: string };

/** The API's CommitInfo. */
export interface Commit {
  /** A path or `id:…` */
  readonly path: string;
  readonly mode: StoredWriteMode;
  readonly autorename: boolean;
  readonly strictConflict: boolean;
  readonly clientModifiedMs?: number;
}

/** A request body. It is refused if it does not match `contentHash`, when given, or exceeds `bytesMax`. */
export interface Incoming {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly contentHash?: string;
  readonly bytesMax: number;
}

export interface UploadOptions {
  /** Whether an upload session keeps the bytes of a refused commit. Default: `kept`. */
  readonly refusedBytes?: 'kept' | 'dropped';
  /**
   * Aborts the wait for the commit's turn; its reason is then thrown. Default: the longest time that a client may wait.
   */
  readonly until?: AbortSignal;
  /** Called when all bytes are stored and the commit begins. An upload that fails before that has stored nothing. */
  readonly committing?: () => void;
}

/** One of several pieces in one body, and its position in its session. */
export interface SessionPiece {
  readonly session: string;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly close: boolean;
}

/** The result of one entry of a batch; each succeeds or is refused on its own. */
export type Outcome<T> = T | StorageError;

export interface ListingScope {
  readonly path: string;
  readonly recursive: boolean;
  readonly includeDeleted: boolean;
}

export interface StoredPage {
  readonly entries: readonly (Stored | StoredDeletion)[];
  readonly cursor: string;
  readonly hasMore: boolean;
}

/** The scope of a search: all live or all deleted items below a folder. */
export interface NameScope {
  readonly path: string;
  readonly deleted: boolean;
}

/** The condition for names in a search. */
export interface NameFilter {
  /** Texts that each matching name contains; `matches` is called only for names with all of them. */
  readonly parts: readonly string[];
  readonly matches: (nameKey: string) => boolean;
}

/**
 * The index to search by: names (keys of `foldName`) or words that equal `text` or begin with it; all changes, newest
 * first; or everything below the folder, in no order.
 */
export type NameLookup =
  | { readonly by: 'name' | 'word'; readonly text: string; readonly exact: boolean }
  | { readonly by: 'change' }
  | { readonly by: 'folder' };

/** The owner of a cursor; the cursor works for nobody else. */
export interface CursorOwner {
  readonly namespace: string;
  readonly account: string;
  readonly app: string;
}

export interface RevisionPage {
  readonly deleted: boolean;
  readonly deletedMs?: number;
  readonly entries: readonly StoredFile[];
  readonly hasMore: boolean;
}

/**
 * The store of a service, as its routes use it: one data directory. Every call names the namespace (an account's home) in
 * which it works. Paths have the API's form: `''` is the root, others start with `/`. Lookups fold case and NFC; names
 * keep their case.
 */
export interface Storage {
  /**
   * Creates an empty namespace, or changes the limit of an existing one. `limitBytes` limits its live files and their
   * history together. Costs nothing if it has that limit, so that callers can repeat the call before each use. Where processes
   * share the storage, a limit that another one has changed is seen at the second call at the latest.
   */
  createNamespace(namespace: string, limitBytes: number): Promise<void>;
  /** Returns an item. `address` is a path, `id:…` or `rev:…`. */
  stat(namespace: string, address: string, includeDeleted: boolean): Promise<Stored | StoredDeletion>;
  /** Returns existing items as they are at one moment; outcomes in the order of the addresses. */
  statAll(namespace: string, addresses: readonly string[]): Promise<readonly Outcome<Stored>[]>;
  /** Returns an existing item and the folders above it, the nearest first, as they are at one moment. */
  statWithFolders(namespace: string, address: string): Promise<readonly [Stored, ...StoredFolder[]]>;
  /**
   * Returns those of the `id:…` whose items exist or can be restored, and perhaps some whose items have been removed for good
   * and are being cleared away. Resolves with `undefined` where processes share the storage, and this one has not loaded the
   * namespace.
   */
  known(namespace: string, ids: readonly string[]): Promise<ReadonlySet<string> | undefined>;
  /** Returns the number of live or deleted items that a search by a word examines, at most `max`. */
  countNamed(
    namespace: string,
    deleted: boolean,
    word: { readonly text: string; readonly exact: boolean },
    max: number,
  ): Promise<number>;
  /** Returns the number of items that a search by the folder examines, at most `max`. Throws `lookup/…`. */
  countBelow(namespace: string, scope: NameScope, max: number): Promise<number>;
  /**
   * Yields each item once whose name is found by `lookup` and passes `filter`. A step of the iteration is a short piece
   * of work, and may find nothing. Throws `lookup/…` unless `scope` is a folder.
   */
  findNames(
    namespace: string,
    scope: NameScope,
    lookup: NameLookup,
    filter: NameFilter,
  ): AsyncIterable<readonly (Stored | StoredDeletion)[]>;
  list(owner: CursorOwner, scope: ListingScope, limit: number): Promise<StoredPage>;
  /**
   * Returns a folder and everything below it, folders before their content, as they are at one moment; `undefined` for
   * more than `max` items in all. `address` is not the root.
   */
  listAll(
    namespace: string,
    address: string,
    max: number,
  ): Promise<readonly [StoredFolder, ...Stored[]] | undefined>;
  /** Returns a cursor from which only later changes follow, in pages of `limit` entries. */
  latestCursor(owner: CursorOwner, scope: ListingScope, limit?: number): Promise<string>;
  listContinue(owner: CursorOwner, cursor: string): Promise<StoredPage>;
  /**
   * Resolves with whether something in the cursor's scope has changed, at once or when it does. Takes no owner, because
   * the long poll comes without a token.
   */
  awaitChange(cursor: string, timeoutMs: number, signal: AbortSignal): Promise<boolean>;

  /**
   * Resolves when the file would survive a loss of power. Keeps references to the body's chunks, which must not be
   * changed afterwards. A refused commit names the upload session that keeps the bytes, except when the disk is full,
   * too many calls write, or `options.refusedBytes` is `dropped`.
   */
  upload(namespace: string, commit: Commit, body: Incoming, options?: UploadOptions): Promise<StoredFile>;
  /** Returns the session's id. */
  startSession(
    namespace: string,
    kind: 'sequential' | 'concurrent',
    body: Incoming,
    close: boolean,
  ): Promise<string>;
  appendSession(
    namespace: string,
    at: { readonly session: string; readonly offset: number },
    body: Incoming,
    close: boolean,
  ): Promise<void>;
  /**
   * `append_batch`: the pieces follow each other in `body`. Throws `body/…`, and adds nothing, unless the body is
   * complete, has the right hash and is as long as the pieces together; then each piece is added or refused on its own.
   */
  appendSessions(
    namespace: string,
    pieces: readonly SessionPiece[],
    body: Incoming,
  ): Promise<readonly Outcome<'appended'>[]>;
  finishSession(
    namespace: string,
    at: { readonly session: string; readonly offset: number },
    commit: Commit,
    body: Incoming,
  ): Promise<StoredFile>;
  /**
   * `finish_batch_v2`: takes closed sessions only, and returns the outcomes in the order of the entries. Other calls
   * run in between.
   */
  finishSessions(
    namespace: string,
    entries: readonly { readonly session: string; readonly offset: number; readonly commit: Commit }[],
  ): Promise<readonly Outcome<StoredFile>[]>;

  /**
   * Yields the bytes of a revision. Each block is checked against its hash when it is read: damage throws
   * `DamagedBlockError`, possibly after good bytes. A file that is removed meanwhile is still read to its end. `lent`:
   * each chunk is valid only until the next one is requested or the iteration ends, which saves memory.
   */
  read(
    namespace: string,
    file: StoredFile,
    range: ByteRange | undefined,
    options?: { readonly lent: boolean },
  ): AsyncIterable<Uint8Array>;

  createFolder(namespace: string, path: string, autorename: boolean): Promise<StoredFolder>;
  /** Deletes an entry and returns it. `parentRev`: only if the file still has this revision. */
  remove(namespace: string, address: string, parentRev?: string): Promise<Stored>;
  /** Deletes an entry permanently, with its history and earlier deletions at its path. */
  removeForever(namespace: string, address: string, parentRev?: string): Promise<void>;
  /**
   * Moves or copies an entry. A large one is prepared in hidden steps, one relocation after another. Throws
   * `too_many_write_operations` after too long a wait for others, or if its folder keeps changing.
   */
  relocate(
    namespace: string,
    from: string,
    to: string,
    options: { readonly copy: boolean; readonly autorename: boolean },
  ): Promise<Stored>;
  /**
   * Like `createFolder`, `remove` and `relocate` one after the other; outcomes in order. Other calls run in between.
   */
  createFolders(
    namespace: string,
    paths: readonly string[],
    autorename: boolean,
  ): Promise<readonly Outcome<StoredFolder>[]>;
  removeAll(
    namespace: string,
    entries: readonly { readonly address: string; readonly parentRev?: string | undefined }[],
  ): Promise<readonly Outcome<Stored>[]>;
  relocateAll(
    namespace: string,
    entries: readonly { readonly from: string; readonly to: string }[],
    options: { readonly copy: boolean; readonly autorename: boolean },
  ): Promise<readonly Outcome<Stored>[]>;
  /**
   * Like `relocateAll`, but as one change, or none: throws the first refusal. The entry limit of `relocate` applies to
   * all together. Throws `duplicated_or_nested_paths` when they are many and one depends on another.
   */
  relocateTogether(
    namespace: string,
    entries: readonly { readonly from: string; readonly to: string }[],
    options: { readonly copy: boolean; readonly autorename: boolean },
  ): Promise<readonly Stored[]>;

  revisions(
    namespace: string,
    address: string,
    options: { readonly by: 'path' | 'id'; readonly limit: number; readonly beforeRev?: string },
  ): Promise<RevisionPage>;
  restore(namespace: string, path: string, rev: string): Promise<StoredFile>;
  /**
   * Returns the space in use. Every file counts, copies too; contents that only history has count once. Bytes in upload
   * sessions count when they become a file.
   */
  usage(namespace: string): Promise<{ readonly usedBytes: number; readonly limitBytes: number }>;
  /**
   * Runs one round of housekeeping, in short steps between other calls: removes expired upload sessions, expired
   * history and unreferenced contents. Gives up when the disk is too busy or the storage is closed; the next round continues.
   */
  tidy(): Promise<void>;
  /**
   * Where processes share the storage, removes the blocks that none of them needs any more, and what they no longer tell each
   * other. One process at a time does it for all. Takes long: all blocks are listed.
   */
  tidyShared(): Promise<void>;
  close(): Promise<void>;
}
