import { type Answer, ClientGone, type Exchange } from '../http/exchange.ts';
import type { Log } from '../util/log.ts';
import { failureAnswer, faultAnswer, text } from './api/answers.ts';
import { callFunction, functionName, type Host, isFunctionPath } from './api/dispatch.ts';
import type { ServiceDeps } from './deps.ts';
import { callWithFaults } from './faults/calls.ts';
import type { Faults } from './faults/faults.ts';
import { answerEmbed, isEmbedPath } from './links/embed-site.ts';
import { answerLink } from './links/site.ts';
import { isTemporaryPath, type TemporarySite, temporarySiteOf } from './links/temporary-site.ts';
import { isLinkPath, rootFrom } from './links/url.ts';
import { AUTHORIZE_PATH, authorizeSiteOf } from './oauth/authorize-site.ts';
import { answerTokenRequest, isTokenPath } from './oauth/token-endpoint.ts';

/** A service with one address, which plays all of the real service's hosts. */
export const ONLY_HOST: Host = { role: 'all', otherUrl: '' };

/** Answers a request at one of the service's addresses. Throws only `ClientGone`. */
export type Router = (exchange: Exchange, host?: Host) => Promise<Answer>;

/** Returns the service's router, which chooses by path between functions, OAuth, shared links and temporary links. */
export function createRouter(deps: ServiceDeps, faults: Faults, log: Log): Router {
  const temporarySite = temporarySiteOf(deps);
  const authorizeSite = authorizeSiteOf(deps, log);
  return async (exchange, host = ONLY_HOST) => {
    try {
      if (host.role === 'content' && !isForContent(exchange)) return withSafety(notHere(host));
      if (isEmbedPath(exchange.path)) return withSafety(await answerEmbed(exchange, deps));
      if (isLinkPath(exchange.path)) return withSafety(await answerLink(exchange, deps));
      if (exchange.path === `/1${AUTHORIZE_PATH}`) return authorizeMoved(exchange);
      if (exchange.path === AUTHORIZE_PATH) return withSafety(await authorizeSite(exchange));
      return withCors(exchange, withSafety(await answerApi(exchange, { deps, faults, temporarySite, host })));
    } catch (error) {
      if (error instanceof ClientGone) throw error;
      const answer = failureAnswer(error, calledAs(exchange.path), exchange.requestId);
      if (!answer || answer.status >= 500) logFault(log, exchange, error);
      return withCors(exchange, withSafety(answer ?? faultAnswer(exchange.requestId)));
    }
  };
}

/** Whether the content host answers this path: functions, temporary links, and a browser's preflight for them. */
function isForContent({ path, request }: Exchange): boolean {
  return request.method === 'OPTIONS' || isFunctionPath(path) || isTemporaryPath(path);
}

function notHere({ otherUrl }: Host): Answer {
  return text(404, `This host has only the functions that carry file bytes; all others are at ${otherUrl}`);
}

interface ApiDeps {
  readonly deps: ServiceDeps;
  readonly faults: Faults;
  readonly temporarySite: TemporarySite;
  readonly host: Host;
}

async function answerApi(
  exchange: Exchange,
  { deps, faults, temporarySite, host }: ApiDeps,
): Promise<Answer> {
  const { path, request } = exchange;
  if (request.method === 'OPTIONS') return preflightAnswer(exchange);
  if (isTemporaryPath(path)) return temporarySite(exchange);
  if (isFunctionPath(path))
    return callWithFaults(faults, exchange, deps, () => callFunction(exchange, deps, host));
  if (isTokenPath(path))
    return callWithFaults(faults, exchange, deps, () => answerTokenRequest(exchange, deps));
  return text(
    404,
    'Nothing here. Functions are at /2/…, consent and tokens at /oauth2/…, shared links at /scl/…, previews of them at /embed.',
  );
}

/** The Go SDK (rclone 1.60) still uses the consent page's first address. */
function authorizeMoved(exchange: Exchange): Answer {
  // Relative, because a proxy may serve the service under another path.
  const location = `${rootFrom(exchange)}${AUTHORIZE_PATH}?${exchange.query}`;
  return { status: 302, headers: { location }, body: '' };
}

/** Answers a CORS preflight: a browser sends one before a page of another site sends our headers. */
function preflightAnswer(exchange: Exchange): Answer {
  const wanted = exchange.request.headers['access-control-request-headers'];
  return {
    status: 200,
    headers: {
      'access-control-allow-methods': 'GET, POST',
      ...(wanted !== undefined && { 'access-control-allow-headers': wanted }),
      'access-control-max-age': '600',
    },
    body: '',
  };
}

const EXPOSED = 'Accept-Ranges, Content-Range, ETag, Dropbox-API-Result, X-Dropbox-Request-Id';

/** Allows any page to call: only the token counts, and browsers never send one by themselves. */
function withCors(exchange: Exchange, answer: Answer): Answer {
  if (exchange.request.headers.origin === undefined) return answer;
  const cors = { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED };
  return { ...answer, headers: { ...answer.headers, ...cors } };
}

function withSafety(answer: Answer): Answer {
  const headers = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-cache', ...answer.headers };
  return { ...answer, headers };
}

function logFault(log: Log, exchange: Exchange, error: unknown): void {
  log.error('a request failed', {
    requestId: exchange.requestId,
    function: calledAs(exchange.path),
    error: error instanceof Error ? (error.stack ?? error.message) : String(error),
  });
}

/**
 * Returns the function's name for the log; of any other path only the first name, because the rest may be a temporary
 * link's secret.
 */
function calledAs(path: string): string {
  return isFunctionPath(path) ? functionName(path) : `/${path.split('/')[1]}`;
}
