import type { Credentials, User } from './credentials.ts';
import { allowOrigin, answerPreflight, isPreflight } from './cross-origin.ts';
import { hasForeignName } from './dns-rebinding.ts';
import type { Exchange } from './exchange.ts';
import { crossSiteRefusal } from './fetch-metadata.ts';
import { answerHealth, HEALTH_PATH, type Health, isReserved } from './health.ts';
import type { OpenSite } from './link-site.ts';
import { answerMetrics, isLocal, METRICS_PATH, type Metrics } from './metrics.ts';
import { type Refusal, refuse } from './refusal.ts';
import { pathOfTarget } from './target.ts';

/** Who asks. */
export interface Access {
  /** `undefined` when the gateway is open to all. */
  readonly user: User | undefined;
}

/** Answers a request that was let in; resolves when all work on it is done, also work that outlives the client. */
export type Handle = (exchange: Exchange, access: Access) => Promise<void>;

/** What decides whether a request of the gateway reaches the drive. */
export interface AdmissionRules {
  readonly handle: Handle;
  /** `undefined`: everyone may come in. */
  readonly credentials: Credentials | undefined;
  readonly health: () => Health;
  readonly metrics: Metrics | undefined;
  readonly isDraining: () => boolean;
  readonly crossOrigins: readonly string[];
  /** Addresses that need no login. */
  readonly openSite: OpenSite | undefined;
  /** Host names of this gateway, in lower case. */
  readonly ownNames: readonly string[];
}

/** Answers what is not the drive's, refuses who may not come in, and hands the rest to the drive. */
export async function admit(exchange: Exchange, rules: AdmissionRules): Promise<void> {
  const { request, response } = exchange;
  const isForeign = hasForeignName(request, rules.ownNames);
  const watching = watchingAnswer(exchange, rules, isForeign);
  if (isForeign && !rules.credentials && !watching?.open) return refuse(exchange, FOREIGN_NAME);
  const opened = rules.openSite?.(exchange);
  if (opened) return opened;
  if (isPreflight(request)) return answerPreflight(request, response, rules.crossOrigins);
  allowOrigin(request, response, rules.crossOrigins);
  const crossSite = crossSiteRefusal(request, rules.crossOrigins);
  if (crossSite) return refuse(exchange, crossSite);
  const hasLogin = rules.credentials !== undefined && request.headers.authorization !== undefined;
  if (watching?.open && (watching.open === watching.whole || !hasLogin)) return watching.open();
  const login = await loginOf(exchange, rules.credentials);
  if (!login) return;
  if ('status' in login) return refuse(exchange, login);
  exchange.principal = login.user?.name;
  if (watching) return watching.whole();
  const reserved = reservedRefusal(exchange);
  if (reserved) return refuse(exchange, reserved);
  await rules.handle(exchange, login);
}

interface WatchingAnswer {
  /** What is told without a login; `undefined`: nothing. */
  readonly open: (() => void | Promise<void>) | undefined;
  readonly whole: () => void | Promise<void>;
}

/**
 * Health or metrics; `undefined` for any other request. Details are for this machine and for users with a login, because
 * under a foreign host name a web page may be asking. Whether the gateway serves is for everyone: monitors and container
 * platforms call it under addresses and names that nobody configured.
 */
function watchingAnswer(
  { request, response, path, address }: Exchange,
  { credentials, isDraining, health, metrics }: AdmissionRules,
  isForeign: boolean,
): WatchingAnswer | undefined {
  if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
  const isHere = !isForeign && isLocal(address, request);
  if (path === HEALTH_PATH) {
    const whole = () => answerHealth(response, isDraining(), health());
    const bare = () => answerHealth(response, isDraining(), {});
    return { open: isHere || (!credentials && !isForeign) ? whole : bare, whole };
  }
  if (path !== METRICS_PATH || !metrics) return undefined;
  const whole = () => answerMetrics(response, metrics);
  return { open: isHere ? whole : undefined, whole };
}

const FOREIGN_NAME: Refusal = {
  status: 421,
  text:
    'Without a login (--no-auth) davgate answers to localhost and to IP addresses only, as any web page could use it ' +
    'otherwise. Ask for one of these; a proxy should send one of them as Host.',
};

/** Who asks, or why they may not come in; `undefined` when the client has gone before its login was checked. */
async function loginOf(
  { request, address, ended }: Exchange,
  credentials: Credentials | undefined,
): Promise<Access | Refusal | undefined> {
  if (!credentials) return { user: undefined };
  const verdict = await Promise.race([credentials.check(request.headers.authorization, address), ended]);
  if (!verdict) return undefined;
  if (verdict === 'unauthorized')
    return {
      status: 401,
      text: 'A user and a password of this davgate are needed.',
      headers: { 'WWW-Authenticate': 'Basic realm="davgate", charset="UTF-8"' },
    };
  if ('user' in verdict) return verdict;
  const seconds = Math.ceil(verdict.retryAfterMs / 1000);
  return {
    status: 429,
    text: `Too many wrong passwords; try again in ${seconds} seconds.`,
    headers: { 'Retry-After': seconds },
  };
}

/** What is copied or moved into the folder would be out of reach afterwards. */
function reservedRefusal({ path, request }: Exchange): Refusal | undefined {
  if (isReserved(path))
    return { status: 404, text: 'Nothing here: the folder /.davgate belongs to davgate itself.' };
  const destination = pathOfTarget(String(request.headers['destination'] ?? '').trim());
  if (!isReserved(destination)) return undefined;
  return { status: 403, text: 'The folder /.davgate belongs to davgate itself; choose another Destination.' };
}
