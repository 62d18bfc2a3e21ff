import { commitFields, commitOf } from '../commit.ts';
import { failure, refused } from '../failures.ts';
import { fileMetadata } from '../metadata.ts';
import { contentHash } from '../path-schemas.ts';
import { FINISH, failureOf, SESSION, UPLOAD } from '../refusals.ts';
import { type Route, rpc, upload } from '../route.ts';
import { boolean, integer, list, optional, required, string, struct, union, withDefault } from '../schema.ts';
import { type Commit, StorageError, type StoredFile } from '../storage/storage.ts';

/** One call, one commit: nothing is stored unless the whole body came and its hash is right. */
const uploadFile = upload({
  name: 'files/upload',
  scope: 'files.content.write',
  argument: { ...commitFields, content_hash: optional(contentHash) },
  refusals: UPLOAD,
  handle: async ({ argument, caller, storage, incoming }) => {
    const { namespace } = caller.account;
    const commit = commitOf(argument, namespace);
    return fileMetadata(await storage.upload(namespace, commit, incoming(argument.content_hash)));
  },
});

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

/** UploadSessionCursor: `offset` is how much the client believes to have sent. */
const cursor = struct({
  session_id: required(string()),
  offset: required(integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
});

/** Sent again after a lost answer, a part is refused with the right offset, or is taken as the same. */
const append = upload({
  name: 'files/upload_session/append_v2',
  scope: 'files.content.write',
  argument: {
    cursor: required(cursor),
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

/** May bring the last bytes of a sequential session. */
const finish = upload({
  name: 'files/upload_session/finish',
  scope: 'files.content.write',
  argument: {
    cursor: required(cursor),
    commit: required(struct(commitFields)),
    content_hash: optional(contentHash),
  },
  refusals: FINISH,
  handle: async ({ argument, caller, storage, incoming }) => {
    const { namespace } = caller.account;
    const commit = commitOf(argument.commit, namespace);
    const at = sessionAt(argument.cursor);
    return fileMetadata(await storage.finishSession(namespace, at, commit, incoming(argument.content_hash)));
  },
});

/** As many as the real service takes. */
const BATCH_MAX_ENTRIES = 1000;

const batchEntry = struct({
  cursor: required(cursor),
  commit: required(struct(commitFields)),
  content_hash: optional(contentHash),
});

/** Answers at once, unlike its first version; sessions must have been closed. */
const finishBatch = rpc({
  name: 'files/upload_session/finish_batch_v2',
  scope: 'files.content.write',
  argument: { entries: required(list(batchEntry, { max: BATCH_MAX_ENTRIES })) },
  refusals: FINISH,
  handle: async ({ argument, caller, storage }) => {
    const { namespace } = caller.account;
    const commits = argument.entries.map((entry) => batchCommit(entry, namespace));
    const sendable = commits.filter((commit): commit is BatchCommit => !(commit instanceof StorageError));
    const outcomes = [...(await storage.finishSessions(namespace, sendable))];
    const inOrder = commits.map((commit) => (commit instanceof StorageError ? commit : outcomes.shift()));
    return { entries: inOrder.map(batchResult) };
  },
});

export const UPLOAD_ROUTES: readonly Route[] = [uploadFile, start, append, finish, finishBatch];

function sessionAt(at: ReturnType<typeof cursor>): { session: string; offset: number } {
  return { session: at.session_id, offset: at.offset };
}

interface BatchCommit {
  readonly session: string;
  readonly offset: number;
  readonly commit: Commit;
}

/** A path that cannot be written to fails its own entry and no other. */
function batchCommit(entry: ReturnType<typeof batchEntry>, namespace: string): BatchCommit | StorageError {
  try {
    return { ...sessionAt(entry.cursor), commit: commitOf(entry.commit, namespace) };
  } catch (error) {
    if (error instanceof StorageError) return error;
    throw error;
  }
}

function batchResult(outcome: StoredFile | StorageError | undefined): object {
  if (outcome === undefined) throw new Error('the store gave fewer outcomes than it was given commits');
  if (!(outcome instanceof StorageError)) return { '.tag': 'success', ...fileMetadata(outcome) };
  const told = failureOf(outcome, FINISH);
  if (!told) throw outcome;
  return { '.tag': 'failure', failure: told.value };
}
