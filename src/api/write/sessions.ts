import { momentNow } from '../../util/clock.ts';
import { contentHashOf } from '../../util/content-hash.ts';
import type {
  UploadSessionAppendArg,
  UploadSessionStartArg,
  UploadSessionStartResult,
} from '../../wire/files.ts';
import type { Client } from '../context.ts';
import { ApiError } from '../errors.ts';
import type { CallFailure } from '../failure.ts';
import type { Remote, UploadPart, UploadSession } from '../remote.ts';
import { COMMIT_TIMEOUT, parsed, readNull, uploadRequest } from '../request.ts';
import { commitBy } from './commit.ts';
import { finishArg, finishBatch } from './finish-batch.ts';
import { SpareSessions } from './session-pool.ts';
import { stage } from './staging.ts';

const EMPTY = new Uint8Array();

type Sessions = Pick<
  Remote,
  'startSession' | 'appendSession' | 'stageContents' | 'finishSession' | 'finishSessions'
>;

/** Writes content in parts: the parts wait for no commit, and only the last step is one. */
export function sessionsOf(client: Client): Sessions {
  const { caller } = client;
  const spare = new SpareSessions(client);
  return {
    // Lost, it leaves an empty session behind, which lapses: another one does as well.
    startSession(signal) {
      const arg: UploadSessionStartArg = { session_type: { '.tag': 'concurrent' } };
      return caller.call({
        request: uploadRequest('files/upload_session/start', arg, EMPTY),
        lane: 'session',
        signal,
        read: ({ text }) => {
          const { session_id: id } = parsed<UploadSessionStartResult>(text);
          if (typeof id !== 'string' || id === '') throw new TypeError('no session_id');
          return { id };
        },
      });
    },

    async appendSession(session, part, signal) {
      let rest: UploadPart | undefined = part;
      while (rest) rest = await append(client, session, rest, signal);
    },

    // The session is used up by its commit, so a second try can only tell that there was a first.
    async finishSession(commit, signal) {
      const call = uploadRequest('files/upload_session/finish', finishArg(client, commit), EMPTY);
      const request = { ...call, answerTimeout: COMMIT_TIMEOUT };
      return commitBy(
        client,
        { ...commit, started: momentNow(client.clock) },
        { request, lane: 'commit', signal },
      );
    },
    stageContents: (contents, signal) => stage(client, spare, contents, signal),
    finishSessions: (commits, signal, onOutcome) => finishBatch(client, commits, signal, onOutcome),
  };
}

/** Sends a part; what is left of it, when the service says that it has the beginning already. */
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
      // The last part closes the session: a second try finds it closed by the first, whose answer was lost.
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

/** After a try that was cut off: what lies behind `correctOffset`, if that is in the part and not at its beginning. */
function restOf({ offset, bytes, last }: UploadPart, correctOffset = offset): UploadPart | undefined {
  const doneBytes = correctOffset - offset;
  if (doneBytes <= 0 || doneBytes > bytes.length) return undefined;
  return { offset: correctOffset, bytes: bytes.subarray(doneBytes), last };
}

function isClosed(failure: CallFailure): boolean {
  return failure.error.details.summary === 'closed';
}
