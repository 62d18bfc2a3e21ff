import { contentHashOf } from '../../util/content-hash.ts';
import type {
  UploadSessionAppendBatchArg,
  UploadSessionAppendBatchResult,
  UploadSessionStartArg,
  UploadSessionStartResult,
} from '../../wire/files.ts';
import type { Client } from '../context.ts';
import { failureOfEntry } from '../failure.ts';
import type { ShortContent, UploadSession } from '../remote.ts';
import { parsed, uploadRequest } from '../request.ts';
import type { SpareSessions } from './session-pool.ts';

const START = 'files/upload_session/start';
const APPEND_BATCH = 'files/upload_session/append_batch';

/** The argument is a header, and what stands in front of a service may take no more than 8 KiB of one. */
const ARGUMENT_CHARACTERS_MAX = 7000;

/** Of one entry in the argument, beside the session's id. */
const ENTRY_CHARACTERS = 80;

/** As `Remote.stageContents` says. */
export async function stage(
  client: Client,
  spare: SpareSessions,
  contents: readonly ShortContent[],
  signal: AbortSignal | undefined,
): Promise<readonly (UploadSession | Error)[]> {
  const [sole] = contents;
  if (!sole) return [];
  if (contents.length === 1) return [await startClosed(client, sole, signal)];
  const sessions = await spare.take(contents.length, signal);
  const filled = sessions.flatMap((session, index) => {
    const content = contents[index];
    return content ? [{ session, ...content }] : [];
  });
  const outcomes = await Promise.all(runsOf(filled).map((run) => appendBatch(client, run, signal)));
  return outcomes.flat();
}

/** Lost, it leaves a session behind, which lapses: another one does as well. */
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

/** Cut where the argument would become too long for a header. */
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
        // Nobody else knows the session: what closed it is an earlier try, whose answer was lost.
        return mayHaveArrived && error.details.summary === 'closed' ? session : error;
      });
    },
    resolve: async ({ outcomeUnknown }) => {
      mayHaveArrived ||= outcomeUnknown;
      return undefined;
    },
  });
}
