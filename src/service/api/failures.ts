/** One value of an endpoint's error union, with the tags that its `error_summary` names, from outside in. */
export interface WireFailure {
  readonly tags: readonly string[];
  /** As on the wire. */
  readonly value: object;
}

/** A void member of an error union, or one whose struct is flattened beside the tag. */
export function failure(tag: string, fields: object = {}): WireFailure {
  return { tags: [tag], value: { '.tag': tag, ...fields } };
}

/** A member that holds another union, under a key named like the tag. */
export function nested(tag: string, inner: WireFailure): WireFailure {
  return { tags: [tag, ...inner.tags], value: { '.tag': tag, [tag]: inner.value } };
}

/** A call refused with 400 and a sentence; the function's name is put in front where it is answered. */
export class BadCall extends Error {
  override readonly name = 'BadCall';
}

/** Likewise, of a part of the argument: where that came from is put in front too. */
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

/** A call by a method that is not one of `allow`: 405 and a sentence. */
export class WrongMethod extends Error {
  override readonly name = 'WrongMethod';

  constructor(
    message: string,
    readonly allow: readonly string[],
  ) {
    super(message);
  }
}

/** 409: the endpoint's own union. */
export function refused(value: WireFailure): ApiRefusal {
  return new ApiRefusal(409, value);
}

/** 401: AuthError. */
export function unauthorized(value: WireFailure): ApiRefusal {
  return new ApiRefusal(401, value, { 'www-authenticate': 'Bearer realm="Dropbox-API"' });
}

/** The embedded service asks for no more than the second it has itself waited for the namespace. */
const CONTENTION_RETRY_SECONDS = 1;

/** 429: somebody else is writing in the namespace. */
export function contention(): ApiRefusal {
  return rateLimited('too_many_write_operations', CONTENTION_RETRY_SECONDS);
}

/** 429: more calls than the app may make for the account. */
export function tooManyRequests(retrySeconds: number): ApiRefusal {
  return rateLimited('too_many_requests', retrySeconds);
}

/** RateLimitError, a struct: its summary is the reason's tag. */
function rateLimited(tag: string, retrySeconds: number): ApiRefusal {
  const reason = failure(tag);
  const value = { reason: reason.value, retry_after: retrySeconds };
  return new ApiRefusal(429, { tags: reason.tags, value }, { 'retry-after': String(retrySeconds) });
}
