import { type LinkedSignal, linkedSignal } from '../util/abort.ts';
import {
  ageMs,
  type Clock,
  elapsedMs,
  type Instant,
  instantIn,
  LONG_AGO,
  type Moment,
  momentNow,
} from '../util/clock.ts';
import type { Meter } from '../util/meter.ts';
import type { CommitFlight } from './commit-concurrency.ts';
import { sendInTurn } from './commit-turns.ts';
import { ApiError, isOutage } from './errors.ts';
import { CallFailure, failureOfAnswer, failureOfJunk, failureOfLoss } from './failure.ts';
import type { Http, HttpAnswer, HttpHead, HttpStream } from './http.ts';
import { LostConnection } from './lost-connection.ts';
import type { PathRoot } from './path-root.ts';
import type { Lane } from './queue.ts';
import type { Availability } from './remote.ts';
import type { CallRequest } from './request.ts';
import { type Resolve, type RetryDeps, resolved, type Trouble, waitForRetry } from './retry.ts';
import { type Turns, TurnTaken } from './turns.ts';

/** Maximum number of immediate retries of a commit that collided with another commit of ours. */
const COLLISIONS_MAX = 3;

/** How long the last try may take after the deadline, and the minimum for any try, in ms. */
const LAST_TRY_MS = { max: 25_000, min: 5_000 };

/** A longer body may take more time than the deadline to send, so its deadline counts from the end of the failed try. */
const LONG_BODY_BYTES = 256 * 1024;

/** Minimum time between two calls of the listeners, in ms: a service may answer some calls and refuse others. */
const BACK_EVERY_MS = 10_000;

export interface AccessToken {
  readonly value: string;
  /** When it was issued, and for how long it is used before a newer one is asked for, in ms. */
  readonly at: Moment;
  readonly freshMs: number;
}

/** The source of access tokens. Both methods throw `CallFailure`, or the signal's reason. */
export interface Tokens {
  current(signal: AbortSignal): Promise<AccessToken>;
  /**
   * Renews the tokens. Must be called when the service refused `token` as expired. Returns whether there is another one
   * now.
   */
  renew(token: string, signal: AbortSignal): Promise<boolean>;
}

export interface CallerDeps extends RetryDeps {
  readonly http: Http;
  readonly tokens: Tokens;
  readonly availability: CallAvailability;
  /** `undefined` in the account's home. */
  readonly pathRoot: PathRoot | undefined;
  /** `undefined` if no other gateway shares the account. */
  readonly turns?: Turns | undefined;
  /** Aborted when the client closes. */
  readonly signal: AbortSignal;
}

export interface Call<T> {
  readonly request: CallRequest;
  /** `undefined` for the long poll, which waits for no other call and needs no token. */
  readonly lane: Lane | undefined;
  /** Reads an answer with status 200. Any error except an `ApiError` counts as an answer that makes no sense. */
  readonly read: (answer: HttpAnswer) => T;
  readonly resolve?: Resolve<T>;
  readonly signal?: AbortSignal | undefined;
  readonly trouble?: Trouble;
}

/** The answer to a download, before its bytes. `release` must be called when they are read or not needed. */
export interface Opened {
  readonly stream: HttpStream;
  readonly signal: AbortSignal;
  readonly release: () => void;
}

/**
 * Calls the service: in the order that the queue decides, with a token, retried as `retry.ts` says. Throws `ApiError`,
 * or the signal's reason.
 */
export class Caller {
  /** The service's clock in its last answer, and when that came. */
  #serviceClock: { readonly serviceMs: number; readonly at: Moment };

  #token: AccessToken | undefined;

  constructor(private readonly deps: CallerDeps) {
    this.#serviceClock = { serviceMs: deps.clock.now(), at: momentNow(deps.clock) };
  }

