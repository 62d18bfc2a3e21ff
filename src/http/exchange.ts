import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { logAccess } from './access-log.ts';
import type { Credentials, User } from './credentials.ts';
import { allowOrigin, answerPreflight, isPreflight } from './cross-origin.ts';
import { foreignNameRefusal } from './foreign-name.ts';
import { answerHealth, HEALTH_PATH, type Health, isReserved } from './health.ts';
import { answerMetrics, isLocal, METRICS_PATH, type Metrics } from './metrics.ts';
import { type Refusal, refuse } from './refusal.ts';
import { wrongShape } from './request-shape.ts';
import { pathOfTarget } from './target.ts';

/** Who asks. */
export interface Access {
  /** `undefined` when the gateway is open to all. */
  readonly user: User | undefined;
}

/** Answers a request that was let in; resolves when all work on it is done, also work that outlives the client. */
export type Handle = (request: IncomingMessage, response: ServerResponse, access: Access) => Promise<void>;

/** What all exchanges of a listener have in common. */
export interface ExchangeSurroundings {
  readonly handle: Handle;
  /** `undefined`: everyone may come in. */
  readonly credentials: Credentials | undefined;
  readonly health: () => Health;
  readonly metrics: Metrics | undefined;
  readonly isDraining: () => boolean;
  readonly crossOrigins: readonly string[];
  readonly onlyLocalNames: boolean;
  readonly clock: Clock;
  readonly log: Log;
}

/** One request and its answer under way. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly address: string;
  readonly startMs: number;
  /** Why it is no request that anything can be said about but this. */
  readonly wrong: Refusal | undefined;
  /** Once it is known. */
  user: User | undefined;
  /** The client waits for `100 Continue` before it sends the body. */
  isBodyHeldBack: boolean;
  /** Resolves when the answer is out, or the connection gone. */
  readonly ended: Promise<void>;
  readonly end: () => void;
}

export function beginExchange(
  request: IncomingMessage,
  response: ServerResponse,
  expectsContinue: boolean,
  clock: Clock,
): Exchange {
  let end = (): void => undefined;
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  response.once('close', end);
  const exchange: Exchange = {
    request,
    response,
    path: pathOfTarget(request.url ?? '/'),
    address: clientAddress(request),
    startMs: clock.now(),
    wrong: wrongShape(request),
    user: undefined,
    isBodyHeldBack: expectsContinue,
    ended,
    end,
  };
  if (expectsContinue) continueWhenRead(exchange);
  return exchange;
}

/** Answers the request; never throws. Resolves when the handler is through and the answer is out, or cut. */
export async function runExchange(exchange: Exchange, surroundings: ExchangeSurroundings): Promise<void> {
  const { request, response } = exchange;
  // A client that goes away in the middle is no error of ours; the handler sees it at its body and its answer.
  request.on('error', () => undefined);
  response.on('error', () => undefined);
  const logged = logAccess(exchange, surroundings);
  try {
    await answer(exchange, surroundings);
  } catch (error) {
    surroundings.log.error('a request failed unexpectedly', { error: String(error), method: request.method });
    await answerFailure(exchange, surroundings.clock);
  }
  await exchange.ended;
  logged();
  const { metrics, clock } = surroundings;
  const status = response.headersSent ? response.statusCode : undefined;
  if (!isWatching(exchange.path)) metrics?.answered(request, status, clock.now() - exchange.startMs);
}

