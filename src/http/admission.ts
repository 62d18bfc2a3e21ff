import type { Bandwidth } from '../config/grant.ts';
import { pathBelow } from '../util/base-path.ts';
import type { HttpRequest } from '../util/http-messages.ts';
import type { BandwidthLimits } from './bandwidth.ts';
import type { Credentials, User } from './credentials.ts';
import {
  allowOrigin,
  answerPreflight,
  codeRefusal,
  crossSiteRefusal,
  hasForeignHost,
  isPreflight,
} from './cross-site.ts';
import type { Exchange, Refusal } from './exchange.ts';
import type { OpenRoute } from './link-proxy.ts';
import { type Monitored, monitoringAnswer } from './monitoring.ts';
import { pathOfTarget } from './request-target.ts';
import type { SignIn } from './sign-in.ts';

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
export type Handle<D> = (exchange: Exchange, access: Access<D>) => Promise<void>;

/**
 * Answers an admitted request below `/.davgate/`; returns `undefined` for paths that it does not serve. What does not end
 * by itself ends when `closing` is aborted, at the beginning of the drain.
 */
export type OwnRoute<D> = (
  exchange: Exchange,
  access: Access<D>,
  closing: AbortSignal,
) => Promise<void> | undefined;

/** The rules that decide whether a request of the gateway reaches the drive. */
export interface AdmissionRules<D> extends Monitored {
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
export async function admit<D>(exchange: Exchange, rules: AdmissionRules<D>): Promise<void> {
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
  const opened = isOwn ? rules.openRoute?.(exchange, rules.closing) : undefined;
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

/** Whether the answer depends on the web page that asks. Programs other than browsers send neither header. */
function concernsPages({ headers }: HttpRequest, origins: readonly string[]): boolean {
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
  const checked = credentials.check(request.headers.authorization, address, request.socket);
  const result = checked instanceof Promise ? await Promise.race([checked, ended]) : checked;
  if (!result) return undefined;
  if (result === 'unavailable') return LOGIN_UNAVAILABLE;
  if (result === 'unauthorized' || 'user' in result) return result;
  const seconds = Math.ceil(result.retryAfterMs / 1000);
  return {
    status: 429,
    text: `Too many logins, or wrong passwords, from this address; try again in ${seconds} seconds.`,
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
