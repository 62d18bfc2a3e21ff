import { ageMs, type Moment, momentNow } from '../../util/clock.ts';
import { contentHashOf } from '../../util/content-hash.ts';
import type {
  UploadSessionAppendBatchArg,
  UploadSessionAppendBatchResult,
  UploadSessionStartArg,
  UploadSessionStartBatchArg,
  UploadSessionStartBatchResult,
  UploadSessionStartResult,
} from '../../wire/files.ts';
import type { Client } from '../context.ts';
import { failureOfEntry } from '../failure.ts';
import { parsed, rpcRequest, uploadRequest } from '../request.ts';
import { sharedStaging } from './shared-staging.ts';
import type { ShortContent, UploadCalls, UploadSession } from './upload-calls.ts';

const START = 'files/upload_session/start';
const START_BATCH = 'files/upload_session/start_batch';
const APPEND_BATCH = 'files/upload_session/append_batch';

/** Maximum length of an argument. It is sent as a header, and a proxy may refuse one of more than 8 KiB. */
const ARGUMENT_CHARACTERS_MAX = 7000;

/** Length of one entry in the argument, without the session's id. */
const ENTRY_CHARACTERS = 80;

/** Maximum number of sessions from one call. */
const SESSIONS_MAX = 1000;

/** How many batches ahead sessions are started: a writer that sends one batch soon sends the next. */
const BATCHES_AHEAD = 8;

/** How long a session stays in the pool, in ms: far less than the two days that a session lives at least. */
const POOLED_MS_MAX = 3_600_000;

/** Returns the method that sends short contents ahead of their commits. */
export function stagingOf(client: Client): Pick<UploadCalls, 'stageContents'> {
  const pool = new SessionPool(client);
  const stageContents: UploadCalls['stageContents'] = (contents, signal) =>
    stage(client, pool, contents, signal);
  const { turns } = client;
  return { stageContents: turns ? sharedStaging(turns, stageContents) : stageContents };
}

async function stage(
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
    read: readSession,
  });
}

/** Reads the answer of `upload_session/start`. */
export function readSession({ text }: { readonly text: string }): UploadSession {
  const { session_id: id } = parsed<UploadSessionStartResult>(text);
  if (typeof id !== 'string' || id === '') throw new TypeError('no session_id');
  return { id };
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

/** A pool of empty upload sessions, so that a batch of short contents need not wait for its own. Unused ones lapse. */
class SessionPool {
  #sessions: { readonly session: UploadSession; readonly startedAt: Moment }[] = [];
  #refill: Promise<void> | undefined;

  constructor(private readonly client: Client) {}

  /** Takes `count` empty sequential sessions out of the pool. Throws `ApiError`, or the signal's reason. */
  async take(count: number, signal: AbortSignal | undefined): Promise<readonly UploadSession[]> {
    const { clock } = this.client;
    this.#sessions = this.#sessions.filter(({ startedAt }) => ageMs(clock, startedAt) < POOLED_MS_MAX);
    // A refill under way brings more than is wanted here.
    if (this.#sessions.length < count) await this.#refill;
    const missing = count - this.#sessions.length;
    if (missing > 0) await this.#start(Math.min(SESSIONS_MAX, missing + BATCHES_AHEAD * count), signal);
    const taken = this.#sessions.splice(0, count).map(({ session }) => session);
    if (taken.length < count) return [...taken, ...(await this.take(count - taken.length, signal))];
    if (this.#sessions.length < count) this.#refillFor(count);
    return taken;
  }

  #refillFor(count: number): void {
    this.#refill ??= this.#start(Math.min(SESSIONS_MAX, BATCHES_AHEAD * count), undefined)
      // The next `take` asks again, and throws.
      .catch(() => {})
      .finally(() => {
        this.#refill = undefined;
      });
  }

  async #start(count: number, signal: AbortSignal | undefined): Promise<void> {
    const { caller, clock } = this.client;
    const arg: UploadSessionStartBatchArg = { num_sessions: count };
    const startedAt = momentNow(clock);
    const ids = await caller.call({
      request: rpcRequest(START_BATCH, arg),
      lane: 'staging',
      signal,
      read: ({ text }) => {
        const { session_ids } = parsed<UploadSessionStartBatchResult>(text);
        if (session_ids.length === 0 || session_ids.some((id) => typeof id !== 'string' || id === ''))
          throw new TypeError('no session_ids');
        return session_ids;
      },
    });
    for (const id of ids) this.#sessions.push({ session: { id }, startedAt });
  }
}
