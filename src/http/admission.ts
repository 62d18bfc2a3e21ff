import type { Credentials, User } from './credentials.ts';
import { allowOrigin, answerPreflight, isPreflight } from './cross-origin.ts';
import type { Exchange } from './exchange.ts';
import { foreignNameRefusal } from './foreign-name.ts';
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
  readonly onlyLocalNames: boolean;
  /** Addresses that need no login. */
  readonly openSite: OpenSite | undefined;
}

/** Answers what is not the drive's, refuses who may not come in, and hands the rest to the drive. */
export async function admit(exchange: Exchange, rules: AdmissionRules): Promise<void> {
  const { request, response, path, address } = exchange;
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (path === HEALTH_PATH && isRead) return answerHealth(response, rules.isDraining(), rules.health());
  const foreign = rules.onlyLocalNames ? foreignNameRefusal(request) : undefined;
  if (foreign) return refuse(exchange, foreign);
  const opened = rules.openSite?.(exchange);
  if (opened) return opened;
  const metrics = path === METRICS_PATH && isRead ? rules.metrics : undefined;
  if (metrics && isLocal(address, request)) return answerMetrics(response, metrics);
  if (isPreflight(request)) return answerPreflight(request, response, rules.crossOrigins);
  allowOrigin(request, response, rules.crossOrigins);
  const login = await loginOf(exchange, rules.credentials);
  if ('status' in login) return refuse(exchange, login);
  exchange.principal = login.user?.name;
  if (metrics) return answerMetrics(response, metrics);
  const reserved = reservedRefusal(exchange);
  if (reserved) return refuse(exchange, reserved);
  await rules.handle(exchange, login);
}

/** Who asks, or why they may not come in. */
async function loginOf(
  { request, address }: Exchange,
  credentials: Credentials | undefined,
): Promise<Access | Refusal> {
  if (!credentials) return { user: undefined };
  const verdict = await credentials.check(request.headers.authorization, address);
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
