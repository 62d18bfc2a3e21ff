import { type Server, STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Exchange } from './exchange.ts';

/** For so long a client may take to read an answer to what was no request. */
const LINGER_MS = 2_000;

const STATUS_OF: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

interface Tools {
  readonly clock: Clock;
  readonly log: Log;
}

/** Answers what Node's parser cannot read, and requests for a tunnel; the connection ends with it. */
export function refuseMalformed(server: Server, running: ReadonlySet<Exchange>, tools: Tools): void {
  const refused = new WeakSet<Duplex>();
  const refuseOnce = (socket: Duplex, status: number, code: string | undefined) => {
    if (refused.has(socket)) return;
    refused.add(socket);
    tools.log.info('what came was no request', { status, code });
    void refuseOn(socket, status, running, tools.clock);
  };
  server.on('clientError', (error, socket) => {
    const code = 'code' in error ? String(error.code) : undefined;
    refuseOnce(socket, STATUS_OF[code ?? ''] ?? 400, code);
  });
  server.on('connect', (_request, socket: Duplex) => refuseOnce(socket, 405, 'CONNECT'));
}

async function refuseOn(
  socket: Duplex,
  status: number,
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
  await answer(socket, status, clock);
}

/** Our half of the connection ends at once, all of it when the client's has or its time is over: it must not lose the answer. */
async function answer(socket: Duplex, status: number, clock: Clock): Promise<void> {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const phrase = STATUS_CODES[status] ?? '';
  const head = `HTTP/1.1 ${status} ${phrase}\r\nConnection: close\r\nContent-Type: text/plain\r\n`;
  const body = `${phrase}\n`;
  socket.end(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  socket.resume();
  const done = new AbortController();
  for (const event of ['end', 'close', 'error']) socket.once(event, () => done.abort());
  await clock.sleep(LINGER_MS, done.signal).catch(() => undefined);
  socket.destroy();
}
