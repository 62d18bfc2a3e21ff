import { ageMs, type Clock, elapsedMs, type Instant, type Moment, momentNow } from '../util/clock.ts';
import { type LinkedSignal, linkedSignal } from '../util/linked-signal.ts';
import type { Log } from '../util/log.ts';
import type { Meter } from '../util/meter.ts';
import type { CallAvailability } from './availability.ts';
import { counted } from './count.ts';
import { ApiError, isOutage } from './errors.ts';
import { CallFailure, failureOfAnswer, failureOfJunk, failureOfLoss } from './failure.ts';
import { type Http, type HttpAnswer, type HttpHead, type HttpStream, LostConnection } from './http.ts';
import type { CallQueue, Lane } from './queue.ts';
import type { CallRequest } from './request.ts';
import { retryVerdict, type Verdict } from './retry.ts';
import type { Tokens } from './token.ts';
import type { CommitFlight } from './write/commit-concurrency.ts';

/** Tries that may follow at once on one that met another commit of ours. */
const COLLISIONS_MAX = 3;

/** How long the last try may go on after the deadline; and the least time that any try is given. */
const LAST_TRY_MS = { max: 25_000, min: 5_000 };

/** A body of this size may take longer to send than the deadline is long: trouble begins when the try has failed. */
const LONG_BODY_BYTES = 256 * 1024;

/** What a call needs of the world. */
export interface CallerWorld {
  readonly http: Http;
  readonly tokens: Tokens;
  readonly queue: CallQueue;
  readonly availability: CallAvailability;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** In [0, 1). */
  readonly random: () => number;
  /** How long after its trouble began a call is still tried again. */
  readonly deadlineMs: number;
  /** Aborted when the client closes. */
  readonly signal: AbortSignal;
}

/**
 * The trouble that a call is in, since the try began that failed first, or since it was held back. Calls made to find
 * out how it ended share it, and with it the deadline.
 */
export interface Trouble {
  since?: Instant;
}

/** Where a call stands after a try that failed. */
export interface Situation {
  readonly failure: CallFailure;
  /** This try, or one before it, may have done what it was to do. */
  readonly outcomeUnknown: boolean;
  readonly trouble: Trouble;
}

export interface Call<T> {
  readonly request: CallRequest;
  /** `undefined`: the call waits for nothing, and goes without a token (the long poll). */
  readonly lane: Lane | undefined;
  /** Makes the result of an answer of 200. What it throws, but for an `ApiError`, counts as an answer without sense. */
  readonly read: (answer: HttpAnswer) => T;
  /**
   * Asked after a failure, before the next try and before giving up: the result all the same, when what
   * is there now shows that the call did its work.
   */
  readonly resolve?: (situation: Situation) => Promise<{ readonly result: T } | undefined>;
  readonly signal?: AbortSignal | undefined;
  readonly trouble?: Trouble;
}

/** The answer to a download, before its bytes. `release` must be called when they are read or not wanted. */
export interface Opened {
  readonly stream: HttpStream;
  readonly signal: AbortSignal;
  readonly release: () => void;
}

/**
 * Makes calls of the service: in their turn, with a token, tried again as `retry.ts` says. Throws
 * `ApiError`, or the signal's reason.
 */
export class Caller {
  /** What the service's clock said in its last answer, and when. */
  #said: { readonly serviceMs: number; readonly at: Moment };

  constructor(private readonly world: CallerWorld) {
    this.#said = { serviceMs: world.clock.now(), at: momentNow(world.clock) };
  }

