import { ageMs, type Moment, momentNow } from '../../util/clock.ts';
import type { UploadSessionStartBatchArg, UploadSessionStartBatchResult } from '../../wire/files.ts';
import type { Client } from '../context.ts';
import { parsed, rpcRequest } from '../request.ts';
import type { UploadSession } from './upload-calls.ts';

const ROUTE = 'files/upload_session/start_batch';

/** Maximum number of sessions from one call. */
const SESSIONS_MAX = 1000;

/** How many batches ahead sessions are started: a writer that sends one batch soon sends the next. */
const BATCHES_AHEAD = 8;

/** How long a session stays in the pool, in ms: far less than the two days that a session lives at least. */
const POOLED_MS_MAX = 3_600_000;

/** A pool of empty upload sessions, so that a batch of short contents need not wait for its own. Unused ones lapse. */
export class SessionPool {
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
      request: rpcRequest(ROUTE, arg),
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
