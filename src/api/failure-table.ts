import type {
  CreateSharedLinkWithSettingsError,
  ListSharedLinksError,
  ModifySharedLinkSettingsError,
  RevokeSharedLinkError,
  SharedLinkSettingsError,
} from '../wire/account.ts';
import type {
  AuthError,
  BodyError,
  CreateFolderError,
  DeleteError,
  DownloadError,
  GetMetadataError,
  ListFolderContinueError,
  ListFolderError,
  ListFolderLongpollError,
  LookupError,
  RelocationError,
  Tag,
  UploadError,
  UploadSessionAppendError,
  UploadSessionFinishError,
  UploadSessionLookupError,
  UploadSessionStartError,
  WriteConflictError,
  WriteError,
} from '../wire/files.ts';
import type { ListRevisionsError, RestoreError } from '../wire/revisions.ts';
import type { SearchError } from '../wire/search.ts';
import type { ThumbnailV2Error } from '../wire/thumbnails.ts';
import type { ApiFailure } from './errors.ts';

/**
 * Returns the failure of an error's `tags`, which are ordered from the outermost to the innermost. The innermost known
 * tag decides, so an unknown tag counts as the union around it. A new tag in `wire/` does not compile until it has a row
 * here.
 */
export function failureOfTags(tags: readonly string[], route: string): ApiFailure {
  for (let depth = tags.length - 1; depth >= 0; depth -= 1) {
    const failure = tableFor(tags.slice(0, depth), route).get(tags[depth] ?? '');
    if (failure) return failure;
  }
  return 'bad-request';
}

/** Returns the failure of an error about the token (401). */
export function failureOfAuth(tag: string | undefined): ApiFailure {
  return AUTH.get(tag ?? '') ?? 'unauthorized';
}

type TagOf<E extends Tag<string>> = Exclude<E['.tag'], 'other'>;

const table = <Name extends string>(rows: Record<Name, ApiFailure>): ReadonlyMap<string, ApiFailure> =>
  new Map(Object.entries<ApiFailure>(rows));

// In calls of upload sessions `not_found` means the session, everywhere else a path.
function tableFor(outer: readonly string[], route: string): ReadonlyMap<string, ApiFailure> {
  if (outer.at(-1) === 'conflict') return CONFLICT;
  return route.startsWith('files/upload_session/') && outer[0] !== 'path' ? SESSION : GENERAL;
}

const CONFLICT = table<TagOf<WriteConflictError>>({
  file: 'conflict-file',
  folder: 'conflict-folder',
  file_ancestor: 'conflict-ancestor',
});

const BODY: Record<TagOf<BodyError>, ApiFailure> = {
  payload_too_large: 'too-large',
  content_hash_mismatch: 'hash-mismatch',
};

/** The entry was not found, or has the wrong kind. */
const LOOKUP: Record<TagOf<LookupError>, ApiFailure> = {
  malformed_path: 'malformed-path',
  not_found: 'not-found',
  not_file: 'not-file',
  not_folder: 'not-folder',
  restricted_content: 'restricted',
  unsupported_content_type: 'restricted',
  locked: 'locked',
};

/** The entry cannot be written: by an upload, a commit, a new folder, or at the target of a move. */
const WRITE: Record<TagOf<WriteError>, ApiFailure> = {
  malformed_path: 'malformed-path',
  conflict: 'conflict-file',
  no_write_permission: 'no-permission',
  insufficient_space: 'insufficient-space',
  disallowed_name: 'disallowed-name',
  team_folder: 'no-permission',
  operation_suppressed: 'no-permission',
  too_many_write_operations: 'rate-limited',
  access_restricted: 'no-permission',
};

/** Tags that only contain another error, which has the row. */
type Holder = 'path' | 'path_lookup' | 'path_write' | 'from_lookup' | 'from_write' | 'to';

/** move_v2, copy_v2, delete_v2, permanently_delete */
const TREE: Record<Exclude<TagOf<DeleteError | RelocationError>, Holder>, ApiFailure> = {
  too_many_write_operations: 'rate-limited',
  too_many_files: 'too-many-files',
  cant_copy_shared_folder: 'no-permission',
  cant_nest_shared_folder: 'no-permission',
  cant_move_folder_into_itself: 'into-itself',
  duplicated_or_nested_paths: 'into-itself',
  cant_transfer_ownership: 'no-permission',
  insufficient_quota: 'insufficient-space',
  internal_error: 'unavailable',
  cant_move_shared_folder: 'no-permission',
  cant_move_into_vault: 'no-permission',
  cant_move_into_family: 'no-permission',
};

