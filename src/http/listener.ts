import { type Clock, elapsedMs, systemClock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { Networks } from '../util/networks.ts';
import { logAccess } from './access-log.ts';
import { type AdmissionRules, admit, type Handle } from './admission.ts';
import { Credentials, checkHashes, type User } from './credentials.ts';
import type { Exchange } from './exchange.ts';
import { RESOURCE_POLICY } from './fetch-metadata.ts';
import { HEALTH_PATH, type Health } from './health.ts';
import { LISTENER_LIMITS, type ListenerLimits } from './limits.ts';
import type { OpenSite } from './link-site.ts';
import { METRICS_PATH, type Metrics } from './metrics.ts';
import type { CertificateFiles } from './node-server.ts';
import { startServer } from './server.ts';

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
  /** Serves addresses that need no login: shared links. */
  readonly openSite?: OpenSite | undefined;
  /** Host names under which clients reach this gateway, beside `localhost` and IP addresses. */
  readonly ownNames?: readonly string[];
  /** Proxies whose `Forwarded` or `X-Forwarded-For` says where a request comes from. */
  readonly trustedProxies?: Networks;
  readonly limits?: Partial<ListenerLimits>;
  readonly clock?: Clock;
}

export interface Listener {
  /** With a slash at the end; names this machine when it listens on all its addresses. */
  readonly url: string;
  readonly port: number;
  /**
   * Takes no new connection, lets running requests go on until `over`, and resolves when all connections are closed.
   * Logins that are held back are refused at once.
   */
  close(over: AbortSignal): Promise<void>;
  /**
   * Takes these users from now on, and this certificate for new connections; requests under way go on. Throws
   * `PasswordHashError` and `CertificateError`, and then nothing has changed.
   */
  reload(changes: { readonly users?: readonly User[]; readonly tls?: CertificateFiles }): void;
}

/**
 * Starts the gateway's server, which hands each request that may come in to `handle`. Throws `ListenError`,
 * `CertificateError`, `PasswordHashError`.
 */
export async function startListener(options: ListenerOptions): Promise<Listener> {
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
    openSite: options.openSite,
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
      count(exchange, metrics, clock);
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

/** Requests for health and metrics are not counted: who sends them is no client of the drive. */
function count(
  { path, request, response, start }: Exchange,
  metrics: Metrics | undefined,
  clock: Clock,
): void {
  if (path === HEALTH_PATH || path === METRICS_PATH) return;
  const status = response.headersSent ? response.statusCode : undefined;
  metrics?.answered(request, status, elapsedMs(clock, start));
}
