/** A value of an endpoint's error union, with the tags in its `error_summary`, from the outermost in. */
export interface WireFailure {
  readonly tags: readonly string[];
  /** The value as it is sent. */
  readonly value: object;
}

/** Returns a void member of an error union, or one whose struct is flattened beside the tag. */
export function failure(tag: string, fields: object = {}): WireFailure {
  return { tags: [tag], value: { '.tag': tag, ...fields } };
}

/** Returns a member that contains another union, under a key named like the tag. */
export function nested(tag: string, inner: WireFailure): WireFailure {
  return { tags: [tag, ...inner.tags], value: { '.tag': tag, [tag]: inner.value } };
}

/** A call refused with 400 and a sentence; the answer begins with the function's name. */
export class BadCall extends Error {
  override readonly name = 'BadCall';
}

/** A call refused because of its argument; the answer also names where the argument was. */
export class BadArgument extends BadCall {}

/** A call refused with one of the statuses that carry `{error_summary, error}`. */
export class ApiRefusal extends Error {
  override readonly name = 'ApiRefusal';

  constructor(
    readonly status: 401 | 409 | 416 | 422 | 429,
    readonly failure: WireFailure,
    readonly headers: Readonly<Record<string, string>> = {},
  ) {
    super(failure.tags.join('/'));
  }
}

/** A call by another method than those in `allow`: 405 and a sentence. */
export class WrongMethod extends Error {
  override readonly name = 'WrongMethod';

  constructor(
    message: string,
    readonly allow: readonly string[],
  ) {
    super(message);
  }
}

/** Returns a 409 with the endpoint's own union. */
export function refused(value: WireFailure): ApiRefusal {
  return new ApiRefusal(409, value);
}

/** Returns a 401 with an AuthError. */
export function unauthorized(value: WireFailure): ApiRefusal {
  return new ApiRefusal(401, value, { 'www-authenticate': 'Bearer realm="Dropbox-API"' });
}

/** `Retry-After` of a contention, in seconds: as long as the service itself has waited for the namespace. */
const CONTENTION_RETRY_SECONDS = 1;

/** Returns a 429: another call is writing in the namespace. */
export function contention(): ApiRefusal {
  return rateLimited('too_many_write_operations', CONTENTION_RETRY_SECONDS);
}

/** Returns a 429: the app makes too many calls for the account. */
export function tooManyRequests(retrySeconds: number): ApiRefusal {
  return rateLimited('too_many_requests', retrySeconds);
}

/** Returns a RateLimitError. It is a struct, and its summary is the reason's tag. */
function rateLimited(tag: string, retrySeconds: number): ApiRefusal {
  const reason = failure(tag);
  const value = { reason: reason.value, retry_after: retrySeconds };
  return new ApiRefusal(429, { tags: reason.tags, value }, { 'retry-after': String(retrySeconds) });
}
