import type { ByteRange } from '../../util/ranges.ts';

/**
 * The seam inside the service: what the routes ask of the store. One `Storage` is one data directory;
 * every call names the namespace (an account's home) it works in. Paths are the wire's: `''` is the root,
 * others start with `/`; lookups fold case and NFC, names keep the case they came with.
 */
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

/** Names of the wire's LookupError, WriteError and so on; `detail` is what the wire nests inside. */
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
      /** With `incorrect_offset`. */
      readonly correctOffset?: number;
    }
  | {
      readonly kind: 'body';
      readonly tag: 'payload_too_large' | 'content_hash_mismatch' | 'length_mismatch';
    }
  | { readonly kind: 'cursor'; readonly tag: 'reset' | 'malformed' }
  | { readonly kind: 'revision'; readonly tag: 'invalid_revision' | 'invalid_before_rev' };

/** A refusal that a route turns into its own error union. `side` tells which of two paths it speaks of. */
export class StorageError extends Error {
  override readonly name = 'StorageError';

  constructor(
    readonly refusal: StorageRefusal,
    readonly side: 'from' | 'to' = 'to',
    /** Of `upload`: the upload session that keeps the bytes, so that only the commit need be tried again. */
    readonly uploadSession?: string,
  ) {
    super(`${refusal.kind}/${refusal.tag}`);
  }
}

export type StoredWriteMode =
  | { readonly tag: 'add' }
  | { readonly tag: 'overwrite' }
  | { readonly tag: 'update'; readonly rev: string };

/** CommitInfo of the wire. */
export interface Commit {
  /** A path or `id:…` */
  readonly path: string;
  readonly mode: StoredWriteMode;
  readonly autorename: boolean;
  readonly strictConflict: boolean;
  readonly clientModifiedMs?: number;
}

/** Bytes on their way in. `contentHash`, when given, must be theirs; more than `maxBytes` is refused. */
export interface Incoming {
  readonly bytes: AsyncIterable<Uint8Array>;
  readonly contentHash?: string;
  readonly maxBytes: number;
}

export interface UploadOptions {
  /** What becomes of the bytes when the commit is refused: kept in a session (if left out), or dropped. */
  readonly refusedBytes?: 'kept' | 'dropped';
  /**
   * How long the commit waits for its turn: until this is aborted, whose reason is then thrown. If left out, as long as a
   * client may be kept waiting.
   */
  readonly until?: AbortSignal;
}

/** One of several pieces in one body, and where in its session it goes. */
export interface SessionPiece {
  readonly session: string;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly close: boolean;
}

/** What became of one entry of a batch: each succeeds or is refused by itself. */
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

/** Where names are looked for: in all that is below a folder, live or deleted. */
export interface NameScope {
  readonly path: string;
  readonly deleted: boolean;
}

/** Which names are looked for. */
export interface NameFilter {
  /** Texts that every such name has, so that other names are passed over without a call of `matches`. */
  readonly parts: readonly string[];
  readonly matches: (nameKey: string) => boolean;
}

/**
 * How to go through names: those whose key (`foldName`) is or begins with `text`, those with a word that is or begins with
 * it, or all of them, the last changed first, or all that are in the folder, in no order.
 */
export type NameLookup =
  | { readonly by: 'name' | 'word'; readonly text: string; readonly exact: boolean }
  | { readonly by: 'change' }
  | { readonly by: 'folder' };

/** Whose cursor: it works for no one else. */
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