  /** Makes a call whose answer is read whole. */
  async call<T>(call: Call<T>): Promise<T> {
    const life = this.#life(call.signal);
    try {
      return await this.#noted(call, life.signal, async (request, signal) => {
        const answer = await this.#send(call.lane, request, signal);
        this.#note(answer);
        if (answer.status !== 200) throw this.#failure(answer, request);
        return readOr(() => call.read(answer), answer, call.request.route);
      });
    } finally {
      life.release();
    }
  }

  /** Starts a download: the call ends with the head of the answer. The signal counts until `release`. */
  async open<T>(
    call: Omit<Call<T>, 'read' | 'resolve'> & {
      readonly read: (head: HttpHead, opened: Opened) => T;
    },
  ): Promise<T> {
    const life = this.#life(call.signal);
    try {
      return await this.#noted(call, life.signal, async (request, signal) => {
        const answer = await this.deps.http.open(request, signal);
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

  /** Sends a request; a commit, when no other gateway commits in the namespace. */
  #send(lane: Lane | undefined, request: CallRequest, signal: AbortSignal): Promise<HttpAnswer> {
    const { http, queue, turns } = this.deps;
    const send = (each: CallRequest) => http.send(each, signal);
    const takesTurn = (lane === 'commit' || lane === 'upload') && queue.uploadsAtOnce === 1;
    return turns && takesTurn ? sendInTurn(turns, request, send, signal) : send(request);
  }

  /** Whether other gateways commit in the namespace now. */
  get commitsAreShared(): boolean {
    return this.deps.turns?.isShared ?? false;
  }

  /** How many short uploads may be under way in parallel. */
  get uploadsAtOnce(): number {
    return this.deps.queue.uploadsAtOnce;
  }

  /** Returns `moment` by the service's clock, to be compared with the times of its entries. */
  serviceTime(moment: Moment): number {
    const { clock } = this.deps;
    return this.#serviceClock.serviceMs + ageMs(clock, this.#serviceClock.at) - ageMs(clock, moment);
  }

  /** Does the same as `#persist`, and notes whether the service answered. */
  async #noted<T>(
    call: Omit<Call<T>, 'read'>,
    signal: AbortSignal,
    send: (request: CallRequest, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    // A long poll needs no token, so its success does not show that other calls would succeed.
    if (!call.lane) return this.#persist(call, signal, send);
    const { availability } = this.deps;
    try {
      const result = await this.#persist(call, signal, send);
      availability.succeeded();
      return result;
    } catch (error) {
      if (!signal.aborted) availability.failed(error);
      throw error;
    }
  }

  /** Tries until there is a result, a final refusal, or no time left. Finds out what became of tries without an answer. */
  async #persist<T>(
    call: Omit<Call<T>, 'read'>,
    signal: AbortSignal,
    send: (request: CallRequest, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { queue, clock, turns } = this.deps;
    const trouble = call.trouble ?? {};
    // A pause of the account is trouble too: the client waits all the same.
    if (call.lane && queue.paused) trouble.since ??= clock.instant();
    let outcomeUnknown = false;
    for (let number = 1; ; number += 1) {
      const flight = { overlapped: false };
      // Who takes over a commit that yields knows nothing of the tries before.
      const request: CallRequest = outcomeUnknown ? { ...call.request, yields: false } : call.request;
      const outcome = await this.#try({ ...call, request, trouble }, signal, send, flight).catch(
        (error: unknown) => {
          throw outcomeUnknown && error instanceof ApiError ? error.withOutcome(true) : error;
        },
      );
      if (!(outcome instanceof CallFailure)) return outcome.result;
      outcomeUnknown ||= outcome.outcomeUnknown;
      if ((flight.overlapped || turns) && outcome.reason === 'contention') {
        queue.collided();
        // The next try waits for the commit of ours or of another gateway that it collided with: retry at once, unless the
        // service wants others to end first, or an earlier try has to be looked for.
        const mayGoOn = flight.overlapped || outcome.retryAfterMs === undefined;
        if (number <= COLLISIONS_MAX && mayGoOn && !outcomeUnknown) continue;
      }
      const at = { number, trouble, signal };
      let failure: CallFailure = outcome;
      let decision = await waitForRetry(this.deps, call, failure, at);
      const found = await resolved(call.resolve, { failure, outcomeUnknown, number, trouble });
      if (found && 'result' in found) return found.result;
      if (found) {
        failure = found.failure;
        decision = await waitForRetry(this.deps, call, failure, at);
      }
      if (!decision.retry) throw failure.error.withOutcome(outcomeUnknown, decision.retryAfterMs);
    }
  }

  /** Makes one try, in its turn. Returns a failure that a retry could change, and throws all others. */
  async #try<T>(
    call: Pick<Call<T>, 'lane' | 'request'> & { readonly trouble: Trouble },
    signal: AbortSignal,
    send: (request: CallRequest, signal: AbortSignal) => Promise<T>,
    flight: CommitFlight,
  ): Promise<{ readonly result: T } | CallFailure> {
    const { lane, request, trouble } = call;
    const { clock } = this.deps;
    let began = clock.instant();
    const sendCounted = (authorized: CallRequest) =>
      counted(this.deps, request.route, signal, () => send(authorized, signal));
    const inTurn = () => {
      began = clock.instant();
      return this.#authorized(this.#limited(request, trouble), signal, sendCounted);
    };
    const job = lane ? inTurn : () => sendCounted(request);
    try {
      const result = await (lane ? this.deps.queue.run(lane, job, signal, flight) : job());
      if (lane) this.deps.queue.succeeded(lane, flight);
      return { result };
    } catch (cause) {
      if (signal.aborted) throw signal.reason;
      const failure = cause instanceof LostConnection ? failureOfLoss(cause, request.route) : cause;
      if (!(failure instanceof CallFailure)) throw failure;
      trouble.since ??= sizeOf(request) > LONG_BODY_BYTES ? clock.instant() : began;
      return failure;
    }
  }

  /** Limits the answer's time to what is left for the call. */
  #limited(request: CallRequest, { since }: Trouble): CallRequest {
    if (request.answerTimeout === 'slow') return request;
    const { clock, deadlineMs } = this.deps;
    const leftMs = deadlineMs + LAST_TRY_MS.max - (since === undefined ? 0 : elapsedMs(clock, since));
    const wholeAnswerMs = Math.max(LAST_TRY_MS.min, leftMs);
    return { ...(since === undefined && { answerTimeout: 'first' as const }), ...request, wholeAnswerMs };
  }

  /** Sends a request with the current token, and once more if that has just expired. */
  async #authorized<T>(
    unaddressed: CallRequest,
    signal: AbortSignal,
    send: (request: CallRequest) => Promise<T>,
  ): Promise<T> {
    const token = await this.#freshToken(signal);
    const { pathRoot } = this.deps;
    const request = pathRoot ? await pathRoot.addressed(unaddressed, token, signal) : unaddressed;
    try {
      return await send(withToken(request, token));
    } catch (failure) {
      if (!(failure instanceof CallFailure) || failure.reason !== 'stale-token') throw failure;
      this.#token = undefined;
      if (!(await this.deps.tokens.renew(token, signal))) throw failure;
      return await send(withToken(request, await this.#freshToken(signal)));
    }
  }

  async #freshToken(signal: AbortSignal): Promise<string> {
    const { tokens, clock } = this.deps;
    if (!this.#token || ageMs(clock, this.#token.at) >= this.#token.freshMs)
      this.#token = await tokens.current(signal);
    return this.#token.value;
  }

  /** Returns the failure that the answer means, with our token removed from its text. */
  #failure(answer: HttpAnswer, request: CallRequest): CallFailure {
    const token = request.headers['authorization']?.slice(BEARER.length);
    // Some refusals quote the authorization header.
    const text = token ? answer.text.replaceAll(token, '…') : answer.text;
    const failure = failureOfAnswer({ ...answer, text }, request.route, this.deps.clock.now());
    if (failure.error.failure === 'wrong-namespace') this.deps.pathRoot?.refused(failure.error);
    return failure;
  }

  /** Notes the service's time, which may differ from ours. */
  #note(head: HttpHead): void {
    this.deps.meter.answered(head.status);
    const serviceMs = Date.parse(head.header('date') ?? '');
    if (!Number.isNaN(serviceMs)) this.#serviceClock = { serviceMs, at: momentNow(this.deps.clock) };
  }

  /** Returns a signal for one call, aborted by the caller's signal and when the client closes. */
  #life(outer: AbortSignal | undefined): LinkedSignal {
    return linkedSignal(...(outer ? [outer] : []), this.deps.signal);
  }
}

