import type { FileMetadata } from '../../wire/files.ts';
import { type CommitInfo, commitFields, commitOf } from '../api/commit.ts';
import { failure, refused } from '../api/failures.ts';
import { fileMetadata } from '../api/metadata.ts';
import { contentHash } from '../api/paths.ts';
import { propertiesError } from '../api/property-groups.ts';
import { FINISH, SESSION, UPLOAD } from '../api/refusals.ts';
import { type Route, upload } from '../api/route.ts';
import { boolean, integer, optional, required, string, struct, union, withDefault } from '../api/schema.ts';
import type { StoredFile } from '../storage/storage.ts';

/** UploadSessionCursor: `offset` is how many bytes the client believes it has sent. */
const sessionCursorFields = {
  session_id: required(string()),
  offset: required(integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
};

export const sessionCursor = struct(sessionCursorFields);

/** Returns the cursor as the store's type. */
export function sessionAt(cursor: ReturnType<typeof sessionCursor>): {
  readonly session: string;
  readonly offset: number;
} {
  return { session: cursor.session_id, offset: cursor.offset };
}

/** One call, one commit: nothing is stored unless the whole body has arrived and its hash matches. */
function uploadFile(name: string): Route {
  return upload({
    name,
    scope: 'files.content.write',
    argument: { ...commitFields, content_hash: optional(contentHash) },
    refusals: UPLOAD,
    handle: async ({ argument, caller, storage, incoming }) => {
      const { namespace } = caller.account;
      const commit = commitOf(argument, namespace);
      const file = await storage.upload(namespace, commit, incoming(argument.content_hash));
      return committed(file, argument.property_groups);
    },
  });
}

/** Starts a session. The first bytes may come with it, but not for a concurrent session. */
const start = upload({
  name: 'files/upload_session/start',
  scope: 'files.content.write',
  argument: {
    close: withDefault(boolean, false),
    session_type: optional(union({ sequential: null, concurrent: null })),
    content_hash: optional(contentHash),
  },
  refusals: SESSION,
  handle: async ({ argument, caller, storage, incoming }) => {
    const kind = argument.session_type?.tag ?? 'sequential';
    if (kind === 'concurrent' && argument.close)
      throw refused(failure('concurrent_session_close_not_allowed'));
    const { namespace } = caller.account;
    const body = incoming(argument.content_hash);
    return { session_id: await storage.startSession(namespace, kind, body, argument.close) };
  },
});

/**
 * Appends a part. A part that is sent again after a lost answer is accepted as the same one, or refused with the right
 * offset.
 */
const append = upload({
  name: 'files/upload_session/append_v2',
  scope: 'files.content.write',
  argument: {
    cursor: required(sessionCursor),
    close: withDefault(boolean, false),
    content_hash: optional(contentHash),
  },
  refusals: SESSION,
  handle: async ({ argument, caller, storage, incoming }) => {
    const at = sessionAt(argument.cursor);
    const body = incoming(argument.content_hash);
    await storage.appendSession(caller.account.namespace, at, body, argument.close);
    return null;
  },
});

/** The first version, which old clients still use: its argument is the cursor itself. */
const appendV1 = upload({
  name: 'files/upload_session/append',
  scope: 'files.content.write',
  argument: sessionCursorFields,
  refusals: SESSION,
  handle: async ({ argument, caller, storage, incoming }) => {
    await storage.appendSession(caller.account.namespace, sessionAt(argument), incoming(undefined), false);
    return null;
  },
});

/** Commits a session. The last bytes of a sequential session may come with it. */
const finish = upload({
  name: 'files/upload_session/finish',
  scope: 'files.content.write',
  argument: {
    cursor: required(sessionCursor),
    commit: required(struct(commitFields)),
    content_hash: optional(contentHash),
  },
  refusals: FINISH,
  handle: async ({ argument, caller, storage, incoming }) => {
    const { namespace } = caller.account;
    const commit = commitOf(argument.commit, namespace);
    const at = sessionAt(argument.cursor);
    const file = await storage.finishSession(namespace, at, commit, incoming(argument.content_hash));
    return committed(file, argument.commit.property_groups);
  },
});

export const UPLOAD_ROUTES: readonly Route[] = [
  uploadFile('files/upload'),
  // The deprecated function with which property groups were introduced.
  uploadFile('files/alpha/upload'),
  start,
  append,
  appendV1,
  finish,
];

/** Returns the metadata. The file is stored in any case; a refusal says that it has none of the property groups. */
function committed(file: StoredFile, groups: CommitInfo['property_groups']): FileMetadata {
  const problem = propertiesError(groups);
  if (problem) throw refused(problem);
  return fileMetadata(file);
}
