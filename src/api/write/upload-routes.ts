import { contentHashOf } from '../../util/content-hash.ts';
import type { UploadSessionAppendArg, UploadSessionStartArg } from '../../wire/files.ts';
import type { Client } from '../context.ts';
import { ApiError } from '../errors.ts';
import type { CallFailure } from '../failure.ts';
import { readNull, uploadRequest } from '../request.ts';
import { singleCommitsOf } from './commit.ts';
import { finishBatch } from './finish-batch.ts';
import { readSession, stagingOf } from './staging.ts';
import type { UploadCalls, UploadPart, UploadSession } from './upload-calls.ts';

const EMPTY = new Uint8Array();

/** `UploadCalls` over HTTP. */
export function uploadCallsOf(client: Client): UploadCalls {
  const { caller } = client;
  return {
    ...singleCommitsOf(client),
    ...stagingOf(client),

    // A lost answer leaves an empty session behind, which lapses; the retry starts another one.
    startSession(signal) {
      const arg: UploadSessionStartArg = { session_type: { '.tag': 'concurrent' } };
      return caller.call({
        request: uploadRequest('files/upload_session/start', arg, EMPTY),
        lane: 'session',
        signal,
        read: readSession,
      });
    },

    async appendSession(session, part, signal) {
      let rest: UploadPart | undefined = part;
      while (rest) rest = await append(client, session, rest, signal);
    },

    finishSessions: (commits, signal, onOutcome) => finishBatch(client, commits, signal, onOutcome),
  };
}

/** Sends a part. Returns the rest of it when the service says that it has the beginning already. */
async function append(
  { caller }: Client,
  session: UploadSession,
  part: UploadPart,
  signal: AbortSignal | undefined,
): Promise<UploadPart | undefined> {
  const { offset, bytes, last, contentHash = contentHashOf(bytes) } = part;
  const arg: UploadSessionAppendArg = {
    cursor: { session_id: session.id, offset },
    close: last,
    content_hash: contentHash,
  };
  try {
    await caller.call({
      request: uploadRequest('files/upload_session/append_v2', arg, bytes),
      lane: 'session',
      signal,
      read: readNull,
      // The last part closes the session: the retry after a lost answer finds it closed.
      resolve: async ({ failure, outcomeUnknown }) =>
        last && outcomeUnknown && isClosed(failure) ? { result: undefined } : undefined,
    });
    return undefined;
  } catch (error) {
    const rest = error instanceof ApiError ? restOf(part, error.details.correctOffset) : undefined;
    if (!rest) throw error;
    return rest.bytes.length === 0 && !last ? undefined : rest;
  }
}

/** Returns the part's bytes from `correctOffset` on; `undefined` when that is not inside the part. */
function restOf({ offset, bytes, last }: UploadPart, correctOffset = offset): UploadPart | undefined {
  const doneBytes = correctOffset - offset;
  if (doneBytes <= 0 || doneBytes > bytes.length) return undefined;
  return { offset: correctOffset, bytes: bytes.subarray(doneBytes), last };
}

function isClosed(failure: CallFailure): boolean {
  return failure.error.details.summary === 'closed';
}
