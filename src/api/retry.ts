import { type Clock, elapsedMs, type Instant } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Meter } from '../util/meter.ts';
import { ApiError, isOutage } from './errors.ts';
import type { CallFailure } from './failure.ts';
import type { CallQueue, Lane } from './queue.ts';

/**
 * Since when a call is in trouble: the start of its first failed try, or of a pause of the account that delayed it. Calls
 * that find out how it ended share it, and with it the deadline.
 */
export interface Trouble {
  since?: Instant;
}

/** The state of a call after a failed try. */
export interface Situation {
  readonly failure: CallFailure;
  /** This try, or an earlier one, may have been carried out. */
  readonly outcomeUnknown: boolean;
  /** The number of this try, 1 for the first. */
  readonly number: number;
  readonly trouble: Trouble;
}

/** What the state of the service says about a failed call: that it was carried out, or that it failed for another reason. */
type Finding<T> = { readonly result: T } | { readonly failure: CallFailure };

/** Called after a failure, before the next try and before giving up. Looks at the state of the service. */
export type Resolve<T> = (situation: Situation) => Promise<Finding<T> | undefined>;

/** The parts of a failure that decide about a retry. */
type Failed = Pick<CallFailure, 'reason' | 'retryAfterMs'>;

export interface Attempt {
  /** 1 for the first. */
  readonly number: number;
  /** Time since the call first failed. */
  readonly elapsedMs: number;
  /** How long after its first failure a call is still retried. */
  readonly deadlineMs: number;
}

export type RetryDecision =
  | {
      readonly retry: true;
      readonly delayMs: number;
      /** All calls of the account must wait as long. */
      readonly pausesAccount: boolean;
    }
  | { readonly retry: false; readonly retryAfterMs?: number };

/** Maximum of the first wait, in ms; it doubles with each retry up to `BACKOFF_MS_MAX`. */
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MS_MAX = 30_000;

/** The wait after `too_many_write_operations` without a number, in ms (RateLimitError's default). */
const CONTENTION_MS = 1000;

/** Maximum added to a wait that the service requested, in ms, so that the refused calls do not all return at once. */
const SPREAD_MS = 250;

/**
 * Decides whether and when to retry: exponential backoff with full jitter, or the wait that the service requested.
 * `random` is in [0, 1). Pure: `waitForRetry` waits.
 */
export function retryDecision(failure: Failed, attempt: Attempt, random: number): RetryDecision {
  if (failure.reason === 'refused' || failure.reason === 'stale-token') return { retry: false };
  const delayMs = delayOf(failure, attempt.number, random);
  if (attempt.elapsedMs + delayMs > attempt.deadlineMs) {
    const limited = failure.reason === 'rate-limited' || failure.reason === 'contention';
    return { retry: false, ...(limited && { retryAfterMs: failure.retryAfterMs ?? delayMs }) };
  }
  const pausesAccount =
    failure.retryAfterMs !== undefined &&
    (failure.reason === 'rate-limited' || failure.reason === 'contention');
  return { retry: true, delayMs, pausesAccount };
}

function delayOf(failure: Failed, number: number, random: number): number {
  const asked = failure.retryAfterMs ?? (failure.reason === 'contention' ? CONTENTION_MS : undefined);
  if (asked !== undefined) return asked + Math.round(random * SPREAD_MS);
  return Math.round(random * Math.min(BACKOFF_MS_MAX, BACKOFF_FIRST_MS * 2 ** (number - 1)));
}

export interface RetryDeps {
  readonly queue: CallQueue;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter: Meter;
  /** Returns numbers in [0, 1). */
  readonly random: () => number;
  /** How long after its trouble began a call is still retried. */
  readonly deadlineMs: number;
}

/** Decides whether there is another try after a failed one, and waits until it is due. */
export async function waitForRetry(
  { clock, queue, log, meter, random, deadlineMs }: RetryDeps,
  { lane, request }: { readonly lane: Lane | undefined; readonly request: { readonly route: string } },
  failure: CallFailure,
  at: { readonly number: number; readonly trouble: Trouble; readonly signal: AbortSignal },
): Promise<RetryDecision> {
  const troubleMs = at.trouble.since === undefined ? 0 : elapsedMs(clock, at.trouble.since);
  const decision = retryDecision(failure, { number: at.number, elapsedMs: troubleMs, deadlineMs }, random());
  if (lane && failure.reason === 'rate-limited') queue.limited(lane);
  // A refusal because of another commit says nothing about the calls of other gateways.
  const isShared = failure.reason === 'rate-limited';
  const fields = { route: request.route, reason: failure.reason, try: at.number };
  const { requestId } = failure.error.details;
  if (!decision.retry) {
    if (failure.reason !== 'refused')
      log.warn('call of the storage service failed', { ...fields, requestId });
    if (lane && (failure.reason === 'lost' || failure.reason === 'server'))
      queue.refuseLongWaiting(failure.error);
    if (!lane || decision.retryAfterMs === undefined) return decision;
    queue.pause(decision.retryAfterMs, isShared);
    return { retry: false, retryAfterMs: queue.closedMs };
  }
  meter.retried(failure.reason);
  log.warn('retrying a call of the storage service', {
    ...fields,
    delayMs: decision.delayMs,
    requestId,
  });
  if (lane && decision.pausesAccount) queue.pause(decision.delayMs, isShared);
  await clock.sleep(decision.delayMs, at.signal);
  return decision;
}

/** Asks a call's `resolve`, if it has one, whether the call was carried out after all. */
export async function resolved<T>(
  resolve: Resolve<T> | undefined,
  situation: Situation,
): Promise<Finding<T> | undefined> {
  if (!resolve) return undefined;
  try {
    return await resolve(situation);
  } catch (cause) {
    const unanswered = unansweredQuestion(situation, cause);
    if (unanswered) throw unanswered;
    return undefined;
  }
}

/**
 * Returns what to throw when `cause` kept a call's `resolve` from finding out; `undefined` when the question was refused,
 * which is no sign that the call was carried out. Throws any `cause` but an `ApiError`.
 */
export function unansweredQuestion(
  { failure, outcomeUnknown }: Pick<Situation, 'failure' | 'outcomeUnknown'>,
  cause: unknown,
): ApiError | undefined {
  if (!(cause instanceof ApiError)) throw cause;
  if (!isOutage(cause)) return undefined;
  // A refusal may be caused by an earlier try that was carried out: a moved entry is not at its old place any more.
  const error = failure.reason === 'refused' ? cause : failure.error;
  return error.withOutcome(outcomeUnknown, cause.details.retryAfterMs);
}
