/** What the service refused or why it could not be reached, in our words: one for each way to react. */
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
  'hash-mismatch',
  'incorrect-offset',
  'session-gone',
  'reset',
  'range',
  'link-exists',
  'link-settings',
  'link-gone',
  'not-allowed',
  'unauthorized',
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
  'foreign',
]);

/** Whether `error` says that the service cannot be asked now, and nothing of what was asked. */
export function isOutage(error: unknown): error is ApiError {
  return error instanceof ApiError && OUTAGES.has(error.failure);
}

/** The service's final refusal, after all retries. */
export class ApiError extends Error {
  override readonly name = 'ApiError';

  constructor(
    readonly failure: ApiFailure,
    message: string,
    readonly details: {
      /** The service's own words, like `path/not_found`. */
      readonly summary?: string;
      readonly requestId?: string;
      readonly retryAfterMs?: number;
      /** With `incorrect-offset`. */
      readonly correctOffset?: number;
      /** A download that ended before its last byte: what came is good, and the rest can be asked for again. */
      readonly cut?: { readonly receivedBytes: number };
      /** The service certainly did nothing. */
      readonly isUndone?: boolean;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, { cause: details.cause });
  }
}
