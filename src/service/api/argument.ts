import type { Exchange } from '../../http/exchange.ts';
import type { HttpRequest } from '../../util/http-messages.ts';
import { readBody } from '../../util/whole-body.ts';
import { type Incoming, StorageError } from '../storage/storage.ts';
import { BadCall } from './failures.ts';
import type { Route } from './route.ts';
import { within } from './schema.ts';

/** An undecoded argument, and the name of its place for error messages. */
export interface Given {
  readonly place: string;
  readonly value: unknown;
}

/** Maximum size of an RPC body. Batches of 10,000 paths need about 8 MiB. */
const RPC_BODY_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Maximum size of an RPC body without authorization, because anybody could make us keep many of them in memory. The
 * longest cursor takes about 260 KB.
 */
const OPEN_BODY_BYTES_MAX = 512 * 1024;

const CORS_HACK = 'text/plain; charset=dropbox-cors-hack';
const RPC_TYPES = ['application/json', 'application/json; charset=utf-8', CORS_HACK];
const UPLOAD_TYPES = ['application/octet-stream', CORS_HACK];
/** Content types of a body that a download ignores: the argument was put in the wrong place. */
const DOWNLOAD_REFUSED =
  /^(application\/json|application\/x-www-form-urlencoded|multipart\/form-data|text\/plain)\b/;

/**
 * Returns the argument of an RPC function, from its body. A function without an argument may also be called with no
 * body, and then without a content type. Throws `BadCall`.
 */
export async function rpcArgument(
  request: HttpRequest,
  body: AsyncIterable<Uint8Array>,
  { void: isVoid, auth }: Pick<Route, 'void' | 'auth'>,
): Promise<Given> {
  const type = request.headers['content-type'] ?? '';
  if (type !== '' || !isVoid) checkType(type, RPC_TYPES);
  const place = 'request body';
  const bytesMax = auth === 'none' ? OPEN_BODY_BYTES_MAX : RPC_BODY_BYTES_MAX;
  const bytes = await readBody(body, bytesMax);
  if (!bytes) throw new BadCall(`${place}: must be at most ${bytesMax} bytes`);
  if (isVoid && bytes.length === 0) return { place, value: {} };
  checkType(type, RPC_TYPES);
  const value = within(place, () => decodeJson(bytes));
  return { place, value: isVoid && value === null ? {} : value };
}

/** Returns the argument of an upload- or download-style function, from a header or the URL's `arg`. */
export function headerArgument(
  request: HttpRequest,
  query: URLSearchParams,
  style: 'upload' | 'download',
): Given {
  const type = request.headers['content-type'] ?? '';
  if (style === 'upload') checkType(type, UPLOAD_TYPES);
  else if (DOWNLOAD_REFUSED.test(type.toLowerCase())) throw wrongType(type, ['', 'application/octet-stream']);
  const header = request.headers['dropbox-api-arg'];
  if (header !== undefined) {
    const place = 'HTTP header "Dropbox-API-Arg"';
    return { place, value: within(place, () => decodeArgument(String(header))) };
  }
  const parameter = query.get('arg');
  if (parameter === null)
    throw new BadCall('Must provide HTTP header "Dropbox-API-Arg" or URL parameter "arg".');
  const place = 'URL parameter "arg"';
  return { place, value: within(place, () => parseJson(parameter)) };
}

/** Decodes JSON in a header. Node decodes headers as Latin-1, and some clients send raw UTF-8. */
export function decodeArgument(header: string): unknown {
  return decodeJson(Buffer.from(header, 'latin1'));
}

/** Encodes JSON for a header: everything but printable ASCII is escaped, astral characters as two surrogates. */
export function encodeResult(value: unknown): string {
  return JSON.stringify(value).replaceAll(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

const NOT_JSON = 'could not decode input as JSON';

function decodeJson(bytes: Uint8Array): unknown {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new BadCall(NOT_JSON);
  }
  return parseJson(text);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new BadCall(NOT_JSON);
  }
}

function checkType(type: string, expected: readonly string[]): void {
  const given = normalType(type);
  if (!expected.some((one) => normalType(one) === given)) throw wrongType(type, expected);
}

function normalType(type: string): string {
  return type.toLowerCase().replaceAll(/[ \t"]/g, '');
}

function wrongType(type: string, expected: readonly string[]): BadCall {
  const choices = `Expecting one of ${expected.map((one) => `"${one}"`).join(', ')}.`;
  return new BadCall(
    type.trim() === ''
      ? `Missing or empty HTTP "Content-Type" header.  ${choices}`
      : `Bad HTTP "Content-Type" header: "${type}".  ${choices}`,
  );
}

/** Maximum size of one call's body. */
const UPLOAD_BYTES_MAX = 150 * 1024 * 1024;

/** Returns the body for the store. A body whose announced length is too large is refused before it is read. */
export function uploadBody(exchange: Exchange, contentHash: string | undefined): Incoming {
  if (Number(exchange.request.headers['content-length'] ?? 0) > UPLOAD_BYTES_MAX)
    throw new StorageError({ kind: 'body', tag: 'payload_too_large' });
  if (exchange.request.headers['content-encoding'] !== undefined)
    throw new BadCall('HTTP header "Content-Encoding" is not supported; send the bytes as they are.');
  return {
    bytes: exchange.body(),
    bytesMax: UPLOAD_BYTES_MAX,
    ...(contentHash !== undefined && { contentHash }),
  };
}