type ReadError =
  | GetMetadataError
  | ListFolderError
  | ListFolderContinueError
  | ListFolderLongpollError
  | DownloadError;

const CONTENT: Record<Exclude<TagOf<ReadError | UploadError | CreateFolderError>, Holder>, ApiFailure> = {
  ...BODY,
  unsupported_file: 'restricted',
  reset: 'reset',
};

/** search_v2, search/continue_v2 */
const SEARCH: Record<Exclude<TagOf<SearchError>, Holder>, ApiFailure> = {
  invalid_argument: 'bad-request',
  internal_error: 'unavailable',
};

/** list_revisions, restore */
const HISTORY: Record<Exclude<TagOf<ListRevisionsError | RestoreError>, Holder>, ApiFailure> = {
  invalid_before_rev: 'bad-request',
  before_rev_not_supported: 'bad-request',
  invalid_revision: 'revision-gone',
  in_progress: 'rate-limited',
};

/** get_thumbnail_v2; its other tags mean the same as in other calls. */
const THUMBNAIL: Record<
  Exclude<TagOf<ThumbnailV2Error>, Holder | 'access_denied' | 'not_found'>,
  ApiFailure
> = {
  unsupported_extension: 'no-thumbnail',
  unsupported_image: 'no-thumbnail',
  encrypted_content: 'no-thumbnail',
  conversion_error: 'no-thumbnail',
};

type LinkError =
  | CreateSharedLinkWithSettingsError
  | ListSharedLinksError
  | ModifySharedLinkSettingsError
  | RevokeSharedLinkError
  | SharedLinkSettingsError;

/** sharing/* */
const LINK: Record<Exclude<TagOf<LinkError>, Holder>, ApiFailure> = {
  reset: 'reset',
  shared_link_already_exists: 'link-exists',
  settings_error: 'link-settings',
  invalid_settings: 'link-settings',
  not_authorized: 'link-settings',
  email_not_verified: 'no-permission',
  access_denied: 'no-permission',
  banned_member: 'no-permission',
  too_many_shared_folders: 'no-permission',
  shared_link_not_found: 'link-gone',
  shared_link_access_denied: 'no-permission',
  unsupported_link_type: 'link-gone',
  unsupported_parameter_field: 'bad-request',
  shared_link_malformed: 'link-gone',
};

const GENERAL = table({
  ...LOOKUP,
  ...WRITE,
  ...TREE,
  ...CONTENT,
  ...SEARCH,
  ...HISTORY,
  ...THUMBNAIL,
  ...LINK,
});

type SessionError =
  | UploadSessionStartError
  | UploadSessionAppendError
  | UploadSessionLookupError
  | UploadSessionFinishError;

/** upload_session/*, also inside `lookup_failed` */
const SESSION_OWN: Record<Exclude<TagOf<SessionError>, Holder | 'lookup_failed'>, ApiFailure> = {
  ...BODY,
  not_found: 'session-gone',
  closed: 'session-gone',
  not_closed: 'bad-request',
  incorrect_offset: 'incorrect-offset',
  too_large: 'too-large',
  too_many_write_operations: 'rate-limited',
  concurrent_session_data_not_allowed: 'bad-request',
  concurrent_session_close_not_allowed: 'bad-request',
  concurrent_session_invalid_offset: 'bad-request',
  concurrent_session_invalid_data_size: 'bad-request',
  concurrent_session_not_closed: 'bad-request',
  concurrent_session_missing_data: 'bad-request',
};

// `start` and `append` report a full disk or quota by the names of WriteError.
const SESSION = table({ ...WRITE, ...SESSION_OWN });

const AUTH = table<TagOf<AuthError>>({
  invalid_access_token: 'unauthorized',
  invalid_select_user: 'unauthorized',
  invalid_select_admin: 'unauthorized',
  user_suspended: 'unauthorized',
  expired_access_token: 'unauthorized',
  missing_scope: 'not-allowed',
  route_access_denied: 'not-allowed',
});
