import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { type Clock, systemClock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { Credentials, type User } from './credentials.ts';
import { Drain } from './drain.ts';
import { beginExchange, type Exchange, type Handle, runExchange } from './exchange.ts';
import type { Health } from './health.ts';
import { LISTENER_LIMITS, type ListenerLimits } from './limits.ts';
import { refuseMalformed } from './malformed.ts';
import type { Metrics } from './metrics.ts';
import { bracketed, type CertificateFiles, createHttpServer, listen } from './server.ts';
import { cutStalls } from './stalls.ts';

/** Between two lines of the log about connections over the limit: whoever floods us must not flood the log. */
const DROP_LOG_PAUSE_MS = 60_000;

export interface ListenerOptions {
  readonly host: string;
  /** 0 takes any that is free. */
  readonly port: number;
  /** Serves https with these. */
  readonly tls?: CertificateFiles | undefined;
  /** `undefined`: everyone may come in. */
  readonly users: readonly User[] | undefined;
  readonly handle: Handle;
  readonly log: Log;
  /** Facts for `/.davgate/healthz`, which everyone may read. */
  readonly health?: () => Health;
  /** Served at `/.davgate/metrics`: to this machine, and to users. */
  readonly metrics?: Metrics;
  /** Web pages of these origins may use the drive, as in `https://app.example.org`. */
  readonly crossOrigins?: readonly string[];
  /** For a drive without a login: whoever asks must call this machine `localhost` or by an address. */
  readonly onlyLocalNames?: boolean;
  readonly limits?: Partial<ListenerLimits>;
  readonly clock?: Clock;
}

export interface Listener {
  /** With a slash at the end; names this machine when it listens on all its addresses. */
  readonly url: string;
  readonly port: number;
  /**
   * Takes no new connection, lets running requests finish for as long as the limits grant, and resolves when
   * all connections are closed and all handlers that had that time are through.
   */
  close(): Promise<void>;
}

/**
 * Listens and passes each request that may come in to `handle`. Throws `ListenError`, `CertificateError`,
 * `PasswordHashError`.
 */
export async function startListener(options: ListenerOptions): Promise<Listener> {
  const limits = { ...LISTENER_LIMITS, ...options.limits };
  const clock = options.clock ?? systemClock;
  const { log, tls } = options;
  const server = createHttpServer(tls, limits);
  const running = new Set<Exchange>();
  const drain = new Drain(server, running, limits, { clock, log });
  const surroundings = {
    handle: options.handle,
    credentials: options.users && new Credentials(options.users, clock),
    health: options.health ?? (() => ({})),
    metrics: options.metrics,
    isDraining: () => drain.isOn,
    crossOrigins: options.crossOrigins ?? [],
    onlyLocalNames: options.onlyLocalNames ?? false,
    clock,
    log,
  };
  const givenUp = new WeakSet<Socket>();
  const serve = async (request: IncomingMessage, response: ServerResponse, expectsContinue: boolean) => {
    // What follows a wrong request may be the part of it that was to be smuggled in.
    if (givenUp.has(request.socket)) return;
    const exchange = beginExchange(request, response, expectsContinue, clock);
    if (exchange.wrong) givenUp.add(request.socket);
    if (drain.isOn) response.shouldKeepAlive = false;
    running.add(exchange);
    await runExchange(exchange, surroundings);
    running.delete(exchange);
    drain.exchangeEnded();
  };
  server.on('request', (request, response) => void serve(request, response, false));
  server.on('checkContinue', (request, response) => void serve(request, response, true));
  server.on('checkExpectation', (request, response) => void serve(request, response, true));
  endWithSocket(server, running);
  refuseMalformed(server, running, { clock, log });
  logDrops(server, { clock, log });
  server.on(tls ? 'secureConnection' : 'connection', (socket: Socket) => options.metrics?.connected(socket));
  const port = await listen(server, options.host, options.port);
  void cutStalls(running, limits, { clock, log }, drain.signal);
  return { url: urlOf(options.host, port, tls !== undefined), port, close: () => drain.close() };
}

function urlOf(host: string, port: number, isSecure: boolean): string {
  const name = host === '0.0.0.0' || host === '::' ? 'localhost' : bracketed(host);
  return `${isSecure ? 'https' : 'http'}://${name}:${port}/`;
}

/** A request that came behind another on its connection hears nothing from Node when that connection breaks. */
function endWithSocket(server: Server, running: ReadonlySet<Exchange>): void {
  const watch = (socket: Socket) =>
    socket.once('close', () => {
      for (const exchange of running) if (exchange.request.socket === socket) exchange.end();
    });
  server.on('connection', watch);
  server.on('secureConnection', watch);
}

/** Says so in the log, now and then, when there are too many connections. */
function logDrops(server: Server, { clock, log }: { readonly clock: Clock; readonly log: Log }): void {
  let silentUntilMs = 0;
  server.on('drop', () => {
    if (clock.now() < silentUntilMs) return;
    silentUntilMs = clock.now() + DROP_LOG_PAUSE_MS;
    log.warn('connections over the limit are refused', { limit: server.maxConnections });
  });
}
