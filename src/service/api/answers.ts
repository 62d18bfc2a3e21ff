import type { Answer } from '../../http/exchange.ts';
import { isConnectionLost } from '../postgres/away.ts';
import { BucketError } from '../storage/blocks/bucket/bucket-error.ts';
import { encodeResult } from './argument.ts';
import { ApiRefusal, BadCall, WrongMethod } from './failures.ts';
import { type Content, type MadeContent, type Result, WrittenResult } from './route.ts';

const JSON_TYPE = 'application/json';
const TEXT_TYPE = 'text/plain; charset=utf-8';

/** Returns a JSON answer; members that are `undefined` are left out. */
export function json(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { 'content-type': JSON_TYPE, ...headers }, body: JSON.stringify(value) };
}

/** Returns a plain-text answer, which the service sends where it has no error union. */
export function text(status: number, body: string, headers: Readonly<Record<string, string>> = {}): Answer {
  return { status, headers: { 'content-type': TEXT_TYPE, ...headers }, body };
}

/** Returns the 200 of an RPC- or upload-style function; its body is `null` for a function without a result. */
export function resultAnswer(result: Result): Answer {
  if (result instanceof WrittenResult)
    return {
      status: 200,
      headers: { 'content-type': JSON_TYPE },
      body: { sizeBytes: undefined, bytes: result.pieces },
    };
  return json(200, result);
}

/** Returns the 200, 206 or 304 of a download; the media type is the same for every file, as the specification says. */
export function contentAnswer(content: Content | MadeContent): Answer {
  if (!('rev' in content)) return madeAnswer(content);
  const { rev, sizeBytes, result, range, bytes } = content;
  const etag = `W/"${rev}"`;
  if (range === 'not-modified') return { status: 304, headers: { etag }, body: undefined };
  const headers = {
    'content-type': 'application/octet-stream',
    etag,
    'accept-ranges': 'bytes',
    'original-content-length': String(sizeBytes),
    'dropbox-api-result': encodeResult(result),
  };
  if (!range) return { status: 200, headers, body: { sizeBytes, bytes } };
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${range.start}-${range.end - 1}/${sizeBytes}` },
    body: { sizeBytes: range.end - range.start, bytes },
  };
}

function madeAnswer({ type, sizeBytes, result, bytes }: MadeContent): Answer {
  const headers = { 'content-type': type, 'dropbox-api-result': encodeResult(result) };
  return { status: 200, headers, body: { sizeBytes, bytes } };
}

/** The answer when the bucket with the contents or the database does not answer, or refuses. */
const AWAY = 'The store of the service cannot be used now. Try again later.';
const AWAY_SECONDS = '5';

/**
 * Returns the answer to a failed call of the function `name`; `undefined` for an internal error. The only place where
 * failures become statuses.
 */
export function failureAnswer(error: unknown, name: string, requestId: string): Answer | undefined {
  if (error instanceof BadCall) return text(400, `Error in call to API function "${name}": ${error.message}`);
  if (error instanceof WrongMethod) return text(405, error.message, { allow: error.allow.join(', ') });
  if (error instanceof BucketError || isConnectionLost(error))
    return text(503, AWAY, { 'retry-after': AWAY_SECONDS });
  if (!(error instanceof ApiRefusal)) return undefined;
  const { tags, value } = error.failure;
  const body = { error_summary: summary(tags, requestId), error: value };
  return json(error.status, body, error.headers);
}

/** Returns the 500 of an internal error; the log has it under this id. */
export function faultAnswer(requestId: string): Answer {
  return text(500, `The service failed. Its log has more under the request id ${requestId}.`);
}

/**
 * Joins the tags and appends up to three dots at random, with which the service keeps clients from comparing whole
 * strings.
 */
function summary(tags: readonly string[], requestId: string): string {
  return `${tags.join('/')}/${'.'.repeat(Number.parseInt(requestId.slice(0, 1), 16) % 4)}`;
}
