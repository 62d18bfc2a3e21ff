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

/** UploadSessionCursor: `offset` is how much the client believes to have sent. */
const sessionCursorFields = {
  session_id: required(string()),
  offset: required(integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
};

export const sessionCursor = struct(sessionCursorFields);

/** The cursor in the store's terms. */
export function sessionAt(cursor: ReturnType<typeof sessionCursor>): {
  readonly session: string;
  readonly offset: number;
} {
  return { session: cursor.session_id, offset: cursor.offset };
}

/** One call, one commit: nothing is stored unless the whole body came and its hash is right. */
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

/** The first bytes may come with it; those of a concurrent session may not. */
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

/** Sent again after a lost answer, a part is refused with the right offset, or is taken as the same. */
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

/** The first version, still used by old clients: its argument is the cursor itself. */
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

/** May bring the last bytes of a sequential session. */
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
  // The deprecated name under which property groups were tried out.
  uploadFile('files/alpha/upload'),
  start,
  append,
  appendV1,
  finish,
];

/** The file is there either way: a refusal says that it has none of the groups. */
function committed(file: StoredFile, groups: CommitInfo['property_groups']): FileMetadata {
  const told = propertiesError(groups);
  if (told) throw refused(told);
  return fileMetadata(file);
}
