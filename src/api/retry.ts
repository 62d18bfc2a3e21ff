/** The reason of a failed call, as a retry distinguishes it. */
export type FailureReason =
  /** 429, `too_many_requests` or without a reason. */
  | 'rate-limited'
  /** `too_many_write_operations`, in any answer: someone else is writing in the namespace. */
  | 'contention'
  /** 5xx, `internal_error`, an answer that makes no sense, or bytes that were damaged in transit. */
  | 'server'
  /** No answer. */
  | 'lost'
  /** 401 for a token that a newer one may replace. */
  | 'stale-token'
  /** Everything else: final. */
  | 'refused';

export interface RetryableFailure {
  readonly reason: FailureReason;
  /** How long the service asked to wait. */
  readonly retryAfterMs?: number;
}

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
 * `random` is in [0, 1). Pure: the caller waits.
 */
export function retryDecision(failure: RetryableFailure, attempt: Attempt, random: number): RetryDecision {
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

function delayOf(failure: RetryableFailure, number: number, random: number): number {
  const asked = failure.retryAfterMs ?? (failure.reason === 'contention' ? CONTENTION_MS : undefined);
  if (asked !== undefined) return asked + Math.round(random * SPREAD_MS);
  return Math.round(random * Math.min(BACKOFF_MS_MAX, BACKOFF_FIRST_MS * 2 ** (number - 1)));
}
