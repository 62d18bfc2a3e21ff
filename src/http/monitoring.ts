import type { HttpRequest } from '../util/http-messages.ts';
import { isLoopback } from '../util/networks.ts';
import type { Exchange } from './exchange.ts';
import { METRICS_CONTENT_TYPE, type Metrics } from './metrics.ts';

/** The health check's path. It needs no login. */
export const HEALTH_PATH = '/.davgate/healthz';

/** The path of the readiness check, which tells balancers whether to send requests. It needs no login. */
const READY_PATH = '/.davgate/readyz';

/** The path that Prometheus scrapes. It lies beside the drive's files: a file `/metrics` stays a file. */
const METRICS_PATH = '/.davgate/metrics';

/** Facts for the operator. Nothing of a user, a path or a login. */
export type Health = Readonly<Record<string, string | number | boolean>>;

/** The facts that a gateway reports to its operator. */
export interface Monitored {
  readonly health: () => Health;
  /** Returns the reason why requests cannot be answered now. Everyone may read it. */
  readonly unreadiness: () => string | undefined;
  readonly metrics: Metrics | undefined;
  readonly isDraining: () => boolean;
}

/** The answer to a check or a scrape. */
export interface MonitoringAnswer {
  /** The part that needs no login; `undefined`: a login is needed. */
  readonly open: (() => Promise<void>) | undefined;
  readonly whole: () => Promise<void>;
}

/**
 * Returns the answer to a check or a scrape, and `undefined` for any other request. Details are for this machine and for
 * users with a login, because a web page may ask under a foreign host name. Everyone may know whether the gateway serves:
 * monitors, balancers and container platforms ask from addresses and under names that nobody configured.
 */
export function monitoringAnswer(
  exchange: Exchange,
  { health, unreadiness, metrics, isDraining }: Monitored,
  { needsLogin, hasForeignHost }: { readonly needsLogin: boolean; readonly hasForeignHost: boolean },
): MonitoringAnswer | undefined {
  const { request, path, address } = exchange;
  if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
  const isHere = !hasForeignHost && isLocal(address, request);
  if (path === HEALTH_PATH) {
    const whole = () => answerHealth(exchange, isDraining(), health());
    const bare = () => answerHealth(exchange, isDraining(), {});
    return { open: isHere || (!needsLogin && !hasForeignHost) ? whole : bare, whole };
  }
  if (path === READY_PATH) {
    const answer = () => answerReadiness(exchange, isDraining() ? 'draining' : unreadiness());
    return { open: answer, whole: answer };
  }
  if (path !== METRICS_PATH || !metrics) return undefined;
  const whole = () => answerMetrics(exchange, metrics);
  return { open: isHere ? whole : undefined, whole };
}

const PROXY_HEADERS = [
  'forwarded',
  'via',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-prefix',
  'x-forwarded-proto',
  'x-real-ip',
];

/**
 * Whether the request comes from this machine, and not through a proxy on it. A proxy that adds no header often speaks
 * HTTP/1.0, as nginx does by default. Prometheus and curl do not.
 */
function isLocal(address: string, { headers, httpVersion }: HttpRequest): boolean {
  const isProxied = httpVersion === '1.0' || PROXY_HEADERS.some((name) => name in headers);
  return isLoopback(address) && !isProxied;
}

/** Answers 200 while requests are welcome, 503 while the gateway drains. */
function answerHealth(exchange: Exchange, isDraining: boolean, health: Health): Promise<void> {
  const body = JSON.stringify({ ...health, status: isDraining ? 'draining' : 'ok' });
  return send(exchange, isDraining ? 503 : 200, 'application/json', body);
}

/** Answers 200 while balancers should send requests. */
function answerReadiness(exchange: Exchange, reason: string | undefined): Promise<void> {
  const body = JSON.stringify(reason === undefined ? { status: 'ready' } : { status: 'unready', reason });
  return send(exchange, reason === undefined ? 200 : 503, 'application/json', body);
}

async function answerMetrics(exchange: Exchange, metrics: Metrics): Promise<void> {
  await send(exchange, 200, METRICS_CONTENT_TYPE, await metrics.text());
}

function send(exchange: Exchange, status: number, type: string, body: string): Promise<void> {
  return exchange.answer({ status, headers: { 'Content-Type': type, 'Cache-Control': 'no-store' }, body });
}
