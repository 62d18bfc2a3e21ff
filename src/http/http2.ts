import type { Server } from 'node:http';
import {
  constants,
  type IncomingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { TLSSocket } from 'node:tls';
import { type Clock, elapsedMs } from '../util/clock.ts';
import { errorCodeOf } from '../util/error-code.ts';
import type { HttpRequest, HttpResponse } from '../util/http-messages.ts';
import type { Log } from '../util/log.ts';
import type { Connection, Connections } from './connections.ts';
import type { Refusal } from './exchange.ts';
import { Http2Request, Http2Response } from './http2-messages.ts';
import type { ListenerLimits } from './limits.ts';
import { isHttp2 } from './node-server.ts';

/** Maximum number of requests at once on a connection. Browsers and other servers have about as many. */
const STREAMS_MAX = 100;

/**
 * How much of a body a client may send before the gateway has read it, and how much on a connection, in bytes. Node's 64 KiB
 * would bound an upload to 1.3 MB/s over a way of 50 ms.
 */
const WINDOW_BYTES = { body: 1024 * 1024, connection: 4 * 1024 * 1024 };

/**
 * Factor between the limit for a header and the size beyond which Node resets the request. In between the client gets a 431
 * with the reason.
 */
const HEADER_SLACK = 2;

/** Maximum number of fields with a reset beyond it; `server.ts` refuses fewer of them with 431. */
const HEADER_FIELDS_MAX = 500;

/** Maximum memory of a session beyond which Node refuses new requests, in MB: listings and pieces that wait for a client. */
const SESSION_MEMORY_MB = 64;

/** Maximum number of invalid frames, and of requests over Node's limits, before a connection is closed. */
const OFFENCES_MAX = 100;

/**
 * Maximum number of requests that a client resets, and of PING and SETTINGS frames, in 10 s. Each of them costs it next to
 * nothing (CVE-2023-44487), and Node counts only what waits for the client.
 */
const NUISANCES = { max: 1_000, withinMs: 10_000 };

/** Number of looks for idle connections within the shortest timeout. */
const CHECKS = 4;

/** Handles a request. `refusal` is what must be answered in place of it. */
type Serve = (
  request: HttpRequest,
  response: HttpResponse,
  expectsContinue: boolean,
  refusal: Refusal | undefined,
) => Promise<void>;

export interface Http2Options {
  readonly limits: ListenerLimits;
  readonly serve: Serve;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns whether the server takes no new request. */
  readonly isClosing: () => boolean;
  /** Aborted when the server has closed. */
  readonly closed: AbortSignal;
}

/** Serves HTTP/2 (RFC 9113) to the clients of `server`, made for it, that agree on it in the TLS handshake. */
export function acceptHttp2(server: Server, connections: Connections, options: Http2Options): void {
  server.on('secureConnection', (socket: TLSSocket) => {
    const connection = connections.of(socket);
    if (isHttp2(socket) && connection && !socket.destroyed)
      openSession(socket, connection, connections, options);
  });
  void closeIdleSessions(connections, options);
}

function openSession(
  socket: TLSSocket,
  connection: Connection,
  connections: Connections,
  { limits, serve, clock, log, isClosing }: Http2Options,
): void {
  const session = performServerHandshake(socket, {
    maxHeaderListPairs: HEADER_FIELDS_MAX,
    maxSessionInvalidFrames: OFFENCES_MAX,
    maxSessionRejectedStreams: OFFENCES_MAX,
    maxSessionMemory: SESSION_MEMORY_MB,
    settings: {
      maxConcurrentStreams: STREAMS_MAX,
      initialWindowSize: WINDOW_BYTES.body,
      maxHeaderListSize: HEADER_SLACK * limits.headerBytesMax,
      enablePush: false,
    },
  });
  session.setLocalWindowSize(WINDOW_BYTES.connection);
  connection.session = session;
  session.on('error', (error) => {
    const code = errorCodeOf(error);
    // A broken connection is not a malformed request.
    if (code !== '' && !code.startsWith('ERR_HTTP2_')) return;
    log.info('HTTP/2 connection closed', { address: connection.address, reason: error.message });
  });
  const noteNuisance = nuisancesOf(session, clock);
  session.on('ping', noteNuisance);
  session.on('remoteSettings', noteNuisance);
  // Node's types lack the last argument, which is documented.
  const begin = (
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    _flags: number,
    rawHeaders: readonly string[] = [],
  ): void => {
    // An error without a listener would end the process. `Http2Request` follows "close".
    stream.on('error', () => {});
    stream.once('close', () => {
      if (stream.rstCode) noteNuisance();
    });
    // It was reset at once.
    if (stream.destroyed) return;
    const refusal = refusalOf(headers, rawHeaders, limits) ?? connections.refusalFor(connection);
    const request = new Http2Request(stream, headers, rawHeaders);
    connections.addStream(request.socket, connection);
    const response = new Http2Response(request);
    const expectsContinue = headers.expect !== undefined && !request.complete;
    void serve(request, response, expectsContinue, refusal);
  };
  session.on('stream', begin);
  // The handshake was under way when the other sessions were told. Requests would be taken, and cut off soon.
  if (isClosing()) session.close();
}

/** Returns a function that counts a nuisance, and ends the session after too many of them. */
function nuisancesOf(session: ServerHttp2Session, clock: Clock): () => void {
  let count = 0;
  let since = clock.instant();
  return () => {
    if (elapsedMs(clock, since) >= NUISANCES.withinMs) {
      count = 0;
      since = clock.instant();
    }
    count += 1;
    if (count <= NUISANCES.max) return;
    const error = new Error('too many resets, PING or SETTINGS frames');
    session.destroy(error, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  };
}

/** Returns why a request is refused that Node accepts, apart from what is wrong in HTTP/1.1 too. */
function refusalOf(
  headers: IncomingHttpHeaders,
  rawHeaders: readonly string[],
  { headerBytesMax }: ListenerLimits,
): Refusal | undefined {
  if (headers[':method'] === 'CONNECT') return { status: 405, text: 'This server opens no tunnels.' };
  const headerBytes = rawHeaders.reduce((sum, text) => sum + text.length, 0);
  if (headerBytes > headerBytesMax)
    return { status: 431, text: `The header takes more than ${headerBytesMax / 1024} KiB; shorten it.` };
  const { host, ':authority': authority = host } = headers;
  if (host !== undefined && host.toLowerCase() !== authority?.toLowerCase())
    return { status: 400, text: 'Host and :authority differ; send :authority alone.' };
  return undefined;
}

/**
 * Ends sessions without a request, as Node ends idle connections of HTTP/1.1: politely, and if the client does not close the
 * connection then, at the next look.
 */
async function closeIdleSessions(connections: Connections, options: Http2Options): Promise<void> {
  const { limits, clock, closed } = options;
  const { headersTimeoutMs, keepAliveTimeoutMs } = limits;
  const lookMs = Math.ceil(Math.min(headersTimeoutMs, keepAliveTimeoutMs) / CHECKS);
  while (
    await clock.sleep(lookMs, closed).then(
      () => true,
      () => false,
    )
  ) {
    for (const connection of connections.idle) {
      const { session, hasServed } = connection;
      const idleMaxMs = hasServed ? keepAliveTimeoutMs : headersTimeoutMs;
      if (!session || elapsedMs(clock, connection.idleSince) < idleMaxMs) continue;
      if (session.closed) connection.destroy();
      else session.close();
    }
  }
}
