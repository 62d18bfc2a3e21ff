import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { faultAnswer } from './answers.ts';
import { type Answer, ClientGone, Exchange } from './exchange.ts';

/** An argument may hold a deep path with each character escaped to six bytes. */
const HEADERS_MAX_BYTES = 128 * 1024;
/** For a request's headers to come in whole. Bodies may take as long as they keep coming. */
const HEADERS_TIMEOUT_MS = 60_000;
/** A connection on which nothing moves; longer than the longest long poll, which is 480 s. */
const IDLE_TIMEOUT_MS = 600_000;
/** Between requests; longer than clients keep idle connections, so that they rarely meet one being closed. */
const KEEP_ALIVE_MS = 75_000;
/** For what is under way when the service closes. */
const CLOSE_GRACE_MS = 30_000;

export interface Listener {
  readonly url: string;
  /** Takes no more requests, waits for those under way (bounded), and ends all connections. */
  close(): Promise<void>;
}

export interface ListenerOptions {
  readonly listen: { readonly host: string; readonly port: number };
  readonly clock: Clock;
  readonly log: Log;
  /** Throws nothing but `ClientGone`, where there is no one to answer. */
  readonly answer: (exchange: Exchange) => Promise<Answer>;
}

/** Opens the port. Rejects with Node's error if it cannot. */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const busy = new WeakMap<Socket, number>();
  const underWay = new Set<Promise<void>>();
  let closing = false;
  let isClosingIdle = false;

  /** Once for all answers of a moment: it looks at every connection, and thousands of long polls end together. */
  function closeIdle(): void {
    if (isClosingIdle) return;
    isClosingIdle = true;
    setImmediate(() => {
      isClosingIdle = false;
      server.closeIdleConnections();
    });
  }

  function take(request: IncomingMessage, response: ServerResponse, expectsContinue: boolean): void {
    const { socket } = request;
    busy.set(socket, (busy.get(socket) ?? 0) + 1);
    const served = serve(options, request, response, expectsContinue, () => closing).finally(() => {
      busy.set(socket, (busy.get(socket) ?? 1) - 1);
      underWay.delete(served);
      if (closing) closeIdle();
    });
    underWay.add(served);
  }

  const server = createServer({
    maxHeaderSize: HEADERS_MAX_BYTES,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  server.timeout = IDLE_TIMEOUT_MS;
  server.on('request', (request, response) => take(request, response, false));
  server.on('checkContinue', (request, response) => take(request, response, true));
  server.on('checkExpectation', (request, response) => take(request, response, false));
  server.on('clientError', (error: NodeJS.ErrnoException, socket: Socket) => {
    // A broken connection in the middle of a request ends that; there is no room for a second answer.
    if ((busy.get(socket) ?? 0) > 0 || !socket.writable) socket.destroy();
    else socket.end(malformedAnswer(error.code));
  });
  await listen(server, options.listen);

  return {
    url: urlOf(server, options.listen.host),
    async close() {
      closing = true;
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const graceEnded = new AbortController();
      const grace = options.clock.sleep(CLOSE_GRACE_MS, graceEnded.signal).catch(() => undefined);
      await Promise.race([Promise.allSettled(underWay), grace]);
      graceEnded.abort();
      server.closeAllConnections();
      await Promise.allSettled(underWay);
      await closed;
    },
  };
}

async function serve(
  { answer, log, clock }: ListenerOptions,
  request: IncomingMessage,
  response: ServerResponse,
  expectsContinue: boolean,
  isClosing: () => boolean,
): Promise<void> {
  const requestId = randomBytes(16).toString('hex');
  response.setHeader('x-dropbox-request-id', requestId);
  const exchange = new Exchange(request, response, requestId, clock, expectsContinue);
  try {
    const answered = await answer(exchange);
    if (isClosing()) response.setHeader('connection', 'close');
    await exchange.answer(answered);
  } catch (error) {
    if (!(error instanceof ClientGone) && !exchange.signal.aborted)
      log.error('an answer could not be sent', { requestId, error: String(error) });
    if (response.headersSent || error instanceof ClientGone) exchange.drop();
    else await exchange.answer(faultAnswer(requestId)).catch(() => exchange.drop());
  }
}

function listen(server: Server, { host, port }: ListenerOptions['listen']): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** For bytes that are no HTTP request; even this answer has its id. */
function malformedAnswer(code: string | undefined): string {
  const [status, text] =
    code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', `The headers are longer than ${HEADERS_MAX_BYTES} bytes.`]
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'The headers did not arrive in time.']
        : ['400 Bad Request', 'This is not an HTTP request.'];
  return [
    `HTTP/1.1 ${status}`,
    'Content-Type: text/plain; charset=utf-8',
    `Content-Length: ${text.length}`,
    `X-Dropbox-Request-Id: ${randomBytes(16).toString('hex')}`,
    'Connection: close',
    '',
    text,
  ].join('\r\n');
}
