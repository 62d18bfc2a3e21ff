/**
 * The storage service's HTTP API as types with the names of its JSON; there is no running code here. This file has the
 * common types and most of `files/*`, `revisions.ts` has revisions, and `account.ts` sharing, users and OAuth. `.tag`
 * distinguishes the members of a union. Nearly all unions are open: the service may answer with a tag that is missing
 * here, so code needs a default branch. `?` marks a field that may be absent.
 */

/** A union member without a value. */
export interface Tag<Name extends string> {
  readonly '.tag': Name;
}

/**
 * A member whose value is a primitive, a list, a union or a struct with subtypes: the value is in a field named like
 * the tag.
 */
export type Nested<Name extends string, Value> = Tag<Name> & { readonly [Key in Name]: Value };

/** A member whose value is a plain struct: its fields are beside the tag. */
export type Flat<Name extends string, Struct> = Tag<Name> & Struct;

/** `%Y-%m-%dT%H:%M:%SZ`: UTC, whole seconds. */
export type Timestamp = string;

// ---- Metadata

interface MetadataBase {
  readonly name: string;
  readonly path_lower?: string;
  readonly path_display?: string;
}

export interface FileMetadata extends MetadataBase {
  readonly id: string;
  readonly client_modified: Timestamp;
  readonly server_modified: Timestamp;
  readonly rev: string;
  readonly size: number;
  readonly is_downloadable?: boolean;
  readonly content_hash?: string;
  /** Present if requested. */
  readonly has_explicit_shared_members?: boolean;
}

export interface FolderMetadata extends MetadataBase {
  readonly id: string;
}

interface DeletedMetadata extends MetadataBase {
  /** Present if requested. */
  readonly is_restorable?: boolean;
}

/** Metadata where the declared type is the base type; a field of a concrete type has no tag. */
export type Metadata =
  | Flat<'file', FileMetadata>
  | Flat<'folder', FolderMetadata>
  | Flat<'deleted', DeletedMetadata>;

// ---- Errors

/** The body of 401, 403, 409, 422 and 429. */
export interface ErrorBody<E> {
  /** The tags from the outermost to the innermost, joined by slashes, then a slash and up to three dots. */
  readonly error_summary: string;
  readonly error: E;
  readonly user_message?: { readonly locale: string; readonly text: string };
}

/** With status 401. */
export type AuthError =
  | Tag<
      | 'invalid_access_token'
      | 'invalid_select_user'
      | 'invalid_select_admin'
      | 'user_suspended'
      | 'expired_access_token'
      | 'route_access_denied'
      | 'other'
    >
  | Flat<'missing_scope', { readonly required_scope: string }>;

interface MalformedPath {
  readonly malformed_path?: string | null;
}

export type LookupError =
  | Flat<'malformed_path', MalformedPath>
  | Tag<
      | 'not_found'
      | 'not_file'
      | 'not_folder'
      | 'restricted_content'
      | 'unsupported_content_type'
      | 'locked'
      | 'other'
    >;

export type WriteConflictError = Tag<'file' | 'folder' | 'file_ancestor' | 'other'>;

export type WriteError =
  | Flat<'malformed_path', MalformedPath>
  | Nested<'conflict', WriteConflictError>
  | Tag<
      | 'no_write_permission'
      | 'insufficient_space'
      | 'disallowed_name'
      | 'team_folder'
      | 'operation_suppressed'
      | 'too_many_write_operations'
      | 'access_restricted'
      | 'other'
    >;

/** Error of a function whose only error of its own is a lookup. */
export type PathLookupError = Nested<'path', LookupError>;

// ---- files/get_metadata, files/list_folder and what follows from it

export interface GetMetadataArg {
  readonly path: string;
  readonly include_deleted?: boolean;
  readonly include_media_info?: boolean;
  readonly include_has_explicit_shared_members?: boolean;
}

export type GetMetadataError = PathLookupError;

/** Also the argument of `list_folder/get_latest_cursor`. */
export interface ListFolderArg {
  readonly path: string;
  readonly recursive?: boolean;
  readonly include_deleted?: boolean;
  readonly include_media_info?: boolean;
  readonly include_has_explicit_shared_members?: boolean;
  readonly include_mounted_folders?: boolean;
  readonly include_non_downloadable_files?: boolean;
  readonly include_restorable_info?: boolean;
  /** Approximate number, 1 to 2,000. */
  readonly limit?: number;
}

export interface ListFolderResult {
  readonly entries: readonly Metadata[];
  readonly cursor: string;
  readonly has_more: boolean;
}

export type ListFolderError = PathLookupError | Tag<'other'>;

export interface ListFolderContinueArg {
  readonly cursor: string;
}

export type ListFolderContinueError = PathLookupError | Tag<'reset' | 'other'>;

export interface ListFolderGetLatestCursorResult {
  readonly cursor: string;
}

export interface ListFolderLongpollArg {
  readonly cursor: string;
  /** Seconds, 30 to 480; the service adds a random time of up to 90. */
  readonly timeout?: number;
}

export interface ListFolderLongpollResult {
  readonly changes: boolean;
  /** Seconds to wait before the next call. */
  readonly backoff?: number;
}

export type ListFolderLongpollError = Tag<'reset' | 'other'>;

// ---- files/upload, files/upload_session/*

export type WriteMode = Tag<'add' | 'overwrite'> | Nested<'update', string>;