async function answer(exchange: Exchange, surroundings: ExchangeSurroundings): Promise<void> {
  const { request, response, path } = exchange;
  if (exchange.wrong) {
    response.shouldKeepAlive = false;
    return turnAway(exchange, exchange.wrong, surroundings);
  }
  const isRead = request.method === 'GET' || request.method === 'HEAD';
  if (path === HEALTH_PATH && isRead)
    return answerHealth(response, surroundings.isDraining(), surroundings.health());
  const foreign = surroundings.onlyLocalNames ? foreignNameRefusal(request) : undefined;
  if (foreign) return turnAway(exchange, foreign, surroundings);
  const metrics = path === METRICS_PATH && isRead ? surroundings.metrics : undefined;
  if (metrics && isLocal(exchange.address, request)) return answerMetrics(response, metrics);
  if (isPreflight(request)) return answerPreflight(request, response, surroundings.crossOrigins);
  allowOrigin(request, response, surroundings.crossOrigins);
  const refusal = (await admit(exchange, surroundings)) ?? (metrics ? undefined : reservedRefusal(exchange));
  if (refusal) return turnAway(exchange, refusal, surroundings);
  if (metrics) return answerMetrics(response, metrics);
  await surroundings.handle(request, response, { user: exchange.user });
}

/** Who only looks after davgate is no client of the drive, and is not counted among them. */
function isWatching(path: string): boolean {
  return path === HEALTH_PATH || path === METRICS_PATH;
}

/** Lets the user in, or says why not. */
async function admit(
  exchange: Exchange,
  { credentials }: ExchangeSurroundings,
): Promise<Refusal | undefined> {
  if (!credentials) return undefined;
  const verdict = await credentials.check(exchange.request.headers.authorization, exchange.address);
  if (verdict === 'unauthorized')
    return {
      status: 401,
      text: 'A user and a password of this davgate are needed.',
      headers: { 'WWW-Authenticate': 'Basic realm="davgate", charset="UTF-8"' },
    };
  if ('retryAfterMs' in verdict) {
    const seconds = Math.ceil(verdict.retryAfterMs / 1000);
    return {
      status: 429,
      text: `Too many wrong passwords; try again in ${seconds} seconds.`,
      headers: { 'Retry-After': seconds },
    };
  }
  exchange.user = verdict.user;
  return undefined;
}

/** What is copied or moved into the folder would be out of reach afterwards. */
function reservedRefusal({ path, request }: Exchange): Refusal | undefined {
  if (isReserved(path))
    return { status: 404, text: 'Nothing here: the folder /.davgate belongs to davgate itself.' };
  const destination = pathOfTarget(String(request.headers['destination'] ?? '').trim());
  if (!isReserved(destination)) return undefined;
  return { status: 403, text: 'The folder /.davgate belongs to davgate itself; choose another Destination.' };
}

function turnAway(exchange: Exchange, refusal: Refusal, { clock }: ExchangeSurroundings): Promise<void> {
  const { isBodyHeldBack } = exchange;
  return refuse(exchange.request, exchange.response, { ...refusal, isBodyHeldBack }, clock);
}

/** A defect of ours: the client is told so, or, in the middle of an answer, sees it break off. */
async function answerFailure({ request, response, isBodyHeldBack }: Exchange, clock: Clock): Promise<void> {
  if (response.headersSent) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  const text = 'davgate failed at this request; its log says why.';
  await refuse(request, response, { status: 500, text, isBodyHeldBack }, clock);
}

/**
 * Sends `100 Continue` once somebody starts to read the body: until then the handler may refuse it unsent.
 * A client that got no leave may or may not send its body after our answer, so nothing may follow on that connection.
 */
function continueWhenRead(exchange: Exchange): void {
  const { request, response } = exchange;
  const keepAlive = response.shouldKeepAlive;
  response.shouldKeepAlive = false;
  request.on('newListener', (event) => {
    if (!exchange.isBodyHeldBack || response.headersSent || (event !== 'data' && event !== 'readable'))
      return;
    exchange.isBodyHeldBack = false;
    response.shouldKeepAlive = keepAlive;
    response.writeContinue();
  });
}

/** The other end of the connection; what a header says about it is not believed. */
function clientAddress(request: IncomingMessage): string {
  return (request.socket.remoteAddress ?? '').replace(/^::ffff:(?=\d+\.)/, '');
}
