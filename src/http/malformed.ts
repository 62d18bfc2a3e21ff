import { type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { Alarm } from '../util/wait.ts';
import type { Connections } from './connections.ts';
import type { Exchange } from './exchange.ts';

/** How long a client may take to read the answer to a malformed request. */
const LINGER_MS = 2_000;

interface Malformation {
  readonly status: number;
  /** What was wrong and what to do, for whoever debugs a client. */
  readonly reason: string;
}

/** By the code of Node's parser (llhttp), or ours. */
const MALFORMATIONS: Readonly<Record<string, Malformation>> = {
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, reason: 'the header did not come whole in time; send it at once' },
  HPE_UNEXPECTED_CONTENT_LENGTH: {
    status: 400,
    reason: 'Content-Length stands twice or beside Transfer-Encoding; send one of them, once',
  },
  HPE_INVALID_CONTENT_LENGTH: {
    status: 400,
    reason: 'Content-Length is not a number of bytes; send digits only',
  },
  HPE_INVALID_TRANSFER_ENCODING: {
    status: 400,
    reason: 'Transfer-Encoding does not end in chunked, or stands beside Content-Length; send chunked alone',
  },
  HPE_INVALID_CHUNK_SIZE: {
    status: 400,
    reason: 'a chunk does not begin with its size; send it in hexadecimal',
  },
  HPE_INVALID_METHOD: { status: 400, reason: 'the request does not begin with a method of HTTP or WebDAV' },
  HPE_INVALID_URL: { status: 400, reason: 'the path holds a byte that must be percent-encoded' },
  HPE_INVALID_HEADER_TOKEN: { status: 400, reason: 'a header field holds a byte that may not stand there' },
  HPE_INVALID_EOF_STATE: {
    status: 400,
    reason: 'the connection ended before the request did; send all of it',
  },
  CONNECT: { status: 405, reason: 'this server opens no tunnels' },
};

const OTHERWISE: Malformation = {
  status: 400,
  reason: 'this is no request of HTTP/1.1; check what the client sends',
};

export interface MalformedOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly headerBytesMax: number;
  /** Header fields of each answer. */
  readonly headers: () => Readonly<Record<string, string>>;
}

/** What is known of a request that could not be read. */
interface Malformed {
  readonly malformation: Malformation;
  /** `undefined` when its first line came in an earlier piece, which Node does not keep. */
  readonly method: string | undefined;
}

/** Answers what Node's parser cannot read, and requests for a tunnel; the connection ends with it. */
export function refuseMalformed(server: Server, connections: Connections, options: MalformedOptions): void {
  const refused = new WeakSet<Duplex>();
  const refuseOnce = (socket: Duplex, code: string, method: string | undefined) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    const malformation = malformationOf(code, options.headerBytesMax);
    options.log.info('malformed request', { status: malformation.status, code });
    const exchanges = [...(connections.of(socket)?.exchanges ?? [])];
    void refuseOn(socket, { malformation, method }, exchanges, options);
  };
  server.on('clientError', (error, socket) => {
    const code = 'code' in error ? String(error.code) : '';
    // A connection that broke is no malformed request, and nobody is there to be told.
    if (!/^(HPE_|ERR_HTTP_)/.test(code)) socket.destroy();
    else refuseOnce(socket, code, code === 'HPE_INVALID_METHOD' ? 'none' : methodIn(error));
  });
  server.on('connect', (_request, socket: Duplex) => refuseOnce(socket, 'CONNECT', 'CONNECT'));
}

function malformationOf(code: string, headerBytesMax: number): Malformation {
  if (code !== 'HPE_HEADER_OVERFLOW') return MALFORMATIONS[code] ?? OTHERWISE;
  const kib = headerBytesMax / 1024;
  return { status: 431, reason: `the request line and header take more than ${kib} KiB; shorten them` };
}

/** The method of the request in which the parser stopped, if what it last read holds that. */
function methodIn(error: Error): string | undefined {
  const { rawPacket, bytesParsed } = error as { readonly rawPacket?: Buffer; readonly bytesParsed?: number }; // Node's parser adds them
  const read = rawPacket?.subarray(0, bytesParsed).toString('latin1') ?? '';
  const head = read.slice(Math.max(0, read.lastIndexOf('\r\n\r\n')));
  return /^\s*([A-Z]+) /.exec(head)?.[1];
}

async function refuseOn(
  socket: Duplex,
  malformed: Malformed,
  before: readonly Exchange[],
  options: MalformedOptions,
): Promise<void> {
  const broken = before.find(({ request }) => !request.complete);
  // Whole requests that came before what is wrong get their answers first.
  await Promise.all(before.filter((exchange) => exchange !== broken).map(({ ended }) => ended));
  // In the middle of an answer another one would pass for a part of it.
  if (broken?.response.headersSent) socket.destroy();
  else await answer(socket, broken ? { ...malformed, method: broken.request.method } : malformed, options);
}

/**
 * Our half of the connection ends at once, all of it when the client's has or its time is over: it must not lose the
 * answer. The reason is told only where it cannot be a HEAD that was refused, whose answer has no body (RFC 9110 §9.3.2).
 */
async function answer(
  socket: Duplex,
  { malformation: { status, reason }, method }: Malformed,
  { clock, headers }: MalformedOptions,
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
