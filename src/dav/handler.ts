import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { FileError } from '../drive/errors.ts';
import { StateUnavailable, StateUnwritable } from '../state/errors.ts';
import { JournalFull } from '../state/journal.ts';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import { ALLOWED_SOMEWHERE } from './allow.ts';
import { answerRefusal } from './answers/answer.ts';
import { RequestBody } from './body.ts';
import { type Client, clientOf } from './clients.ts';
import { DavError } from './errors.ts';
import type { Exchange } from './exchange.ts';
import { FailedPuts } from './failed-puts.ts';
import type { Context, Drive, Method } from './method.ts';
import { copy, move } from './methods/copy-move.ts';
import { remove } from './methods/delete.ts';
import { get } from './methods/get.ts';
import { lock } from './methods/lock.ts';
import { mkcol } from './methods/mkcol.ts';
import { options } from './methods/options.ts';
import { propfind } from './methods/propfind.ts';
import { proppatch } from './methods/proppatch.ts';
import { put } from './methods/put.ts';
import { unlock } from './methods/unlock.ts';
import { isTrouble, refusalOf } from './status.ts';
import { parseTarget, type Target } from './target.ts';
import { XmlReader } from './xml/read.ts';

export interface DavHandlerParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Makes lock tokens. */
  readonly randomUuid?: () => string;
}

/** Who asks, and of which drive. */
interface Access {
  /** `''` when the drive is open to all. */
  readonly principal: string;
  readonly drive: Drive;
}

/** Answers one request that was let in, whatever happens; never throws. */
export type DavHandler = (exchange: Exchange, access: Access) => Promise<void>;

/** `ignored`: a body means nothing to the method; `own`: the method sees to it. */
const METHODS: ReadonlyMap<string, { readonly run: Method; readonly body: 'ignored' | 'own' }> = new Map([
  ['OPTIONS', { run: options, body: 'ignored' }],
  ['GET', { run: get, body: 'ignored' }],
  ['HEAD', { run: get, body: 'ignored' }],
  ['PUT', { run: put, body: 'own' }],
  ['DELETE', { run: remove, body: 'ignored' }],
  ['MKCOL', { run: mkcol, body: 'own' }],
  // RFC 2518 had a body for these, and old clients send it.
  ['COPY', { run: copy, body: 'ignored' }],
  ['MOVE', { run: move, body: 'ignored' }],
  ['PROPFIND', { run: propfind, body: 'own' }],
  ['PROPPATCH', { run: proppatch, body: 'own' }],
  ['LOCK', { run: lock, body: 'own' }],
  ['UNLOCK', { run: unlock, body: 'ignored' }],
]);

/** Methods of HTTP and of extensions to WebDAV that clients try out; any other is of no protocol of ours. */
const KNOWN_ELSEWHERE = new Set(['POST', 'PATCH', 'TRACE', 'REPORT', 'SEARCH', 'ACL', 'MKCALENDAR']);

/** The WebDAV protocol over any drive. */
export function createDavHandler({ clock, log, randomUuid = randomUUID }: DavHandlerParts): DavHandler {
  const failedPuts = new FailedPuts(clock);
  const xml = new XmlReader();
  return async (exchange, { principal, drive }) => {
    const { request, response, forwardedHosts, signal } = exchange;
    const client = clientOf(request);
    const body = new RequestBody(exchange);
    try {
      const { run, body: bodyUse } = methodOf(request);
      const target = targetOf(request);
      if (bodyUse === 'ignored') await body.ignore();
      const parts = { principal, drive, client, body, signal, clock, log, randomUuid, failedPuts, xml };
      await run({ request, response, forwardedHosts, ...target, ...parts });
    } catch (error) {
      await answerFailure(exchange, { client, log }, error);
    }
  };
}

function methodOf({ method = '' }: IncomingMessage): {
  readonly run: Method;
  readonly body: 'ignored' | 'own';
} {
  const known = METHODS.get(method);
  if (known) return known;
  throw new DavError(
    KNOWN_ELSEWHERE.has(method) ? 405 : 501,
    `${method} is not known to this WebDAV server`,
    {
      headers: { Allow: ALLOWED_SOMEWHERE },
    },
  );
}

/** `OPTIONS *` asks about the server. */
function targetOf({ method, url = '' }: IncomingMessage): Target {
  return parseTarget(method === 'OPTIONS' && url === '*' ? '/' : url);
}

async function answerFailure(
  exchange: Exchange,
  { client, log }: Pick<Context, 'client' | 'log'>,
  error: unknown,
): Promise<void> {
  const { request, response, signal } = exchange;
  if (signal.aborted || response.destroyed) return;
  const refusal = refusalFor(error, client);
  const isOrdinary = error instanceof DavError || (error instanceof FileError && !isTrouble(error.fault));
  if (!isOrdinary || response.headersSent) report(log, request, refusal, error);
  if (response.headersSent) exchange.drop();
  else await answerRefusal(exchange, refusal);
}

function refusalFor(error: unknown, client: Client): DavError {
  if (error instanceof DavError) return withAllow(error);
  if (error instanceof FileError) return withAllow(refusalOf(error, client));
  const ofState = stateFailure(error);
  if (ofState) return refusalOf(ofState, client);
  return new DavError(client.statusWhenBroken, 'davgate made a mistake; its log says which', {
    cause: error,
  });
}

/** What fails in the state or in the journal, in the words of a file system; their own messages name this machine. */
function stateFailure(cause: unknown): FileError | undefined {
  // To a client it is the same as a service that is away: it waits and asks again.
  if (cause instanceof StateUnavailable)
    return new FileError('offline', 'davgate cannot reach its locks and properties now; its log says why', {
      cause,
    });
  if (cause instanceof StateUnwritable)
    return new FileError('no-space', 'davgate cannot store its locks and properties now; its log says why', {
      cause,
    });
  if (cause instanceof JournalFull)
    return new FileError('no-space', 'davgate has no room to keep this on its disk; free some space there', {
      cause,
    });
  return undefined;
}

/** RFC 9110 §15.5.6 wants one with each 405. */
function withAllow(error: DavError): DavError {
  if (error.status !== 405 || error.headers['Allow'] !== undefined) return error;
  const headers = { ...error.headers, Allow: ALLOWED_SOMEWHERE };
  return new DavError(405, error.message, { headers, cause: error });
}

function report(log: Log, request: IncomingMessage, refusal: DavError, error: unknown): void {
  const known = error instanceof DavError || error instanceof FileError;
  log.error('a request failed', {
    method: request.method,
    status: refusal.status,
    fault: error instanceof FileError ? error.fault : undefined,
    reason: error instanceof Error && !known ? (error.stack ?? error.message) : String(error),
  });
}
