import { setMaxListeners } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { SocketAddress } from '../config/address.ts';
import type { Bandwidth } from '../config/grant.ts';
import { type BasePath, pathBelow } from '../util/base-path.ts';
import { type Clock, elapsedMs, systemClock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { Networks } from '../util/networks.ts';
import { BandwidthLimits } from './bandwidth.ts';
import {
  type CheckAppPassword,
  type CheckLogin,
  Credentials,
  checkHashes,
  type User,
} from './credentials.ts';
import {
  allowOrigin,
  answerPreflight,
  codeRefusal,
  crossSiteRefusal,
  hasForeignHost,
  isPreflight,
  RESOURCE_POLICY,
} from './cross-site.ts';
import type { Exchange, Refusal } from './exchange.ts';
import { LISTENER_LIMITS, type ListenerLimits } from './limits.ts';
import type { OpenRoute } from './link-proxy.ts';
import type { Metrics } from './metrics.ts';
import { type Health, type Monitored, monitoringAnswer } from './monitoring.ts';
import type { CertificateFiles } from './node-server.ts';
import { pathOfTarget } from './request-target.ts';
import { startServer } from './server.ts';
import { Sessions } from './sessions.ts';
import { SignIn, type SignInProvider } from './sign-in.ts';

/** Maximum length of a logged path, in characters. */
const LOGGED_PATH_MAX = 1_000;

/** A login that a request was admitted with. */
interface Login {
  /** `undefined` when the gateway is open to all. */
  readonly user: User | undefined;
  /** The token of a browser's session; `undefined` for every other login. */
  readonly csrfToken?: string;
  /** Whether that session, or the login with an app password, has ended since, for answers that last. */
  readonly isOver?: () => boolean;
  /** The name of the provider at which that session began. */
  readonly providerName?: string | undefined;
}

/** What a request was admitted to: `D` is the drive as its user sees it. */
export interface Access<D> extends Login {
  readonly drive: D;
}

/** Answers an admitted request. Resolves when all work on it is done, also work that outlives the client. */
type Handle<D> = (exchange: Exchange, access: Access<D>) => Promise<void>;

type OwnRoute<D> = (exchange: Exchange, access: Access<D>, closing: AbortSignal) => Promise<void> | undefined;

export interface GatewayServerOptions<D> {
  readonly host: string;
  /** 0 takes any free port. */
  readonly port: number;
  /** Listens on this Unix socket, or the one that systemd passed, instead of `host` and `port`. */
  readonly socket?: SocketAddress | 'systemd' | undefined;
  /** Serves https with these. */
  readonly tls?: CertificateFiles | undefined;
  /** `undefined`: no login is needed. */
  readonly users: readonly User[] | undefined;
  /** Checks the logins of all others. */
  readonly checkLogin?: CheckLogin | undefined;
  /** Finds the app password that a user's password may be. */
  readonly checkAppPassword?: CheckAppPassword;
  /** Another server at which people sign in with a browser. */
  readonly signInProvider?: SignInProvider | undefined;
  /** Returns the drive of a user, or without a user that of everybody. Called once for each user, not for each request. */
  readonly driveOf: (user: User | undefined) => D;
  readonly handle: Handle<D>;
  /**
   * Answers an admitted request below `/.davgate/`; returns `undefined` for paths that it does not serve. What does not end
   * by itself ends when `closing` is aborted, at the beginning of the drain.
   */
  readonly ownRoute?: OwnRoute<D>;
  readonly log: Log;
  /** Whether each request is logged; the default is `true`. */
  readonly isLoggingRequests?: boolean;
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
  const credentials =
    users && new Credentials(users, { clock, log, closing: closing.signal, checkLogin, checkAppPassword });
  const sessions = new Sessions(clock);
  const rules: AdmissionRules<D> = {
    driveOf: rememberedDrives(options.driveOf),
    handle,
    ownRoute: options.ownRoute,
    credentials,
    signIn: credentials && new SignIn({ credentials, sessions, log, provider: options.signInProvider }),
    health: options.health ?? (() => ({})),
    metrics,
    closing: closing.signal,
    isDraining: () => closing.signal.aborted,
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
    close(over) {
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

/** The rules that decide whether a request of the gateway reaches the drive. */
interface AdmissionRules<D> extends Monitored {
  readonly driveOf: (user: User | undefined) => D;
  readonly handle: Handle<D>;
  readonly ownRoute: OwnRoute<D> | undefined;
  readonly closing: AbortSignal;
  /** `undefined`: no login is needed. */
  readonly credentials: Credentials | undefined;
  /** Present with `credentials`. */
  readonly signIn: SignIn | undefined;
  readonly crossOrigins: readonly string[];
  /** Serves paths that need no login. */
  readonly openRoute: OpenRoute | undefined;
  /** Host names of this gateway, in lower case. */
  readonly ownNames: readonly string[];
  readonly bandwidth: Bandwidth | undefined;
  readonly bandwidthLimits: BandwidthLimits;
}

/** Answers health checks, scrapes and shared links, refuses requests without a valid login, and hands on the rest. */
async function admit<D>(exchange: Exchange, rules: AdmissionRules<D>): Promise<void> {
  const { request } = exchange;
  const needsLogin = rules.credentials !== undefined;
  const isOwn = isReserved(exchange.path);
  // Behind a login, only addresses that need none are in danger from a foreign host.
  const isForeign = (isOwn || !needsLogin) && hasForeignHost(request, rules.ownNames);
  const monitoring = isOwn
    ? monitoringAnswer(exchange, rules, { needsLogin, hasForeignHost: isForeign })
    : undefined;
  exchange.isMonitoring = monitoring !== undefined;
  if (isForeign && !needsLogin && !monitoring?.open) return exchange.refuse(FOREIGN_HOST);
  if (exchange.isOutside && !monitoring && !asksAbove(exchange))
    return exchange.refuse({ status: 404, text: `Nothing here: the drive is at ${exchange.prefix}/.` });
  if (rules.bandwidth && isOwn && !monitoring) limitRate(exchange, undefined, rules);
  const opened = isOwn ? rules.openRoute?.(exchange) : undefined;
  if (opened) return opened;
  if (concernsPages(request, rules.crossOrigins)) {
    if (isPreflight(request)) return answerPreflight(exchange, rules.crossOrigins);
    allowOrigin(exchange, rules.crossOrigins);
    const refusal = crossSiteRefusal(request, rules.crossOrigins) ?? codeRefusal(request);
    if (refusal) return exchange.refuse(refusal);
  }
  const asked = isOwn ? rules.signIn?.serve(exchange) : undefined;
  if (asked !== undefined) return asked;
  const hasBasic = needsLogin && request.headers.authorization !== undefined;
  const session = hasBasic ? undefined : rules.signIn?.sessionOf(exchange);
  const hasLogin = hasBasic || session !== undefined;
  if (monitoring?.open && (monitoring.open === monitoring.whole || !hasLogin)) return monitoring.open();
  const login = session ?? (await loginOf(exchange, rules.credentials));
  if (!login) return;
  if (login === 'unauthorized') return rules.signIn?.challenge(exchange) ?? exchange.refuse(UNAUTHORIZED);
  if ('status' in login) return exchange.refuse(login);
  exchange.principal = login.user?.name;
  if (monitoring) return monitoring.whole();
  if (rules.bandwidth ?? login.user?.bandwidth) limitRate(exchange, login.user, rules);
  const access = { ...login, drive: rules.driveOf(login.user) };
  if (isOwn) return rules.ownRoute?.(exchange, access, rules.closing) ?? exchange.refuse(RESERVED);
  const refusal = destinationRefusal(exchange);
  if (refusal) return exchange.refuse(refusal);
  await rules.handle(exchange, access);
}

function limitRate<D>(
  exchange: Exchange,
  user: User | undefined,
  { bandwidthLimits }: AdmissionRules<D>,
): void {
  exchange.limitRate(bandwidthLimits.pacesOf(exchange.request.method, user));
}

/** Returns `driveOf` with a memory. A user who has changed is another object. */
function rememberedDrives<D>(
  driveOf: GatewayServerOptions<D>['driveOf'],
): GatewayServerOptions<D>['driveOf'] {
  const everybody = {};
  const known = new WeakMap<object, { readonly drive: D }>();
  return (user) => {
    const key = user ?? everybody;
    const found = known.get(key) ?? { drive: driveOf(user) };
    known.set(key, found);
    return found.drive;
  };
}

/** Whether the answer depends on the web page that asks. Programs other than browsers send neither header. */
function concernsPages({ headers }: IncomingMessage, origins: readonly string[]): boolean {
  return origins.length > 0 || headers.origin !== undefined || headers['sec-fetch-site'] !== undefined;
}

const FOREIGN_HOST: Refusal = {
  status: 421,
  text:
    'Without a login (--no-auth) davgate answers only under localhost and IP addresses, because any web page could use ' +
    'it otherwise. Use one of these; a proxy should send one of them as Host.',
};

const UNAUTHORIZED: Refusal = {
  status: 401,
  text: 'Log in with a user and password of this davgate.',
  headers: { 'WWW-Authenticate': 'Basic realm="davgate", charset="UTF-8"' },
};

/** Never 401: programs take that for a wrong password, and ask their user for another or forget it. */
const LOGIN_UNAVAILABLE: Refusal = {
  status: 503,
  text: 'The login cannot be checked at the moment; try again in a few seconds.',
  headers: { 'Retry-After': 5 },
};

/** Returns the user, or the refusal; `undefined` when the client left before its login was checked. */
async function loginOf(
  { request, address, ended }: Exchange,
  credentials: Credentials | undefined,
): Promise<Login | Refusal | 'unauthorized' | undefined> {
  if (!credentials) return { user: undefined };
  const checked = credentials.check(request.headers.authorization, address);
  const result = checked instanceof Promise ? await Promise.race([checked, ended]) : checked;
  if (!result) return undefined;
  if (result === 'unavailable') return LOGIN_UNAVAILABLE;
  if (result === 'unauthorized' || 'user' in result) return result;
  const seconds = Math.ceil(result.retryAfterMs / 1000);
  return {
    status: 429,
    text: `Too many wrong passwords; try again in ${seconds} seconds.`,
    headers: { 'Retry-After': seconds },
  };
}

/**
 * Whether `path`, percent-encoded, lies in the folder that davgate reserves for itself on every drive. Repeated slashes
 * count as one, as everywhere in the drive.
 */
function isReserved(path: string): boolean {
  // Nearly all paths: they need no decoding.
  if (!/^\/*[.%]/.test(path)) return false;
  const first = path.split('/').find((name) => name !== '') ?? '';
  try {
    return decodeURIComponent(first).toLowerCase() === '.davgate';
  } catch {
    return false;
  }
}

const RESERVED: Refusal = {
  status: 404,
  text: 'Nothing here: the folder /.davgate belongs to davgate itself.',
};

/**
 * Whether a client asks what a folder above the drive is. Windows does before it connects to a folder of a host, and GNOME
 * to find the root of a drive.
 */
function asksAbove({ request: { method }, above }: Exchange): boolean {
  return above !== undefined && (method === 'OPTIONS' || method === 'PROPFIND');
}

/** Refuses the reserved folder also as a Destination: a file copied or moved there would be out of reach. */
function destinationRefusal({ request, prefix }: Exchange): Refusal | undefined {
  const { destination } = request.headers;
  if (destination === undefined) return undefined;
  const path = pathBelow(prefix, pathOfTarget(String(destination).trim()));
  if (path === undefined || !isReserved(path)) return undefined;
  return { status: 403, text: 'The folder /.davgate belongs to davgate itself; choose another Destination.' };
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
