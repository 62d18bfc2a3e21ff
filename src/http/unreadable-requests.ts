import { type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../util/clock.ts';
import { errorCodeOf } from '../util/error-code.ts';
import type { Log } from '../util/log.ts';
import { Alarm } from '../util/wait.ts';
import type { Connections } from './connections.ts';
import type { Exchange } from './exchange.ts';

/** How long a client may take to read the answer to an unreadable request, in ms. */
const LINGER_MS = 2_000;

interface Malformation {
  readonly status: number;
  /** The defect and its correction, for the developer of a client. */
  readonly reason: string;
  /** Where the same request is well formed. */
  readonly location?: string;
}

/** Malformations by error code of Node's parser (llhttp), and of `CONNECT`. */
const MALFORMATIONS: Readonly<Record<string, Malformation>> = {
  ERR_HTTP_REQUEST_TIMEOUT: {
    status: 408,
    reason: 'the header did not arrive in time; send it in one piece',
  },
  HPE_UNEXPECTED_CONTENT_LENGTH: {
    status: 400,
    reason: 'Content-Length is repeated or accompanies Transfer-Encoding; send only one of them, once',
  },
  HPE_INVALID_CONTENT_LENGTH: {
    status: 400,
    reason: 'Content-Length is not a number of bytes; send digits only',
  },
  HPE_INVALID_TRANSFER_ENCODING: {
    status: 400,
    reason: 'Transfer-Encoding does not end in chunked, or accompanies Content-Length; send chunked alone',
  },
  HPE_INVALID_CHUNK_SIZE: {
    status: 400,
    reason: 'a chunk does not begin with its size; send it in hexadecimal',
  },
  HPE_INVALID_METHOD: { status: 400, reason: 'the request does not begin with an HTTP or WebDAV method' },
  HPE_INVALID_URL: { status: 400, reason: 'the path contains a byte that must be percent-encoded' },
  HPE_INVALID_HEADER_TOKEN: { status: 400, reason: 'a header field contains a forbidden byte' },
  HPE_INVALID_EOF_STATE: {
    status: 400,
    reason: 'the connection ended in the middle of the request; send all of it',
  },
  CONNECT: { status: 405, reason: 'this server opens no tunnels' },
};

const OTHER: Malformation = {
  status: 400,
  reason: 'not an HTTP/1.1 request; check what the client sends',
};

export interface UnreadableOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly headerBytesMax: number;
  /** Returns the header fields of an answer. */
  readonly headers: () => Readonly<Record<string, string>>;
}

/** The parts are `undefined` when the request line came in an earlier chunk, which Node does not keep. */
interface RequestLine {
  readonly method: string | undefined;
  readonly target?: string | undefined;
}

/** A request that the parser could not read. */
interface Unreadable {
  readonly malformation: Malformation;
  readonly method: string | undefined;
}

/**
 * Answers requests that Node's parser cannot read, and CONNECT; then closes the connection. The parser refuses a body
 * with two lengths, or a length and chunks, because it could smuggle one request inside another.
 */
export function refuseUnreadable(server: Server, connections: Connections, options: UnreadableOptions): void {
  const refused = new WeakSet<Duplex>();
  const refuseOnce = (socket: Duplex, code: string, line: RequestLine) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    const malformation = malformationOf(code, line, options.headerBytesMax);
    options.log.info('malformed request', { status: malformation.status, code });
    const exchanges = [...(connections.of(socket)?.exchanges ?? [])];
    void refuseOn(socket, { malformation, method: line.method }, exchanges, options);
  };
  server.on('clientError', (error, socket) => {
    const code = errorCodeOf(error);
    // A broken connection is not a malformed request, and has no client to answer.
    if (!/^(HPE_|ERR_HTTP_)/.test(code)) socket.destroy();
    else refuseOnce(socket, code, code === 'HPE_INVALID_METHOD' ? { method: 'none' } : requestLineIn(error));
  });
  server.on('connect', (_request, socket: Duplex) => refuseOnce(socket, 'CONNECT', { method: 'CONNECT' }));
}

function malformationOf(code: string, { target }: RequestLine, headerBytesMax: number): Malformation {
  const location = code === 'HPE_INVALID_URL' && target !== undefined ? encoded(target) : undefined;
  if (location !== undefined)
    return { status: 308, reason: 'the path must be percent-encoded, as in Location', location };
  if (code !== 'HPE_HEADER_OVERFLOW') return MALFORMATIONS[code] ?? OTHER;
  const kib = headerBytesMax / 1024;
  return { status: 431, reason: `the request line and header take more than ${kib} KiB; shorten them` };
}

/** Returns what the chunk that the parser read last contains of the request line in which it stopped. */
function requestLineIn(error: Error): RequestLine {
  const { rawPacket, bytesParsed } = error as { readonly rawPacket?: Buffer; readonly bytesParsed?: number }; // Node's parser adds them
  const read = rawPacket?.subarray(0, bytesParsed).toString('latin1') ?? '';
  const head = rawPacket?.toString('latin1').slice(Math.max(0, read.lastIndexOf('\r\n\r\n'))) ?? '';
  const [, method, target] = /^\s*([A-Z]+) (?:([^\s#]+) HTTP\/1\.[01]\r\n)?/.exec(head) ?? [];
  return { method, target };
}

/**
 * Returns a path whose bytes beyond ASCII stand as they are, as curl sends a name that was typed, in its percent-encoded form;
 * `undefined` for anything else. Serving it without a redirect would serve what a filter before this server has not
 * understood (RFC 9112 §3.2).
 */
function encoded(target: string): string | undefined {
  // Browsers take a path that begins with two slashes, or a slash and a backslash, for another server.
  if (!/^\/(?![/\\])[\x21-\x7e\x80-\xff]*$/.test(target)) return undefined;
  const path = target.replaceAll(
    /[\x80-\xff]/g,
    (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return path === target ? undefined : path;
}

async function refuseOn(
  socket: Duplex,
  request: Unreadable,
  before: readonly Exchange[],
  options: UnreadableOptions,
): Promise<void> {
  const broken = before.find(({ request }) => !request.complete);
  // Complete requests before the malformed one get their answers first.
  await Promise.all(before.filter((exchange) => exchange !== broken).map(({ ended }) => ended));
  // A second answer in the middle of the first would be read as a part of it.
  if (broken?.response.headersSent) socket.destroy();
  else await answer(socket, broken ? { ...request, method: broken.request.method } : request, options);
}

/**
 * Ends our half of the connection at once, and the rest when the client ends its half or takes too long, so that the
 * client does not lose the answer. Leaves out the reason if the request may be a HEAD (RFC 9110 §9.3.2: no body).
 */
async function answer(
  socket: Duplex,
  { malformation: { status, reason, location }, method }: Unreadable,
  { clock, headers }: UnreadableOptions,
): Promise<void> {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const body = method === undefined || method === 'HEAD' ? '' : `${reason}\n`;
  const fields = {
    Connection: 'close',
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': String(body.length),
    ...(location !== undefined && { Location: location }),
    ...headers(),
  };
  const lines = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n${lines.join('')}\r\n${body}`);
  socket.resume();
  const done = new Alarm(clock);
  for (const event of ['end', 'close', 'error']) socket.once(event, () => done.ring());
  await done.sleep(LINGER_MS);
  socket.destroy();
}