const BEARER = 'Bearer ';

function sizeOf({ body }: CallRequest): number {
  return body?.length ?? 0;
}

function withToken(request: CallRequest, token: string): CallRequest {
  return { ...request, headers: { ...request.headers, authorization: BEARER + token } };
}

/** Reads a 200. An unreadable one is a proxy's page or half an answer, and the call may have been carried out. */
function readOr<T>(read: () => T, head: HttpHead, route: string): T {
  try {
    return read();
  } catch (cause) {
    if (cause instanceof ApiError || cause instanceof CallFailure) throw cause;
    throw failureOfJunk(head, route, cause);
  }
}

/** Learns from the end of each call whether the service answers. */
export class CallAvailability implements Availability {
  readonly #listeners = new Set<() => void>();
  awaySince: Instant | undefined;
  /** Whether the service was away since the listeners were last called. */
  #isReturnUnreported = false;
  #nextReport: Instant = LONG_AGO;

  constructor(private readonly clock: Clock) {}

  onBack(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Must be called when a call has its result. */
  succeeded(): void {
    this.awaySince = undefined;
    if (!this.#isReturnUnreported || this.#nextReport > this.clock.instant()) return;
    this.#isReturnUnreported = false;
    this.#nextReport = instantIn(this.clock, BACK_EVERY_MS);
    for (const listener of [...this.#listeners]) listener();
  }

  /** Must be called when a call has failed, after all retries. A refusal is an answer too. */
  failed(error: unknown): void {
    if (isOutage(error)) {
      this.awaySince ??= this.clock.instant();
      this.#isReturnUnreported = true;
    } else if (error instanceof ApiError) this.succeeded();
  }
}

/** Runs `work`, one request of `route`, and reports its outcome to the meter. One that yielded was not sent. */
export async function counted<T>(
  { meter, clock }: { readonly meter: Meter; readonly clock: Clock },
  route: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const start = clock.instant();
  const report = (outcome: string) => meter.called({ route, outcome, ms: elapsedMs(clock, start) });
  try {
    const result = await work();
    report('ok');
    return result;
  } catch (failure) {
    if (signal.aborted) report('cancelled');
    else if (!(failure instanceof TurnTaken)) report(outcomeOf(failure));
    throw failure;
  }
}

function outcomeOf(failure: unknown): string {
  if (failure instanceof CallFailure) return failure.reason;
  if (failure instanceof LostConnection) return 'lost';
  return failure instanceof ApiError ? 'refused' : 'defect';
}
