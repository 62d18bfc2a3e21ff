import type { ErrorBody } from '../wire/files.ts';
import { ApiError, type ApiFailure } from './errors.ts';
import { failureOfAuth, failureOfTags } from './failure-table.ts';
import type { HttpAnswer, HttpHead } from './http.ts';
import type { LostConnection } from './lost-connection.ts';
import { parsed } from './request.ts';

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

/** A failed try of a call: why it failed, and what to throw when there is no other try. */
export class CallFailure extends Error {
  override readonly name = 'CallFailure';
  /** Whether the service may have carried out the call. */
  readonly outcomeUnknown: boolean;
  /** How long the service asked to wait. */
  readonly retryAfterMs?: number;

  constructor(
    readonly reason: FailureReason,
    readonly error: ApiError,
    more: { readonly outcomeUnknown?: boolean; readonly retryAfterMs?: number | undefined } = {},
  ) {
    super(error.message);
    this.outcomeUnknown = more.outcomeUnknown ?? false;
    if (more.retryAfterMs !== undefined) this.retryAfterMs = more.retryAfterMs;
  }
}

/**
 * Maximum wait that is believed, in ms. A proxy may ask for years, and a timer is limited to 24 days; a service that still
 * wants no calls after an hour says so again.
 */
const ASKED_WAIT_MS_MAX = 3_600_000;

/** Limits a wait that the service asked for. */
export function askedWaitMs(ms: number): number {
  return Math.min(ASKED_WAIT_MS_MAX, Math.max(0, ms));
}

/** Maximum length of a plain text answer in a message. */
const TEXT_CHARACTERS_MAX = 300;

/** Returns the failure of a call whose connection was lost. */
export function failureOfLoss(loss: LostConnection, route: string): CallFailure {
  const error = new ApiError('offline', `${route}: cannot reach the storage service: ${loss.message}`, {
    cause: loss.cause,
  });
  return new CallFailure(loss.passing ? 'lost' : 'refused', error, { outcomeUnknown: loss.mayHaveArrived });
}

/** Returns the failure of a call whose 200 makes no sense. The call was most likely carried out. */
export function failureOfJunk(head: HttpHead, route: string, cause: unknown): CallFailure {
  const message = `${route}: the storage service sent an invalid answer`;
  const error = new ApiError('unavailable', message, { ...requestIdOf(head), cause });
  return new CallFailure('server', error, { outcomeUnknown: true });
}

/** Returns the failure that an answer other than success means. `nowMs` is for a `Retry-After` with a date. */
export function failureOfAnswer(answer: HttpAnswer, route: string, nowMs: number): CallFailure {
  const { status } = answer;
  const body = errorBodyOf(answer.text);
  const retryAfterMs = retryAfterOf(answer, nowMs);
  if (status >= 500 || status === 408) return serverFailure(answer, route, retryAfterMs);
  if (status === 429) {
    const contention = body?.tags.includes('too_many_write_operations');
    const waitMs = retryAfterMs ?? (body ? askedWaitMs((body.retryAfterSeconds ?? 1) * 1000) : undefined);
    const error = apiError('rate-limited', answer, route, body);
    return new CallFailure(contention ? 'contention' : 'rate-limited', error, { retryAfterMs: waitMs });
  }
  if (status === 401) return authFailure(answer, route, body);
  if ((status === 409 || status === 416) && body) return refusal(body, route, answer);
  if (status === 409) return failureOfJunk(answer, route, new Error('409 without an error body'));
  const failure = body ? failureOfUnion(status) : plainFailure(status, answer.text, route);
  return failure
    ? new CallFailure('refused', apiError(failure, answer, route, body))
    : foreignAnswer(answer, route);
}

/** Returns the failure that an entry's error in the answer of a batch means. */
export function failureOfEntry(error: unknown, route: string, head: HttpHead): CallFailure {
  return refusal(errorOf(error), route, head);
}

interface ErrorFacts {
  /** From the outermost to the innermost. */
  readonly tags: readonly string[];
  /** `error_summary` without its trailing dots. */
  readonly summary: string;
  readonly correctOffset?: number;
  readonly retryAfterSeconds?: number;
}

/** Returns the failure of an error union, in a whole answer or in one entry of a batch. */
function refusal(facts: ErrorFacts, route: string, head: HttpHead): CallFailure {
  if (facts.summary.startsWith('range/not_satisfiable'))
    return new CallFailure('refused', apiError('range', head, route, facts));
  const failure = failureOfTags(facts.tags, route);
  const error = apiError(failure, head, route, facts);
  if (facts.tags.includes('too_many_write_operations')) return new CallFailure('contention', error);
  if (facts.tags.includes('internal_error'))
    return new CallFailure('server', error, { outcomeUnknown: true });
  // The hash is computed from the sent bytes, so they were damaged in transit.
  if (failure === 'hash-mismatch') return new CallFailure('server', error);
  return new CallFailure('refused', error);
}

/** Returns the failure of a 5xx. Its body is ignored, because it may come from a proxy. */
function serverFailure(answer: HttpAnswer, route: string, retryAfterMs: number | undefined): CallFailure {
  const message = `${route}: the storage service failed with status ${answer.status}`;
  const error = new ApiError('unavailable', message, requestIdOf(answer));
  return new CallFailure('server', error, { outcomeUnknown: true, retryAfterMs });
}