export interface CommitInfo {
  readonly path: string;
  readonly mode?: WriteMode;
  readonly autorename?: boolean;
  readonly client_modified?: Timestamp;
  readonly mute?: boolean;
  readonly strict_conflict?: boolean;
}

export interface UploadArg extends CommitInfo {
  readonly content_hash?: string;
}

/** Refusals of a body, by every call with one. */
export type BodyError = Tag<'payload_too_large' | 'content_hash_mismatch'>;

interface UploadWriteFailed {
  readonly reason: WriteError;
  /** The session that already contains the bytes. */
  readonly upload_session_id: string;
}

export type UploadError = Flat<'path', UploadWriteFailed> | BodyError | Tag<'other'>;

export interface UploadSessionStartArg {
  readonly close?: boolean;
  readonly session_type?: Tag<'sequential' | 'concurrent'>;
  readonly content_hash?: string;
}

export interface UploadSessionStartResult {
  readonly session_id: string;
}

export type UploadSessionStartError =
  | BodyError
  | Tag<'concurrent_session_data_not_allowed' | 'concurrent_session_close_not_allowed' | 'other'>;

interface UploadSessionCursor {
  readonly session_id: string;
  readonly offset: number;
}

export interface UploadSessionStartBatchArg {
  readonly num_sessions: number;
  readonly session_type?: Tag<'sequential' | 'concurrent'>;
}

export interface UploadSessionStartBatchResult {
  readonly session_ids: readonly string[];
}

export interface UploadSessionAppendArg {
  readonly cursor: UploadSessionCursor;
  readonly close?: boolean;
  readonly content_hash?: string;
}

interface UploadSessionOffsetError {
  readonly correct_offset: number;
}

export type UploadSessionAppendError =
  | Flat<'incorrect_offset', UploadSessionOffsetError>
  | BodyError
  | Tag<
      | 'not_found'
      | 'closed'
      | 'too_large'
      | 'concurrent_session_invalid_offset'
      | 'concurrent_session_invalid_data_size'
      | 'other'
    >;

export interface UploadSessionAppendBatchArg {
  /** The body contains the bytes of all entries, one after another. */
  readonly entries: readonly {
    readonly cursor: UploadSessionCursor;
    readonly length: number;
    readonly close?: boolean;
  }[];
  readonly content_hash?: string;
}

/** Results in the order of the request. */
export interface UploadSessionAppendBatchResult {
  readonly entries: readonly (Tag<'success'> | Nested<'failure', UploadSessionAppendError>)[];
}

export type UploadSessionLookupError = UploadSessionAppendError | Tag<'not_closed'>;

export interface UploadSessionFinishArg {
  readonly cursor: UploadSessionCursor;
  readonly commit: CommitInfo;
  /** Hash of this call's body. */
  readonly content_hash?: string;
}

export type UploadSessionFinishError =
  | Nested<'lookup_failed', UploadSessionLookupError>
  | Nested<'path', WriteError>
  | BodyError
  | Tag<
      | 'too_many_write_operations'
      | 'concurrent_session_data_not_allowed'
      | 'concurrent_session_not_closed'
      | 'concurrent_session_missing_data'
      | 'other'
    >;

export interface UploadSessionFinishBatchArg {
  readonly entries: readonly UploadSessionFinishArg[];
}

export type UploadSessionFinishBatchResultEntry =
  | Flat<'success', FileMetadata>
  | Nested<'failure', UploadSessionFinishError>;

/** Results in the order of the request. */
export interface UploadSessionFinishBatchResult {
  readonly entries: readonly UploadSessionFinishBatchResultEntry[];
}

// ---- files/download

export interface DownloadArg {
  readonly path: string;
}

export type DownloadError = PathLookupError | Tag<'unsupported_file' | 'other'>;

// ---- files/create_folder_v2, delete_v2, permanently_delete, move_v2, copy_v2

export interface CreateFolderArg {
  readonly path: string;
  readonly autorename?: boolean;
}

export interface CreateFolderResult {
  readonly metadata: FolderMetadata;
}

export type CreateFolderError = Nested<'path', WriteError>;

export interface DeleteArg {
  readonly path: string;
  readonly parent_rev?: string;
}

/** The deleted entry. `permanently_delete` answers `null`. */
export interface DeleteResult {
  readonly metadata: Metadata;
}

export type DeleteError =
  | Nested<'path_lookup', LookupError>
  | Nested<'path_write', WriteError>
  | Tag<'too_many_write_operations' | 'too_many_files' | 'other'>;

export interface RelocationArg {
  readonly from_path: string;
  readonly to_path: string;
  readonly autorename?: boolean;
  readonly allow_ownership_transfer?: boolean;
  readonly allow_shared_folder?: boolean;
}

export interface RelocationResult {
  readonly metadata: Metadata;
}

export type RelocationError =
  | Nested<'from_lookup', LookupError>
  | Nested<'from_write', WriteError>
  | Nested<'to', WriteError>
  | Tag<
      | 'cant_copy_shared_folder'
      | 'cant_nest_shared_folder'
      | 'cant_move_folder_into_itself'
      | 'too_many_files'
      | 'duplicated_or_nested_paths'
      | 'cant_transfer_ownership'
      | 'insufficient_quota'
      | 'internal_error'
      | 'cant_move_shared_folder'
      | 'other'
    >
  | Nested<'cant_move_into_vault', Tag<'is_shared_folder' | 'other'>>
  | Nested<'cant_move_into_family', Tag<'is_shared_folder' | 'other'>>;
