import { contentHashOf } from '../../util/content-hash.ts';
import type {
  UploadSessionAppendBatchArg,
  UploadSessionAppendBatchResult,
  UploadSessionStartArg,
  UploadSessionStartResult,
} from '../../wire/files.ts';
import type { Client } from '../context.ts';
import { failureOfEntry } from '../failure.ts';
import { parsed, uploadRequest } from '../request.ts';
import type { SessionPool } from './session-pool.ts';
import type { ShortContent, UploadSession } from './upload-calls.ts';

const START = 'files/upload_session/start';
const APPEND_BATCH = 'files/upload_session/append_batch';

/** Maximum length of an argument. It is sent as a header, and a proxy may refuse one of more than 8 KiB. */
const ARGUMENT_CHARACTERS_MAX = 7000;

/** Length of one entry in the argument, without the session's id. */
const ENTRY_CHARACTERS = 80;

/** Implements `UploadCalls.stageContents`. */
export async function stage(
  client: Client,
  pool: SessionPool,
  contents: readonly ShortContent[],
  signal: AbortSignal | undefined,
): Promise<readonly (UploadSession | Error)[]> {
  const [sole] = contents;
  if (!sole) return [];
  if (contents.length === 1) return [await startClosed(client, sole, signal)];
  const sessions = await pool.take(contents.length, signal);
  const filled = sessions.flatMap((session, index) => {
    const content = contents[index];
    return content ? [{ session, ...content }] : [];
  });
  const outcomes = await Promise.all(runsOf(filled).map((run) => appendBatch(client, run, signal)));
  return outcomes.flat();
}

/** Stages one content. A lost answer leaves a session behind, which lapses; the retry starts another one. */
function startClosed(
  { caller }: Client,
  { bytes, contentHash }: ShortContent,
  signal: AbortSignal | undefined,
): Promise<UploadSession> {
  const arg: UploadSessionStartArg = { close: true, content_hash: contentHash };
  return caller.call({
    request: uploadRequest(START, arg, bytes),
    lane: 'staging',
    signal,
    read: ({ text }) => {
      const { session_id: id } = parsed<UploadSessionStartResult>(text);
      if (typeof id !== 'string' || id === '') throw new TypeError('no session_id');
      return { id };
    },
  });
}

interface Filled extends ShortContent {
  readonly session: UploadSession;
}

/** Splits the contents so that each argument fits into a header. */
function runsOf(filled: readonly Filled[]): Filled[][] {
  const runs: Filled[][] = [];
  let characters = Number.POSITIVE_INFINITY;
  for (const one of filled) {
    characters += one.session.id.length + ENTRY_CHARACTERS;
    if (characters > ARGUMENT_CHARACTERS_MAX) {
      runs.push([]);
      characters = one.session.id.length + ENTRY_CHARACTERS;
    }
    runs.at(-1)?.push(one);
  }
  return runs;
}

function appendBatch(
  { caller }: Client,
  filled: readonly Filled[],
  signal: AbortSignal | undefined,
): Promise<(UploadSession | Error)[]> {
  const body = Buffer.concat(filled.map(({ bytes }) => bytes));
  const arg: UploadSessionAppendBatchArg = {
    entries: filled.map(({ session, bytes }) => ({
      cursor: { session_id: session.id, offset: 0 },
      length: bytes.length,
      close: true,
    })),
    content_hash: contentHashOf(body),
  };
  let mayHaveArrived = false;
  return caller.call({
    request: uploadRequest(APPEND_BATCH, arg, body),
    lane: 'staging',
    signal,
    read: (answer) => {
      const { entries } = parsed<UploadSessionAppendBatchResult>(answer.text);
      if (entries.length !== filled.length) throw new TypeError('not one outcome for each entry');
      return filled.map(({ session }, index) => {
        const entry = entries[index];
        if (entry?.['.tag'] === 'success') return session;
        const { error } = failureOfEntry(entry?.failure, APPEND_BATCH, answer);
        // No other client knows the session: an earlier try with a lost answer has closed it.
        return mayHaveArrived && error.details.summary === 'closed' ? session : error;
      });
    },
    resolve: async ({ outcomeUnknown }) => {
      mayHaveArrived ||= outcomeUnknown;
      return undefined;
    },
  });
}
