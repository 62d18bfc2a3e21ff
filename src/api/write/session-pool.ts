import { ageMs, type Moment, momentNow } from '../../util/clock.ts';
import type { UploadSessionStartBatchArg, UploadSessionStartBatchResult } from '../../wire/files.ts';
import type { Client } from '../context.ts';
import type { UploadSession } from '../remote.ts';
import { parsed, rpcRequest } from '../request.ts';

const ROUTE = 'files/upload_session/start_batch';

/** What one call gives. */
const SESSIONS_MAX = 1000;

/** How many times what was wanted is asked for: those that send one batch soon send the next. */
const AHEAD = 8;

/** A session lives for two days at least (service-api.md §9.5); a spare one is used long before its end. */
const USED_WITHIN_MS = 3_600_000;

/** Empty upload sessions in stock, so that a batch of short contents need not ask for its own. Unused ones lapse. */
export class SpareSessions {
  #stock: { readonly session: UploadSession; readonly asked: Moment }[] = [];
  #refill: Promise<void> | undefined;

  constructor(private readonly client: Client) {}

  /** `count` empty sequential sessions that nobody else has. Throws `ApiError`, or the signal's reason. */
  async take(count: number, signal: AbortSignal | undefined): Promise<readonly UploadSession[]> {
    const { clock } = this.client;
    this.#stock = this.#stock.filter(({ asked }) => ageMs(clock, asked) < USED_WITHIN_MS);
    // Those who find one under way wait for it: it brings more than they want.
    if (this.#stock.length < count) await this.#refill;
    const missing = count - this.#stock.length;
    if (missing > 0) await this.#start(Math.min(SESSIONS_MAX, missing + AHEAD * count), signal);
    const taken = this.#stock.splice(0, count).map(({ session }) => session);
    if (taken.length < count) return [...taken, ...(await this.take(count - taken.length, signal))];
    if (this.#stock.length < count) this.#refillFor(count);
    return taken;
  }

  #refillFor(count: number): void {
    this.#refill ??= this.#start(Math.min(SESSIONS_MAX, AHEAD * count), undefined)
      // Whoever needs them asks again, and is told.
      .catch(() => {})
      .finally(() => {
        this.#refill = undefined;
      });
  }

  async #start(count: number, signal: AbortSignal | undefined): Promise<void> {
    const { caller, clock } = this.client;
    const arg: UploadSessionStartBatchArg = { num_sessions: count };
    const asked = momentNow(clock);
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
    for (const id of ids) this.#stock.push({ session: { id }, asked });
  }
}
