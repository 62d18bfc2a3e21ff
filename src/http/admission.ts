import type { Credentials, User } from './credentials.ts';
import { allowOrigin, answerPreflight, crossSiteRefusal, hasForeignHost, isPreflight } from './cross-site.ts';
import { type Exchange, pathOfTarget, type Refusal } from './exchange.ts';
import type { OpenRoute } from './link-proxy.ts';
import { type Monitored, monitoringAnswer } from './monitoring.ts';

/** The user that a request was admitted for. */
export interface Access {
  /** `undefined` when the gateway is open to all. */
  readonly user: User | undefined;
}

/** Answers an admitted request. Resolves when all work on it is done, also work that outlives the client. */
export type Handle = (exchange: Exchange, access: Access) => Promise<void>;

/** The rules that decide whether a request of the gateway reaches the drive. */
export interface AdmissionRules extends Monitored {
  readonly handle: Handle;
  /** `undefined`: no login is needed. */
  readonly credentials: Credentials | undefined;
  readonly crossOrigins: readonly string[];
  /** Serves paths that need no login. */
  readonly openRoute: OpenRoute | undefined;
  /** Host names of this gateway, in lower case. */
  readonly ownNames: readonly string[];
}

/** Answers health checks, scrapes and shared links, refuses requests without a valid login, and hands on the rest. */
export async function admit(exchange: Exchange, rules: AdmissionRules): Promise<void> {
  const { request, response } = exchange;
  const isForeign = hasForeignHost(request, rules.ownNames);
  const needsLogin = rules.credentials !== undefined;
  const isOwn = isReserved(exchange.path);
  const monitoring = isOwn
    ? monitoringAnswer(exchange, rules, { needsLogin, hasForeignHost: isForeign })
    : undefined;
  exchange.isMonitoring = monitoring !== undefined;
  if (isForeign && !needsLogin && !monitoring?.open) return exchange.refuse(FOREIGN_HOST);
  const opened = isOwn ? rules.openRoute?.(exchange) : undefined;
  if (opened) return opened;
  if (isPreflight(request)) return answerPreflight(request, response, rules.crossOrigins);
  allowOrigin(request, response, rules.crossOrigins);
  const crossSite = crossSiteRefusal(request, rules.crossOrigins);
  if (crossSite) return exchange.refuse(crossSite);
  const hasLogin = needsLogin && request.headers.authorization !== undefined;
  if (monitoring?.open && (monitoring.open === monitoring.whole || !hasLogin)) return monitoring.open();
  const login = await loginOf(exchange, rules.credentials);
  if (!login) return;
  if ('status' in login) return exchange.refuse(login);
  exchange.principal = login.user?.name;
  if (monitoring) return monitoring.whole();
  const reserved = reservedRefusal(exchange);
  if (reserved) return exchange.refuse(reserved);
  await rules.handle(exchange, login);
}

const FOREIGN_HOST: Refusal = {
  status: 421,
  text:
    'Without a login (--no-auth) davgate answers only under localhost and IP addresses, because any web page could use ' +
    'it otherwise. Use one of these; a proxy should send one of them as Host.',
};

/** Returns the user, or the refusal; `undefined` when the client left before its login was checked. */
async function loginOf(
  { request, address, ended }: Exchange,
  credentials: Credentials | undefined,
): Promise<Access | Refusal | undefined> {
  if (!credentials) return { user: undefined };
  const result = await Promise.race([credentials.check(request.headers.authorization, address), ended]);
  if (!result) return undefined;
  if (result === 'unauthorized')
    return {
      status: 401,
      text: 'Log in with a user and password of this davgate.',
      headers: { 'WWW-Authenticate': 'Basic realm="davgate", charset="UTF-8"' },
    };
  if ('user' in result) return result;
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
  const first = path.split('/').find((name) => name !== '') ?? '';
  try {
    return decodeURIComponent(first).toLowerCase() === '.davgate';
  } catch {
    return false;
  }
}

/** Refuses the reserved folder also as a Destination: a file copied or moved there would be out of reach. */
function reservedRefusal({ path, request }: Exchange): Refusal | undefined {
  if (isReserved(path))
    return { status: 404, text: 'Nothing here: the folder /.davgate belongs to davgate itself.' };
  const destination = pathOfTarget(String(request.headers['destination'] ?? '').trim());
  if (!isReserved(destination)) return undefined;
  return { status: 403, text: 'The folder /.davgate belongs to davgate itself; choose another Destination.' };
}
