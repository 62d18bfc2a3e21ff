import { type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Exchange } from './exchange.ts';

/** For so long a client may take to read an answer to what was no request. */
const LINGER_MS = 2_000;

interface Malformation {
  readonly status: number;
  /** What was wrong and what to do, for whoever debugs a client. */
  readonly reason: string;
}

/** By the code of Node's parser (llhttp), or ours. */
const MALFORMATIONS: Readonly<Record<string, Malformation>> = {
  HPE_HEADER_OVERFLOW: {
    status: 431,
    reason: 'the request line and header take more than 64 KiB; shorten them',
  },
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

interface Tools {
  readonly clock: Clock;
  readonly log: Log;
}

/** Answers what Node's parser cannot read, and requests for a tunnel; the connection ends with it. */
export function refuseMalformed(server: Server, running: ReadonlySet<Exchange>, tools: Tools): void {
  const refused = new WeakSet<Duplex>();
  const refuseOnce = (socket: Duplex, code: string | undefined) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    const malformation = MALFORMATIONS[code ?? ''] ?? OTHERWISE;
    tools.log.info('what came was no request', { status: malformation.status, code });
    void refuseOn(socket, malformation, running, tools.clock);
  };
  server.on('clientError', (error, socket) => {
    const code = 'code' in error ? String(error.code) : undefined;
    refuseOnce(socket, code);
  });
  server.on('connect', (_request, socket: Duplex) => refuseOnce(socket, 'CONNECT'));
}

async function refuseOn(
  socket: Duplex,
  malformation: Malformation,
  running: ReadonlySet<Exchange>,
  clock: Clock,
): Promise<void> {
  const before = [...running].filter(({ request }) => request.socket === socket);
  const broken = before.find(({ request }) => !request.complete);
  // In the middle of an answer another one would pass for a part of it.
  if (broken?.response.headersSent) {
    socket.destroy();
    return;
  }
  // What is wrong came behind whole requests: these get their answers first.
  if (!broken) await Promise.all(before.map(({ ended }) => ended));
  await answer(socket, malformation, clock);
}

/** Our half of the connection ends at once, all of it when the client's has or its time is over: it must not lose the answer. */
async function answer(socket: Duplex, { status, reason }: Malformation, clock: Clock): Promise<void> {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const phrase = STATUS_CODES[status] ?? '';
  const head = `HTTP/1.1 ${status} ${phrase}\r\nConnection: close\r\nContent-Type: text/plain\r\n`;
  const body = `${reason}\n`;
  socket.end(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  socket.resume();
  const done = new AbortController();
  for (const event of ['end', 'close', 'error']) socket.once(event, () => done.abort());
  await clock.sleep(LINGER_MS, done.signal).catch(() => undefined);
  socket.destroy();
}
