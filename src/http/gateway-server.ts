import { type Clock, elapsedMs, systemClock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { Networks } from '../util/networks.ts';
import { type AdmissionRules, admit, type Handle } from './admission.ts';
import { Credentials, checkHashes, type User } from './credentials.ts';
import { RESOURCE_POLICY } from './cross-site.ts';
import type { Exchange } from './exchange.ts';
import { LISTENER_LIMITS, type ListenerLimits } from './limits.ts';
import type { OpenRoute } from './link-proxy.ts';
import type { Metrics } from './metrics.ts';
import type { Health } from './monitoring.ts';
import type { CertificateFiles } from './node-server.ts';
import { startServer } from './server.ts';

/** Maximum length of a logged path, in characters. */
const LOGGED_PATH_MAX = 1_000;

export interface GatewayServerOptions {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Serves https with these. */
  readonly tls?: CertificateFiles | undefined;
  /** `undefined`: no login is needed. */
  readonly users: readonly User[] | undefined;
  readonly handle: Handle;
  readonly log: Log;
  /** Facts for `/.davgate/healthz`, for this machine and for users. */
  readonly health?: () => Health;
  /** Served at `/.davgate/metrics`, to this machine and to users. */
  readonly metrics?: Metrics;
  /** Origins of web pages that may use the drive, like `https://app.example.org`. */
  readonly crossOrigins?: readonly string[];
  /** Serves paths that need no login: shared links. */
  readonly openRoute?: OpenRoute | undefined;
  /** Host names under which clients reach this gateway, beside `localhost` and IP addresses. */
  readonly ownNames?: readonly string[];
  /** Proxies whose `Forwarded` or `X-Forwarded-For` is believed. */
  readonly trustedProxies?: Networks;
  readonly limits?: Partial<ListenerLimits>;
  readonly clock?: Clock;
}

export interface GatewayServer {
  /** Address with a slash at the end; names this machine when the server listens on all its addresses. */
  readonly url: string;
  readonly port: number;
  /**
   * Takes no new connection, lets running requests go on until `over`, and resolves when all connections are closed.
   * Delayed logins are refused at once.
   */
  close(over: AbortSignal): Promise<void>;
  /**
   * Replaces the users at once, and the certificate for new connections; running requests go on. Throws
   * `PasswordHashError` and `CertificateError`, and then nothing has changed.
   */
  reload(changes: { readonly users?: readonly User[]; readonly tls?: CertificateFiles }): void;
}

/**
 * Starts the gateway's server, which hands each admitted request to `handle`. Throws `ListenError`, `CertificateError`,
 * `PasswordHashError`.
 */
export async function startGatewayServer(options: GatewayServerOptions): Promise<GatewayServer> {
  const { host, port, tls, users, handle, metrics, log, clock = systemClock } = options;
  const closing = new AbortController();
  const credentials = users && new Credentials(users, { clock, log, closing: closing.signal });
  const rules: AdmissionRules = {
    handle,
    credentials,
    health: options.health ?? (() => ({})),
    metrics,
    isDraining: () => closing.signal.aborted,
    crossOrigins: options.crossOrigins ?? [],
    openRoute: options.openRoute,
    ownNames: options.ownNames ?? [],
  };
  const server = await startServer({
    host,
    port,
    tls,
    limits: { ...LISTENER_LIMITS, ...options.limits },
    proxies: options.trustedProxies ?? new Networks(),
    headers: () => RESOURCE_POLICY,
    clock,
    log,
    handle: (exchange) => admit(exchange, rules),
    handled(exchange) {
      logAccess(exchange, { clock, log });
      if (metrics && !exchange.isMonitoring) count(exchange, metrics, clock);
    },
    connected: (socket) => metrics?.connected(socket),
  });
  return {
    url: server.url,
    port: server.port,
    close(over) {
      closing.abort();
      return server.close(over);
    },
    reload(changes) {
      if (changes.users) checkHashes(changes.users);
      if (changes.tls) server.replaceCertificate(changes.tls);
      if (changes.users) credentials?.replaceUsers(changes.users);
    },
  };
}

/** Logs one line about a finished exchange, without its query and headers. */
function logAccess(exchange: Exchange, { clock, log }: { clock: Clock; log: Log }): void {
  const { request, response, path, address, start, sentBytes, principal, isSent } = exchange;
  log.info('request', {
    method: request.method,
    path: path.slice(0, LOGGED_PATH_MAX),
    status: response.headersSent ? response.statusCode : undefined,
    sentBytes,
    ms: Math.round(elapsedMs(clock, start)),
    user: principal,
    address,
    cut: isSent ? undefined : true,
  });
}

function count({ request, response, start }: Exchange, metrics: Metrics, clock: Clock): void {
  const status = response.headersSent ? response.statusCode : undefined;
  metrics.answered(request, status, elapsedMs(clock, start));
}
