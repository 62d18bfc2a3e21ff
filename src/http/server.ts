import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import type { Address, SocketAddress } from '../config/address.ts';
import type { BasePath } from '../util/base-path.ts';
import type { Clock } from '../util/clock.ts';
import type { HttpRequest, HttpResponse } from '../util/http-messages.ts';
import type { Log } from '../util/log.ts';
import type { Networks } from '../util/networks.ts';
import { Connections } from './connections.ts';
import { Drain } from './drain.ts';
import { ClientGone, Exchange, newRequestId, type Refusal } from './exchange.ts';
import { type Forwarded, forwardedOf } from './forwarded.ts';
import { cutIdleConnections } from './idle-timeouts.ts';
import type { ListenerLimits } from './limits.ts';
import {
  bracketed,
  type CertificateFiles,
  createNodeServer,
  listen,
  replaceCertificate,
} from './node-server.ts';
import { listenOnPassedSocket } from './passed-socket.ts';
import { listenOnSocket } from './unix-socket.ts';
import { refuseUnreadable } from './unreadable-requests.ts';

/** Maximum number of header fields of a request; the longest real requests have about 30. */
export const HEADER_FIELDS_MAX = 200;

export interface ServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /**
   * Listens on this Unix socket, or the socket that systemd passed, instead of `host` and `port`. Every client of a Unix
   * socket counts as a trusted proxy.
   */
  readonly socket?: SocketAddress | 'systemd' | undefined;
  /** Serves https with these. */
  readonly tls?: CertificateFiles | undefined;
  /** Whether it speaks HTTP/2 beside HTTP/1.1 to clients with TLS. */
  readonly hasHttp2?: boolean | undefined;
  readonly limits: ListenerLimits;
  /** Proxies that are believed about a client's address. They are exempt from the limit for one address. */
  readonly proxies: Networks;
  /** The path below which it serves; `''` by default. */
  readonly basePath?: BasePath;
  readonly clock: Clock;
  readonly log: Log;
  /** Returns the header fields of every answer, also to a malformed request. */
  readonly headers?: (request: { readonly requestId: string }) => Readonly<Record<string, string>>;
  /** Answers a well-formed request; resolves when all work on it is done, also work that outlives the client. */
  readonly handle: (exchange: Exchange) => Promise<void>;
  /** Called when an exchange and its handler have ended, also if it was refused before `handle`. */
  readonly handled?: (exchange: Exchange) => void;
  /** Called when a client has connected, with TLS after the handshake. */
  readonly connected?: (socket: Socket) => void;
}

/** A listening HTTP server, of the gateway or of the service. */
export interface HttpServer {
  readonly port: number;
  /** Address with a slash at the end; names this machine when the server listens on all its addresses. */
  readonly url: string;
  /** Ends each HTTP/1.1 connection with its next answer from now on; new connections are still taken. */
  announceClose(): void;
  /**
   * Takes no new connection, lets running requests go on until `over`, and resolves when all connections are closed.
   */
  close(over: AbortSignal): Promise<void>;
  /** Uses this certificate for new connections. Throws `CertificateError`, and then keeps the old one. */
  replaceCertificate(tls: CertificateFiles): void;
  /** Resolves when no handler runs any more. `close` does not wait for handlers that outlast the grace period. */
  idle(): Promise<void>;
}

