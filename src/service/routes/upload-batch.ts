import { type CommitInfo, commitFields, commitOf } from '../api/commit.ts';
import { fileMetadata } from '../api/metadata.ts';
import { contentHash } from '../api/paths.ts';
import { propertiesError } from '../api/property-groups.ts';
import { FINISH, failureOf, SESSION } from '../api/refusals.ts';
import { type Route, rpc, upload } from '../api/route.ts';
import { boolean, integer, list, optional, required, struct, union, withDefault } from '../api/schema.ts';
import { inChunks, outcomesOf } from '../jobs/batch.ts';
import {
  type Commit,
  type Incoming,
  type Outcome,
  type SessionPiece,
  StorageError,
  type StoredFile,
} from '../storage/storage.ts';
import { checkRoute, complete, launch } from './jobs.ts';
import { sessionAt, sessionCursor } from './upload.ts';

/** Maximum number of entries, as at the real service. */
const BATCH_ENTRIES_MAX = 1000;

/** Starts many sessions without bytes. */
const startBatch = rpc({
  name: 'files/upload_session/start_batch',
  scope: 'files.content.write',
  argument: {
    num_sessions: required(integer({ min: 1, max: BATCH_ENTRIES_MAX })),
    session_type: optional(union({ sequential: null, concurrent: null })),
  },
  refusals: SESSION,
  handle: async ({ argument, caller, storage }) => {
    const kind = argument.session_type?.tag ?? 'sequential';
    const starts = Array.from({ length: argument.num_sessions }, () =>
      storage.startSession(caller.account.namespace, kind, noBytes(), false),
    );
    return { session_ids: await Promise.all(starts) };
  },
});

const piece = struct({
  cursor: required(sessionCursor),
  length: required(integer({ min: 0, max: Number.MAX_SAFE_INTEGER })),
  close: withDefault(boolean, false),
});

/** Appends parts of several sessions in one body. Nothing is appended unless the body has exactly their length. */
const appendBatch = upload({
  name: 'files/upload_session/append_batch',
  scope: 'files.content.write',
  argument: {
    entries: required(list(piece, { max: BATCH_ENTRIES_MAX })),
    content_hash: optional(contentHash),
  },
  refusals: SESSION,
  handle: async ({ argument, caller, storage, incoming }) => {
    const pieces = argument.entries.map(pieceOf);
    const body = incoming(argument.content_hash);
    const outcomes = await storage.appendSessions(caller.account.namespace, pieces, body);
    return { entries: outcomes.map(appendResult) };
  },
});

const finishEntry = struct({
  cursor: required(sessionCursor),
  commit: required(struct(commitFields)),
  content_hash: optional(contentHash),
});

type FinishEntry = ReturnType<typeof finishEntry>;

const finishArgument = { entries: required(list(finishEntry, { max: BATCH_ENTRIES_MAX })) };

/** Commits sessions without a job, unlike its first version; the sessions must be closed. */
const finishBatch = rpc({
  name: 'files/upload_session/finish_batch_v2',
  scope: 'files.content.write',
  argument: finishArgument,
  refusals: FINISH,
  handle: async ({ argument, caller, storage }) => {
    const { namespace } = caller.account;
    const outcomes = await outcomesOf(argument.entries, {
      prepare: (entry) => sessionCommit(entry, namespace),
      run: (commits) => storage.finishSessions(namespace, commits),
    });
    return { entries: finishResults(argument.entries, outcomes) };
  },
});

const FINISH_BATCH = 'files/upload_session/finish_batch';

/** The first version: commits sessions by a job. */
const finishBatchV1 = rpc({
  name: FINISH_BATCH,
  scope: 'files.content.write',
  argument: finishArgument,
  refusals: FINISH,
  handle: (call) => {
    const { argument, caller, storage } = call;
    const { namespace } = caller.account;
    return launch(call, FINISH_BATCH, async (closing) => {
      const outcomes = await inChunks(argument.entries, closing, {
        prepare: (entry) => sessionCommit(entry, namespace),
        run: (commits) => storage.finishSessions(namespace, commits),
      });
      return complete(finishResults(argument.entries, outcomes));
    });
  },
});

export const UPLOAD_BATCH_ROUTES: readonly Route[] = [
  startBatch,
  appendBatch,
  finishBatch,
  finishBatchV1,
  checkRoute('files/upload_session/finish_batch/check', FINISH_BATCH),
];

function noBytes(): Incoming {
  return { bytes: (async function* () {})(), bytesMax: 0 };
}

function pieceOf({ cursor, length, close }: ReturnType<typeof piece>): SessionPiece {
  return { ...sessionAt(cursor), sizeBytes: length, close };
}

function appendResult(outcome: Outcome<'appended'>): object {
  if (!(outcome instanceof StorageError)) return { '.tag': 'success' };
  const refusal = failureOf(outcome, SESSION);
  if (!refusal) throw outcome;
  return { '.tag': 'failure', failure: refusal.value };
}

/** Returns the commit of a session. Throws the refusal of its path, which fails only this entry. */
function sessionCommit(
  { cursor, commit }: FinishEntry,
  namespace: string,
): { readonly session: string; readonly offset: number; readonly commit: Commit } {
  return { ...sessionAt(cursor), commit: commitOf(commit, namespace) };
}

function finishResults(entries: readonly FinishEntry[], outcomes: readonly Outcome<StoredFile>[]): object[] {
  return outcomes.map((outcome, index) => finishResult(outcome, entries[index]?.commit.property_groups));
}

function finishResult(outcome: Outcome<StoredFile>, groups: CommitInfo['property_groups']): object {
  const refusal = outcome instanceof StorageError ? failureOf(outcome, FINISH) : propertiesError(groups);
  if (refusal) return { '.tag': 'failure', failure: refusal.value };
  if (outcome instanceof StorageError) throw outcome;
  return { '.tag': 'success', ...fileMetadata(outcome) };
}