  /** A call whose answer is read whole. */
  async call<T>(call: Call<T>): Promise<T> {
    const life = this.#life(call.signal);
    try {
      return await this.#noted(call, life.signal, async (request, signal) => {
        const answer = await this.world.http.send(request, signal);
        this.#note(answer);
        if (answer.status !== 200) throw this.#failure(answer, request);
        return readOr(() => call.read(answer), answer, call.request.route);
      });
    } finally {
      life.release();
    }
  }

  /** A download: the call ends with the head of the answer. The signal counts until `release`. */
  async open<T>(
    call: Omit<Call<T>, 'read' | 'resolve'> & {
      readonly read: (head: HttpHead, opened: Opened) => T;
    },
  ): Promise<T> {
    const life = this.#life(call.signal);
    try {
      return await this.#noted(call, life.signal, async (request, signal) => {
        const answer = await this.world.http.open(request, signal);
        this.#note(answer);
        if ('text' in answer) throw this.#failure(answer, request);
        try {
          return readOr(() => call.read(answer, { stream: answer, ...life }), answer, call.request.route);
        } catch (failure) {
          answer.cancel();
          throw failure;
        }
      });
    } catch (failure) {
      life.release();
      throw failure;
    }
  }

  /** How many short uploads may be under way at once. */
  get uploadsAtOnce(): number {
    return this.world.queue.uploadsAtOnce;
  }

  /** `moment` by the service's clock, as its last answer told it; to compare with times that it gives. */
  serviceTime(moment: Moment): number {
    const { clock } = this.world;
    return this.#said.serviceMs + ageMs(clock, this.#said.at) - ageMs(clock, moment);
  }

  /** As `#persist`, and notes whether the service answered. */
  async #noted<T>(
    call: Omit<Call<T>, 'read'>,
    signal: AbortSignal,
    send: (request: CallRequest, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    // A long poll needs no token: its answer does not show that other calls get one.
    if (!call.lane) return this.#persist(call, signal, send);
    const { availability } = this.world;
    try {
      const result = await this.#persist(call, signal, send);
      availability.succeeded();
      return result;
    } catch (error) {
      if (!signal.aborted) availability.failed(error);
      throw error;
    }
  }

  /** Tries until there is a result, a last word, or no more time; finds out what became of tries without an answer. */
  async #persist<T>(
    call: Omit<Call<T>, 'read'>,
    signal: AbortSignal,
    send: (request: CallRequest, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { queue, clock } = this.world;
    const trouble = call.trouble ?? {};
    // Being held back is trouble too: the person waits all the same.
    if (call.lane && queue.paused) trouble.since ??= clock.instant();
    let outcomeUnknown = false;
    for (let number = 1; ; number += 1) {
      const flight = { overlapped: false };
      const outcome = await this.#try({ ...call, trouble }, signal, send, flight);
      if (!(outcome instanceof CallFailure)) return outcome.result;
      outcomeUnknown ||= outcome.outcomeUnknown;
      if (flight.overlapped && outcome.reason === 'contention') {
        queue.collided();
        // It stood in its own way: what it met ends soon, and nobody has to be waited for.
        if (number <= COLLISIONS_MAX) continue;
      }
      const verdict = await this.#wait(call, outcome, { number, trouble, signal });
      const resolved = await this.#resolve(call, { failure: outcome, outcomeUnknown, trouble });
      if (resolved) return resolved.result;
      if (!verdict.retry) throw outcome.final(outcomeUnknown, verdict.retryAfterMs);
    }
  }

  /** Waits until the next try is due, if there is one. */
  async #wait(
    call: { readonly lane: Lane | undefined; readonly request: CallRequest },
    failure: CallFailure,
    at: { readonly number: number; readonly trouble: Trouble; readonly signal: AbortSignal },
  ): Promise<Verdict> {
    const { clock, queue, log, meter, random, deadlineMs } = this.world;
    const troubleMs = at.trouble.since === undefined ? 0 : elapsedMs(clock, at.trouble.since);
    const verdict = retryVerdict(failure, { number: at.number, elapsedMs: troubleMs, deadlineMs }, random());
    const { lane, request } = call;
    if (lane && failure.reason === 'rate-limited') queue.limited(lane);
    const fields = { route: request.route, reason: failure.reason, try: at.number };
    const { requestId } = failure.error.details;
    if (!verdict.retry) {
      if (failure.reason !== 'refused')
        log.warn('a call of the storage service failed', { ...fields, requestId });
      if (lane && (failure.reason === 'lost' || failure.reason === 'server'))
        queue.refuseLongWaiting(failure.error);
      if (!lane || verdict.retryAfterMs === undefined) return verdict;
      queue.pause(verdict.retryAfterMs);
      return { retry: false, retryAfterMs: queue.closedMs };
    }
    meter.retried(failure.reason);
    log.warn('a call of the storage service is tried again', {
      ...fields,
      delayMs: verdict.delayMs,
      requestId,
    });
    if (lane && verdict.pausesAccount) queue.pause(verdict.delayMs);
    await clock.sleep(verdict.delayMs, at.signal);
    return verdict;
  }

  /** What the call itself can find out about a try that failed. */
  async #resolve<T>(
    call: Omit<Call<T>, 'read'>,
    situation: Situation,
  ): Promise<{ readonly result: T } | undefined> {
    if (!call.resolve) return undefined;
    try {
      return await call.resolve(situation);
    } catch (cause) {
      if (!(cause instanceof ApiError)) throw cause;
      // We could not find out: the failure itself tells more than this one.
      if (isOutage(cause)) throw situation.failure.error;
      // The question was refused, which is no sign that the work was done.
      return undefined;
    }
  }

  /** One try, in its turn. What another try could change comes back; all else is thrown. */
  async #try<T>(
    call: Pick<Call<T>, 'lane' | 'request'> & { readonly trouble: Trouble },
    signal: AbortSignal,
    send: (request: CallRequest, signal: AbortSignal) => Promise<T>,
    flight: CommitFlight,
  ): Promise<{ readonly result: T } | CallFailure> {
    const { lane, request, trouble } = call;
    const { clock } = this.world;
    let began = clock.instant();
    const sendCounted = (authorized: CallRequest) =>
      counted(this.world, request.route, signal, () => send(authorized, signal));
    const inTurn = () => {
      began = clock.instant();
      return this.#authorized(this.#limited(request, trouble), signal, sendCounted);
    };
    const job = lane ? inTurn : () => sendCounted(request);
    try {
      const result = await (lane ? this.world.queue.run(lane, job, signal, flight) : job());
      if (lane) this.world.queue.succeeded(lane, flight);
      return { result };
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      const failure = cause instanceof LostConnection ? failureOfLoss(cause, request.route) : cause;
      if (!(failure instanceof CallFailure)) throw failure;
      trouble.since ??= sizeOf(request) > LONG_BODY_BYTES ? clock.instant() : began;
      return failure;
    }
  }

  /** The request with what is left of the call's time for its answer. */
  #limited(request: CallRequest, { since }: Trouble): CallRequest {
    if (request.answerTimeout === 'slow') return request;
    const { clock, deadlineMs } = this.world;
    const leftMs = deadlineMs + LAST_TRY_MS.max - (since === undefined ? 0 : elapsedMs(clock, since));
    const wholeAnswerMs = Math.max(LAST_TRY_MS.min, leftMs);
    return { ...(since === undefined && { answerTimeout: 'first' as const }), ...request, wholeAnswerMs };
  }

  /** One request with the token of the moment, and once more if that has just expired. */
  async #authorized<T>(
    request: CallRequest,
    signal: AbortSignal,
    send: (request: CallRequest) => Promise<T>,
  ): Promise<T> {
    const { tokens } = this.world;
    const token = await tokens.current(signal);
    try {
      return await send(withToken(request, token));
    } catch (failure) {
      const stale = failure instanceof CallFailure && failure.reason === 'stale-token';
      if (!stale || !(await tokens.renew(token, signal))) throw failure;
      return await send(withToken(request, await tokens.current(signal)));
    }
  }

  /** What the answer means, with our token taken out of it. */
  #failure(answer: HttpAnswer, request: CallRequest): CallFailure {
    const token = request.headers['authorization']?.slice(BEARER.length);
    // Some refusals quote the header.
    const text = token ? answer.text.replaceAll(token, '…') : answer.text;
    return failureOfAnswer({ ...answer, text }, request.route, this.world.clock.now());
  }

  /** Service and gateway need not agree on the time. */
  #note(head: HttpHead): void {
    this.world.meter.answered(head.status);
    const saidMs = Date.parse(head.header('date') ?? '');
    if (!Number.isNaN(saidMs)) this.#said = { serviceMs: saidMs, at: momentNow(this.world.clock) };
  }

  /** A signal for as long as one call lives: aborted by the caller's, and by the client's end. */
  #life(outer: AbortSignal | undefined): LinkedSignal {
    return linkedSignal(...(outer ? [outer] : []), this.world.signal);
  }
}

const BEARER = 'Bearer ';

function sizeOf({ body }: CallRequest): number {
  return body?.length ?? 0;
}

function withToken(request: CallRequest, token: string): CallRequest {
  return { ...request, headers: { ...request.headers, authorization: BEARER + token } };
}

/** A 200 that cannot be read: a proxy's page, or half an answer. What was asked for may have been done. */
function readOr<T>(read: () => T, head: HttpHead, route: string): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof ApiError || cause instanceof CallFailure) throw cause;
    throw failureOfJunk(head, route, cause);
  }
}
