/** The reasons of a failed call: one name for each way to react. */
const API_FAILURES = [
  'not-found',
  'not-file',
  'not-folder',
  'conflict-file',
  'conflict-folder',
  'conflict-ancestor',
  'malformed-path',
  'disallowed-name',
  'no-permission',
  'restricted',
  'locked',
  'insufficient-space',
  'too-large',
  'too-many-files',
  'into-itself',
  'incomplete',
  'hash-mismatch',
  'incorrect-offset',
  'session-gone',
  'reset',
  'range',
  'link-exists',
  'link-settings',
  'link-gone',
  'revision-gone',
  'no-thumbnail',
  'not-allowed',
  'unauthorized',
  'wrong-namespace',
  'rate-limited',
  'unavailable',
  'offline',
  'bad-request',
  'foreign',
] as const;

export type ApiFailure = (typeof API_FAILURES)[number];

const OUTAGES: ReadonlySet<ApiFailure> = new Set([
  'offline',
  'unavailable',
  'rate-limited',
  'unauthorized',
  'wrong-namespace',
  'foreign',
]);

/** Whether `error` says only that the service does not answer calls now. */
export function isOutage(error: unknown): error is ApiError {
  return error instanceof ApiError && OUTAGES.has(error.failure);
}

/** The final failure of a call, after all retries. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly failure: ApiFailure,
    message: string,
    readonly details: {
      /** The service's error summary, like `path/not_found`. */
      readonly summary?: string;
      readonly requestId?: string;
      readonly retryAfterMs?: number;
      /** Present with `incorrect-offset`. */
      readonly correctOffset?: number;
      /**
       * Present if a download ended before its last byte: the received bytes are good, and the rest can be requested
       * again.
       */
      readonly cut?: { readonly receivedBytes: number };
      /** The call was certainly not carried out. */
      readonly isUndone?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, { cause: details.cause });
  }

  /** Returns the error of a call that may have been carried out, or certainly was not, and how long to make no calls. */
  withOutcome(isUnknown: boolean, retryAfterMs = this.details.retryAfterMs): ApiError {
    const asked = retryAfterMs !== undefined && { retryAfterMs };
    return new ApiError(this.failure, this.message, { ...this.details, isUndone: !isUnknown, ...asked });
  }
}

/** How long the service may still carry out a call whose answer was lost, in ms. */
export const LATE_MS = 600_000;

/** Returns whether the service has not carried out the failed call, and never will. */
export function isUndone(error: ApiError): boolean {
  return error.details.isUndone ?? !isOutage(error);
}

/** Returns whether the service refused with one of `failures`. */
export function isApiFailure(error: unknown, ...failures: readonly ApiFailure[]): error is ApiError {
  return error instanceof ApiError && failures.includes(error.failure);
}
