import { setMaxListeners } from 'node:events';
import type { SocketAddress } from '../config/address.ts';
import type { Bandwidth } from '../config/grant.ts';
import type { BasePath } from '../util/base-path.ts';
import { type Clock, elapsedMs, systemClock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { OWN_LOOK, type PageLook } from '../util/look.ts';
import { Networks } from '../util/networks.ts';
import { type AdmissionRules, admit, type Handle, type OwnRoute } from './admission.ts';
import { BandwidthLimits } from './bandwidth.ts';
import {
  type CheckAppPassword,
  type CheckLogin,
  Credentials,
  checkHashes,
  type User,
} from './credentials.ts';
import { RESOURCE_POLICY } from './cross-site.ts';
import type { Exchange } from './exchange.ts';
import { LISTENER_LIMITS, type ListenerLimits } from './limits.ts';
import type { OpenRoute } from './link-proxy.ts';
import type { Metrics } from './metrics.ts';
import type { Health } from './monitoring.ts';
import type { CertificateFiles } from './node-server.ts';
import { startServer } from './server.ts';
import { Sessions } from './sessions.ts';
import { SignIn, type SignInProvider } from './sign-in.ts';

/** Maximum length of a logged path, in characters. */
const LOGGED_PATH_MAX = 1_000;

export interface GatewayServerOptions<D> {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Listens on this Unix socket, or the one that systemd passed, instead of `host` and `port`. */
  readonly socket?: SocketAddress | 'systemd' | undefined;
  /** Serves https with these. */
  readonly tls?: CertificateFiles | undefined;
  /** Whether it speaks HTTP/2 to clients with TLS that want it; the default is `true`. */
  readonly hasHttp2?: boolean | undefined;
  /** `undefined`: no login is needed. */
  readonly users: readonly User[] | undefined;
  /** Checks the logins of all others. */
  readonly checkLogin?: CheckLogin | undefined;
  /** Finds the app password that a user's password may be. */
  readonly checkAppPassword?: CheckAppPassword;
  /** Another server at which people sign in with a browser. */
  readonly signInProvider?: SignInProvider | undefined;
  /** How the page for signing in presents the drive. */
  readonly look?: PageLook;
  /** Returns the drive of a user, or without a user that of everybody. */
  readonly driveOf: (user: User | undefined) => D;
  readonly handle: Handle<D>;
  readonly ownRoute?: OwnRoute<D>;
  readonly log: Log;
  /** Whether each request is logged; the default is `true`. */
  readonly isLoggingRequests?: boolean;
  /** Facts for `/.davgate/healthz`, for this machine and for users. */
  readonly health?: () => Health;
  /** Returns the reason why requests cannot be answered now, for `/.davgate/readyz`. Everyone may read it. */
  readonly unreadiness?: () => string | undefined;
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
  /** The path below which the drives are served; `''` by default. */
  readonly basePath?: BasePath;
  /** Maximum rates of all users together. */
  readonly bandwidth?: Bandwidth | undefined;
  readonly limits?: Partial<ListenerLimits>;
  readonly clock?: Clock;
}

export interface GatewayServer {
  /** Address of the drives, with a slash at the end; names this machine when the server listens on all its addresses. */
  readonly url: string;
  readonly port: number;
  /** Returns the users who may log in now. */
  users(): readonly User[];
  /**
   * Tells balancers at `/.davgate/readyz` and `/.davgate/healthz` to send requests elsewhere, and ends each HTTP/1.1
   * connection with its next answer. All requests are still answered.
   */
  announceClose(): void;
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
export async function startGatewayServer<D>(options: GatewayServerOptions<D>): Promise<GatewayServer> {
  const {
    host,
    port,
    tls,
    users,
    checkLogin,
    checkAppPassword,
    handle,
    metrics,
    log,
    clock = systemClock,
    basePath = '',
  } = options;
  const closing = new AbortController();
  // No leak, even with many listeners: each removes its own.
  setMaxListeners(0, closing.signal);
  let isDraining = false;
  const credentials =
    users && new Credentials(users, { clock, log, closing: closing.signal, checkLogin, checkAppPassword });
  const sessions = new Sessions(clock);
  const rules: AdmissionRules<D> = {
    driveOf: options.driveOf,
    handle,
    ownRoute: options.ownRoute,
    credentials,
    signIn:
      credentials &&
      new SignIn({
        credentials,
        sessions,
        log,
        provider: options.signInProvider,
        look: options.look ?? OWN_LOOK,
      }),
    health: options.health ?? (() => ({})),
    unreadiness: options.unreadiness ?? (() => undefined),
    metrics,
    closing: closing.signal,
    isDraining: () => isDraining,
    crossOrigins: options.crossOrigins ?? [],
    openRoute: options.openRoute,
    ownNames: options.ownNames ?? [],
    bandwidth: options.bandwidth,
    bandwidthLimits: new BandwidthLimits(options.bandwidth ?? {}, { clock, lifted: closing.signal }),
  };
  const server = await startServer({
    host,
    port,
    socket: options.socket,
    tls,
    hasHttp2: options.hasHttp2 ?? true,
    limits: { ...LISTENER_LIMITS, ...options.limits },
    proxies: options.trustedProxies ?? new Networks(),
    basePath,
    headers: () => RESOURCE_POLICY,
    clock,
    log,
    handle: (exchange) => admit(exchange, rules),
    handled(exchange) {
      if (options.isLoggingRequests ?? true) logAccess(exchange, { clock, log });
      if (metrics && !exchange.isMonitoring) count(exchange, metrics, clock);
    },
    connected: (socket) => metrics?.connected(socket),
  });
  return {
    url: `${server.url.slice(0, -1)}${basePath}/`,
    port: server.port,
    users: () => credentials?.users() ?? [],
    announceClose() {
      isDraining = true;
      server.announceClose();
    },
    close(over) {
      isDraining = true;
      closing.abort();
      return server.close(over);
    },
    reload(changes) {
      if (changes.users) checkHashes(changes.users);
      if (changes.tls) server.replaceCertificate(changes.tls);
      if (changes.users) credentials?.replaceUsers(changes.users);
      if (changes.users) sessions.replaceUsers(changes.users);
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