/** Returns the failure of a 401. Only an expired or invalid token is worth a new one. */
function authFailure(answer: HttpAnswer, route: string, facts: ErrorFacts | undefined): CallFailure {
  const tag = facts?.tags[0];
  const stale = tag === 'expired_access_token' || tag === 'invalid_access_token';
  return new CallFailure(
    stale ? 'stale-token' : 'refused',
    apiError(failureOfAuth(tag), answer, route, facts),
  );
}

/** Returns the failure of an error union whose status tells about the account or the call, not about a file. */
function failureOfUnion(status: number): ApiFailure {
  // 422 refuses `Dropbox-API-Path-Root`.
  if (status === 422) return 'wrong-namespace';
  return status === 403 ? 'not-allowed' : 'bad-request';
}

/** The beginnings of the service's refusals in plain text. */
const OWN_SENTENCE =
  /^(Error in call to API function|request body:|HTTP header "|Bad HTTP "|Must provide HTTP header)/;

/** Routes that refuse a cursor which they no longer know. */
const TAKES_CURSOR = /(list_folder\/(continue|longpoll)|search\/continue_v2)$/;

/** Returns the failure of a refusal in plain text; `undefined` when the text is not the service's. */
function plainFailure(status: number, text: string, route: string): ApiFailure | undefined {
  if (status === 416) return 'range';
  if (status !== 400) return undefined;
  if (/not allowed to call|does not have the required scope|not permitted to access/i.test(text))
    return 'not-allowed';
  if (/access token is malformed|"?Authorization"?/i.test(text)) return 'unauthorized';
  if (TAKES_CURSOR.test(route) && /cursor/i.test(text)) return 'reset';
  if (/path.*did not match pattern/is.test(text)) return 'malformed-path';
  return OWN_SENTENCE.test(text) ? 'bad-request' : undefined;
}

/**
 * Returns the failure of an answer that is not the service's: a proxy's, a captive portal's, a redirect to a page. Whether
 * the call was carried out is unknown. It is not retried, because a login at a portal takes minutes.
 */
function foreignAnswer(answer: HttpAnswer, route: string): CallFailure {
  const words = answer.text.trim().slice(0, TEXT_CHARACTERS_MAX);
  const message = `${route}: something other than the storage service answered with status ${answer.status}`;
  const error = new ApiError('foreign', words ? `${message}: ${words}` : message, requestIdOf(answer));
  return new CallFailure('refused', error, { outcomeUnknown: true });
}

function apiError(
  failure: ApiFailure,
  head: HttpHead & { readonly text?: string },
  route: string,
  facts: ErrorFacts | undefined,
): ApiError {
  const words = facts?.summary || head.text?.trim().slice(0, TEXT_CHARACTERS_MAX);
  const message = `${route}: the storage service refused with status ${head.status}${words ? `: ${words}` : ''}`;
  return new ApiError(failure, message, {
    ...requestIdOf(head),
    ...(facts && { summary: facts.summary }),
    ...(facts?.correctOffset !== undefined && { correctOffset: facts.correctOffset }),
  });
}

function requestIdOf(head: HttpHead): { requestId?: string } {
  const requestId = head.header('x-dropbox-request-id');
  return requestId === undefined ? {} : { requestId };
}

/** Reads `Retry-After`: seconds or a date (RFC 9110 §10.2.3). */
function retryAfterOf(head: HttpHead, nowMs: number): number | undefined {
  const value = head.header('retry-after');
  if (value === undefined) return undefined;
  if (/^\d+$/.test(value)) return askedWaitMs(Number(value) * 1000);
  const atMs = Date.parse(value);
  return Number.isNaN(atMs) ? undefined : askedWaitMs(atMs - nowMs);
}

/** Parses an error body. Returns `undefined` for any other text. */
function errorBodyOf(text: string): ErrorFacts | undefined {
  let body: Partial<ErrorBody<unknown>> | null;
  try {
    body = parsed(text);
  } catch {
    return undefined;
  }
  if (!isRecord(body?.error)) return undefined;
  const said = typeof body.error_summary === 'string' ? body.error_summary : undefined;
  const facts = errorOf(body.error, said?.replace(/\/\.{0,3}$/, ''));
  // Other servers answer with an `error` field too.
  return said === undefined && facts.tags.length === 0 ? undefined : facts;
}

/** Collects the tags of a union: the inner union is the field with the outer tag's name. */
function errorOf(error: unknown, summary?: string): ErrorFacts {
  const tags: string[] = [];
  let correctOffset: number | undefined;
  let retryAfterSeconds: number | undefined;
  for (let value = error; isRecord(value); ) {
    const tag = value['.tag'];
    if (typeof tag === 'string') tags.push(tag);
    if (typeof value['correct_offset'] === 'number') correctOffset = value['correct_offset'];
    if (typeof value['retry_after'] === 'number') retryAfterSeconds = value['retry_after'];
    const inner: unknown = typeof tag === 'string' ? value[tag] : undefined;
    // In `upload` errors and in 429 the inner union is the field `reason`.
    value = isRecord(inner) ? inner : value['reason'];
  }
  return {
    tags,
    summary: summary ?? tags.join('/'),
    ...(correctOffset !== undefined && { correctOffset }),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