export interface Storage {
  /**
   * Makes an empty namespace, or gives one that exists another limit. `limitBytes` bounds what its live files
   * and their history may take.
   */
  createNamespace(namespace: string, limitBytes: number): void;
  /** `address` is a path, `id:…` or `rev:…`. */
  stat(namespace: string, address: string, includeDeleted: boolean): Stored | StoredDeletion;
  /** Whether something with this `id:…` is there, or could be brought back. */
  isKnown(namespace: string, id: string): boolean;
  /** How many items, live or deleted, a lookup by a word goes through; `max` stands for that many or more. */
  countNamed(
    namespace: string,
    deleted: boolean,
    word: { readonly text: string; readonly exact: boolean },
    max: number,
  ): number;
  /** How many items a lookup by the folder goes through; `max` stands for that many or more. Throws `lookup/…`. */
  countBelow(namespace: string, scope: NameScope, max: number): number;
  /**
   * What has a name of `lookup` that passes `filter`, which is given the name's key; each once. A step of the iteration is
   * a short piece of work, and may find nothing. Throws `lookup/…` for what is no folder.
   */
  findNames(
    namespace: string,
    scope: NameScope,
    lookup: NameLookup,
    filter: NameFilter,
  ): Iterable<readonly (Stored | StoredDeletion)[]>;
  list(owner: CursorOwner, scope: ListingScope, limit: number): StoredPage;
  /** `limit`: the length of the pages that follow. */
  latestCursor(owner: CursorOwner, scope: ListingScope, limit?: number): string;
  listContinue(owner: CursorOwner, cursor: string): StoredPage;
  /**
   * Resolves with whether something the cursor covers has changed, at once or when it does. Needs no owner,
   * as the long poll comes without a token.
   */
  awaitChange(cursor: string, timeoutMs: number, signal: AbortSignal): Promise<boolean>;

  /**
   * Resolves once the file would survive a loss of power. Chunks of a body are kept by reference: they must
   * not be written to again. A refused commit names the upload session that keeps the bytes, unless there is no room or
   * too many are writing, or `options.refusedBytes` says that nobody would hear of it.
   */
  upload(namespace: string, commit: Commit, body: Incoming, options?: UploadOptions): Promise<StoredFile>;
  /** The session's id. */
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
   * `append_batch`: the pieces follow each other in `body`. Nothing is added unless all of it came, is right and is
   * as long as the pieces (else `body/…`); then each piece is added or refused by itself.
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
  /** `finish_batch_v2`: closed sessions only; outcomes in the order asked. Other calls get their turn in between. */
  finishSessions(
    namespace: string,
    entries: readonly { readonly session: string; readonly offset: number; readonly commit: Commit }[],
  ): Promise<readonly Outcome<StoredFile>[]>;

  /**
   * The bytes of one revision, each block checked against its hash as it is read: damage throws
   * `DamagedBlockError`, maybe after good bytes. A file removed meanwhile is still read to its end. `lent`: each
   * piece is good only until the next one is asked for or the iteration ended, which saves memory.
   */
  read(
    file: StoredFile,
    range: ByteRange | undefined,
    options?: { readonly lent: boolean },
  ): AsyncIterable<Uint8Array>;

  createFolder(namespace: string, path: string, autorename: boolean): Promise<StoredFolder>;
  /** What was there. `parentRev`: only if the file still has this revision. */
  remove(namespace: string, address: string, parentRev?: string): Promise<Stored>;
  /** Also the history, and what was removed before. */
  removeForever(namespace: string, address: string, parentRev?: string): Promise<void>;
  /**
   * A large one is made in steps that nobody sees before the last, after any other. Throws `too_many_write_operations` when
   * it has waited too long for others, or its folder never rests.
   */
  relocate(
    namespace: string,
    from: string,
    to: string,
    options: { readonly copy: boolean; readonly autorename: boolean },
  ): Promise<Stored>;
  /**
   * Like `createFolder`, `remove` and `relocate` one after the other; outcomes in order. Other calls get their turn in
   * between.
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
   * Likewise, but all of them in one change or none: throws the refusal of the first that is refused. Together they may
   * take along as many entries as one `relocate`. Throws `duplicated_or_nested_paths` when they are many and one needs or
   * changes what another one changes.
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
  ): RevisionPage;
  restore(namespace: string, path: string, rev: string): Promise<StoredFile>;
  /**
   * Every file counts, copies too; contents that only history has count once. Bytes in upload sessions count when they
   * become a file.
   */
  usage(namespace: string): { readonly usedBytes: number; readonly limitBytes: number };
  /**
   * One round of housekeeping, in short steps between the calls of others: ends upload sessions and history that
   * are past their time, and removes what nothing needs any more. Gives up for now when the disk is too busy.
   */
  tidy(): Promise<void>;
  close(): Promise<void>;
}
