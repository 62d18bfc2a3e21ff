/** Why a call failed, as far as it decides whether to try again. */
export type FailureReason =
  /** 429, `too_many_requests` or without a reason. */
  | 'rate-limited'
  /** `too_many_write_operations`, wherever it stands: someone else is writing in the namespace. */
  | 'contention'
  /** 5xx, `internal_error`, an answer that makes no sense, bytes damaged on their way. */
  | 'server'
  /** No answer. */
  | 'lost'
  /** 401 for a token that a newer one may replace. */
  | 'stale-token'
  /** All else: the service's last word. */
  | 'refused';

export interface RetryableFailure {
  readonly reason: FailureReason;
  /** What the service asked for. */
  readonly retryAfterMs?: number;
}

export interface Attempt {
  /** 1 for the first. */
  readonly number: number;
  /** Since the call first failed. */
  readonly elapsedMs: number;
  /** How long after its first failure a call may still be tried again. */
  readonly deadlineMs: number;
}

export type Verdict =
  | {
      readonly retry: true;
      readonly delayMs: number;
      /** All of the account's calls have to wait as long. */
      readonly pausesAccount: boolean;
    }
  | { readonly retry: false; readonly retryAfterMs?: number };

/** The first wait is anything up to this, and each next may be twice as long. */
const BACKOFF_FIRST_MS = 500;
const BACKOFF_MS_MAX = 30_000;

/** What `too_many_write_operations` means by no number (RateLimitError's default). */
const CONTENTION_MS = 1000;

/** What is added at most to a wait that the service asked for, so that those it sent away do not come back as one. */
const SPREAD_MS = 250;

/**
 * Whether to try again, and when: exponential with full jitter, or when the service said. `random` is in
 * [0, 1). Pure: the caller waits.
 */
export function retryVerdict(failure: RetryableFailure, attempt: Attempt, random: number): Verdict {
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