/** Starts a server that hands each well-formed request to `handle`. Throws `ListenError` and `CertificateError`. */
export async function startServer(options: ServerOptions): Promise<HttpServer> {
  const { tls, limits, proxies, clock, log } = options;
  const hasHttp2 = tls !== undefined && options.hasHttp2 === true;
  const server = createNodeServer(tls, limits, { hasHttp2 });
  const connections = new Connections(server, { isTls: tls !== undefined, limits, proxies, clock, log });
  const headers = options.headers ?? ((): Readonly<Record<string, string>> => ({}));
  const drain = new Drain(server, connections, log);
  const serve = async (
    request: HttpRequest,
    response: HttpResponse,
    expectsContinue: boolean,
    refusal?: Refusal,
  ) => {
    const connection = connections.of(request.socket);
    if (!connection || connection.isRefused) return;
    const { address, isProxy } = connection;
    const forwarded: Forwarded = isProxy
      ? forwardedOf(address, request.headers, proxies)
      : { address, hosts: undefined, isSecure: false, prefix: '' };
    const exchange = new Exchange(request, response, {
      forwarded,
      isSecure: tls !== undefined || forwarded.isSecure,
      basePath: options.basePath ?? '',
      expectsContinue,
      clock,
      headers,
    });
    const malformed =
      refusal ?? malformedRefusal(request) ?? (forwarded.prefix === undefined ? BAD_PREFIX : undefined);
    // A stream of HTTP/2 cannot smuggle another request.
    if (malformed) connection.isRefused = connection.session === undefined;
    if (malformed || drain.isAnnounced) response.shouldKeepAlive = false;
    connections.begin(connection, exchange);
    const mustWait = connection.exchanges.size > 1 && connection.session === undefined;
    try {
      if (mustWait && !(await connections.turnOf(connection, exchange))) throw new ClientGone();
      await (malformed ? exchange.refuse(malformed) : options.handle(exchange));
    } catch (error) {
      const { requestId } = exchange;
      if (!(error instanceof ClientGone))
        log.error('internal error', { requestId, method: request.method, error: String(error) });
      await answerFailure(exchange);
    }
    await exchange.ended;
    options.handled?.(exchange);
    connections.end(connection, exchange);
    if (drain.isOn) drain.exchangeEnded();
  };
  server.on('request', (request, response) => void serve(request, response, false));
  server.on('checkContinue', (request, response) => void serve(request, response, true));
  server.on('checkExpectation', (request, response) => void serve(request, response, true));
  const { headerBytesMax } = limits;
  const newHeaders = () => headers({ requestId: newRequestId() });
  refuseUnreadable(server, connections, { clock, log, headerBytesMax, headers: newHeaders });
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => options.connected?.(socket));
  if (hasHttp2) {
    const { acceptHttp2 } = await import('./http2.ts');
    const isClosing = () => drain.isOn;
    acceptHttp2(server, connections, { limits, serve, clock, log, isClosing, closed: drain.signal });
  }
  const place = await listenAt(server, options);
  void cutIdleConnections(connections, limits, { clock, log }, drain.signal);
  return {
    port: place?.port ?? 0,
    url: place ? urlOf(place.host, place.port, tls !== undefined) : 'http://localhost/',
    announceClose: () => drain.announce(),
    close: (over) => drain.close(over),
    replaceCertificate: (files) => replaceCertificate(server, files),
    idle: () => drain.ended(),
  };
}

/** Returns the address at which the server listens; `undefined` for a Unix socket. */
async function listenAt(server: Server, { host, port, socket }: ServerOptions): Promise<Address | undefined> {
  if (socket === 'systemd') return await listenOnPassedSocket(server);
  if (!socket) return { host, port: await listen(server, host, port) };
  await listenOnSocket(server, socket);
  return undefined;
}

const BAD_PREFIX: Refusal = {
  status: 400,
  text: 'X-Forwarded-Prefix is not a path like /drive; correct it in the reverse proxy.',
};

const HOST = 'host';

/** Returns why a request that Node's parser accepted is malformed, or `undefined` for a well-formed one. */
function malformedRefusal({ rawHeaders, headers, httpVersion }: HttpRequest): Refusal | undefined {
  if (rawHeaders.length / 2 > HEADER_FIELDS_MAX)
    return { status: 431, text: `Too many header fields; send at most ${HEADER_FIELDS_MAX}.` };
  let hosts = 0;
  for (let index = 0; index < rawHeaders.length; index += 2)
    if (rawHeaders[index]?.length === HOST.length && rawHeaders[index]?.toLowerCase() === HOST) hosts++;
  if (hosts > 1) return { status: 400, text: 'The request has more than one Host.' };
  if (hosts === 0 && httpVersion !== '1.0') return { status: 400, text: 'The request has no Host.' };
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect))
    return { status: 417, text: 'Only Expect: 100-continue is supported.' };
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return undefined;
  if (httpVersion === '1.0')
    return { status: 400, text: 'HTTP/1.0 has no Transfer-Encoding; send a Content-Length.' };
  if (coding.trim().toLowerCase() !== 'chunked')
    return { status: 501, text: 'Only Transfer-Encoding: chunked is supported.' };
  return undefined;
}

/** Answers 500 after a defect of ours; breaks the connection if an answer has begun. */
async function answerFailure(exchange: Exchange): Promise<void> {
  const { response, requestId } = exchange;
  if (response.headersSent) return exchange.drop();
  exchange.resetHeaders();
  await exchange.refuse({ status: 500, text: `internal error; see davgate's log (request ${requestId})` });
}

function urlOf(host: string, port: number, isSecure: boolean): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : bracketed(host);
  return `${isSecure ? 'https' : 'http'}://${name}:${port}/`;
}
