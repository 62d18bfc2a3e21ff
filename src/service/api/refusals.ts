import { randomBytes } from 'node:crypto';
import type { StorageError, StorageRefusal } from '../storage/storage.ts';
import { BadCall, contention, failure, nested, refused, type WireFailure } from './failures.ts';

type Kind = StorageRefusal['kind'];
type Of<K extends Kind> = Extract<StorageRefusal, { readonly kind: K }>;
type Expression<K extends Kind> =
  | ((
      refusal: Of<K>,
      side: StorageError['side'],
      uploadSession: StorageError['uploadSession'],
    ) => WireFailure)
  | 'never';

/**
 * How one endpoint expresses each kind of refusal in its own error union. Every kind has a row, so that a new kind does
 * not compile until each endpoint has an answer for it. `'never'` marks a kind that the endpoint's calls of the store
 * cannot meet; if one does, it is an internal error (500).
 */
export type RefusalTable = { readonly [K in Kind]: Expression<K> };

/** Returns the error for a call that the store refused: an `ApiRefusal`, a `BadCall`, or the error itself (500). */
export function apiErrorOf(error: StorageError, table: RefusalTable): Error {
  const { refusal } = error;
  if (refusal.kind === 'write' && refusal.tag === 'too_many_write_operations') return contention();
  if (refusal.kind === 'cursor' && refusal.tag === 'malformed')
    return new BadCall('request body: cursor: unsupported cursor type');
  const value = failureOf(error, table);
  return value ? refused(value) : error;
}

/** Returns the refusal as a member of the endpoint's union; `undefined` where the union has none for it. */
export function failureOf(error: StorageError, table: RefusalTable): WireFailure | undefined {
  const { refusal, side, uploadSession } = error;
  // A cast, because the compiler cannot see that the row under a refusal's kind accepts that kind.
  const expression = table[refusal.kind] as Expression<Kind>;
  return expression === 'never' ? undefined : expression(refusal, side, uploadSession);
}

type Lookup = Of<'lookup'>;
type Write = Of<'write'> | Of<'conflict'>;

const lookupError = (refusal: Lookup): WireFailure => failure(refusal.tag);

const writeError = (refusal: Write): WireFailure =>
  refusal.kind === 'conflict' ? nested('conflict', failure(refusal.tag)) : failure(refusal.tag);

/** WriteError has no `not_found`: a destination with an unknown id counts as malformed. */
const unwritable = (): WireFailure => failure('malformed_path');

const sameTag = (refusal: { readonly tag: string }): WireFailure => failure(refusal.tag);

/** For functions that do not use the store; the other tables extend it. */
export const NO_REFUSALS: RefusalTable = {
  lookup: 'never',
  write: 'never',
  conflict: 'never',
  relocation: 'never',
  session: 'never',
  body: 'never',
  cursor: 'never',
  revision: 'never',
};

/** get_metadata, list_folder, download, create_shared_link…: `path: LookupError`. */
export const LOOKUP: RefusalTable = {
  ...NO_REFUSALS,
  lookup: (refusal) => nested('path', lookupError(refusal)),
};

/** list_folder/continue, longpoll: also `reset`. */
export const LISTING: RefusalTable = { ...LOOKUP, cursor: sameTag };

/**
 * UploadWriteFailed: the reason is flattened beside the id of the session that has the bytes, so that only the commit
 * must be repeated. If the bytes were not kept (for example when the path was refused before they arrived), the id is
 * that of an expired session: a client that continues it gets `not_found` and uploads again.
 */
function uploadPath(reason: WireFailure, uploadSession: string = lapsedSession()): WireFailure {
  return {
    tags: ['path', ...reason.tags],
    value: { '.tag': 'path', reason: reason.value, upload_session_id: uploadSession },
  };
}

function lapsedSession(): string {
  return `pid_upload_session:${randomBytes(SESSION_ID_BYTES).toString('base64url')}`;
}

const SESSION_ID_BYTES = 16;

/** upload: UploadError. */
export const UPLOAD: RefusalTable = {
  ...NO_REFUSALS,
  lookup: (_refusal, _side, session) => uploadPath(unwritable(), session),
  write: (refusal, _side, session) => uploadPath(writeError(refusal), session),
  conflict: (refusal, _side, session) => uploadPath(writeError(refusal), session),
  body: sameTag,
};

const sessionError = (refusal: Of<'session'>): WireFailure =>
  failure(refusal.tag, refusal.correctOffset === undefined ? {} : { correct_offset: refusal.correctOffset });

/**
 * upload_session/start and append_v2: the session's own tags. These unions have no member for a full disk; they are
 * open, so WriteError's tag is used, which a client that does not know it reads as `other`.
 */
export const SESSION: RefusalTable = {
  ...NO_REFUSALS,
  session: sessionError,
  body: sameTag,
  write: writeError,
};

/** Members of UploadSessionFinishError itself; all other tags of a session are in `lookup_failed`. */
const FINISH_TAGS: ReadonlySet<string> = new Set([
  'concurrent_session_data_not_allowed',
  'concurrent_session_not_closed',
  'concurrent_session_missing_data',
]);

/** upload_session/finish and each entry of finish_batch_v2. */
export const FINISH: RefusalTable = {
  ...NO_REFUSALS,
  session: (refusal) =>
    FINISH_TAGS.has(refusal.tag) ? failure(refusal.tag) : nested('lookup_failed', sessionError(refusal)),
  lookup: () => nested('path', unwritable()),
  write: (refusal) =>
    refusal.tag === 'too_many_write_operations' ? failure(refusal.tag) : nested('path', writeError(refusal)),
  conflict: (refusal) => nested('path', writeError(refusal)),
  body: sameTag,
};

/** create_folder_v2: `path: WriteError`. */
export const CREATE: RefusalTable = {
  ...NO_REFUSALS,
  lookup: () => nested('path', unwritable()),
  write: (refusal) => nested('path', writeError(refusal)),
  conflict: (refusal) => nested('path', writeError(refusal)),
};

/** delete_v2, permanently_delete: DeleteError. */
export const DELETE: RefusalTable = {
  ...NO_REFUSALS,
  lookup: (refusal) => nested('path_lookup', lookupError(refusal)),
  write: (refusal) => nested('path_write', writeError(refusal)),
  conflict: (refusal) => nested('path_write', writeError(refusal)),
  relocation: sameTag,
};

/** move_v2, copy_v2: RelocationError. */
export const RELOCATE: RefusalTable = {
  ...NO_REFUSALS,
  lookup: (refusal, side) =>
    side === 'to' ? nested('to', unwritable()) : nested('from_lookup', lookupError(refusal)),
  write: (refusal, side) => nested(side === 'to' ? 'to' : 'from_write', writeError(refusal)),
  conflict: (refusal, side) => nested(side === 'to' ? 'to' : 'from_write', writeError(refusal)),
  relocation: sameTag,
};

/** list_revisions: also `invalid_before_rev`. */
export const REVISIONS: RefusalTable = { ...LOOKUP, revision: sameTag };

/** restore: RestoreError. */
export const RESTORE: RefusalTable = {
  ...NO_REFUSALS,
  lookup: (refusal) => nested('path_lookup', lookupError(refusal)),
  write: (refusal) => nested('path_write', writeError(refusal)),
  conflict: (refusal) => nested('path_write', writeError(refusal)),
  revision: sameTag,
};
