import type { OutgoingHttpHeaders } from 'node:http';
import { type Fault, FileError } from '../drive/errors.ts';
import { StateUnavailable, StateUnwritable } from '../state/errors.ts';
import { JournalFull } from '../state/journal.ts';
import type { Log } from '../util/log.ts';
import { XML_DECLARATION, XML_TYPE } from './answers/multistatus.ts';
import { type Client, clientOf } from './clients.ts';
import { ALLOWED_SOMEWHERE, DavError } from './errors.ts';
import type { Exchange } from './exchange.ts';
import { DAVGATE_NAMESPACE } from './properties/property-names.ts';
import { escapeText } from './xml/xml-writer.ts';

/**
 * The status of each fault. Clients map statuses to errno: 404, 410 and, for Finder, most of 5xx mean that the file is
 * gone; 401 asks for another password. These are therefore used for nothing else.
 */
const STATUS: Readonly<Record<Fault, number | 'busy' | 'broken'>> = {
  'not-found': 404,
  'parent-missing': 409,
  // For MKCOL (RFC 4918 §9.3.1); COPY and MOVE map it to 412 themselves.
  exists: 405,
  'not-a-folder': 409,
  'is-a-folder': 405,
  changed: 412,
  forbidden: 403,
  'not-entitled': 403,
  'bad-name': 403,
  'into-itself': 403,
  'too-large': 413,
  'too-many': 403,
  'no-space': 507,
  'over-quota': 507,
  incomplete: 400,
  checksum: 400,
  busy: 'busy',
  offline: 'busy',
  intercepted: 'busy',
  // The service refuses davgate's token: no other password of the client would help.
  unauthorized: 'busy',
  unsupported: 403,
  broken: 'broken',
};

/** The preconditions of RFC 4331 §6 and RFC 5842 §4 that tell more than the status. */
const PRECONDITIONS: Partial<Readonly<Record<Fault, string>>> = {
  'over-quota': 'quota-not-exceeded',
  'bad-name': 'name-allowed',
};

/** `Retry-After` when the service is unavailable and named no time, in seconds. */
const RETRY_AFTER_SECONDS = 10;

/** Answers a request that failed with `error`, and logs failures that are not the client's. */
export async function answerFailure(exchange: Exchange, log: Log, error: unknown): Promise<void> {
  const { request, response, requestId, signal } = exchange;
  if (signal.aborted || response.destroyed) return;
  const refusal = withAllow(refusalFor(error, clientOf(request), requestId));
  const isExpected =
    error instanceof DavError || (error instanceof FileError && !isServiceFailure(error.fault));
  if (!isExpected || response.headersSent)
    log.error('a request failed', {
      requestId,
      method: request.method,
      status: refusal.status,
      fault: error instanceof FileError ? error.fault : undefined,
      reason: reasonOf(error),
    });
  if (response.headersSent) return exchange.drop();
  const { type, body } = contentOf(refusal);
  const headers = { ...refusal.headers, 'Content-Type': type };
  await exchange.answer({ status: refusal.status, headers, body });
}

function refusalFor(error: unknown, client: Client, requestId: string): DavError {
  if (error instanceof DavError) return error;
  if (error instanceof FileError) return refusalOf(error, client);
  const see = `see davgate's log (request ${requestId})`;
  const stateFailure = stateFailureOf(error, see);
  if (stateFailure) return refusalOf(stateFailure, client);
  return new DavError(client.statusWhenBroken, `internal error; ${see}`, { cause: error });
}

/** Whether the fault is a failure of the service, not of the request. */
function isServiceFailure(fault: Fault): boolean {
  return typeof STATUS[fault] === 'string';
}

/** Whether a request that failed with `error` may succeed when it is sent again later. */
export function isTransient(error: unknown): boolean {
  const failure = error instanceof FileError ? error : stateFailureOf(error, '');
  return failure !== undefined && STATUS[failure.fault] === 'busy';
}

/** Returns the status by which `client` understands the fault. */
export function statusOf({ fault }: { readonly fault: Fault }, client: Client): number {
  const status = STATUS[fault];
  if (status === 'busy') return client.statusWhenBusy;
  return status === 'broken' ? client.statusWhenBroken : status;
}

/** Returns the refusal for a failure of the drive. */
function refusalOf(error: FileError, client: Client): DavError {
  const status = statusOf(error, client);
  const headers: OutgoingHttpHeaders = {};
  if (STATUS[error.fault] === 'busy') {
    const { retryAfterMs } = error.details;
    headers['Retry-After'] =
      retryAfterMs === undefined ? RETRY_AFTER_SECONDS : Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
  const precondition = PRECONDITIONS[error.fault];
  return new DavError(status, error.message, {
    headers,
    cause: error,
    ...(precondition && { precondition }),
  });
}

/** Returns the failure of a state store as one of the drive. The stores' own messages name hosts and directories. */
function stateFailureOf(cause: unknown, see: string): FileError | undefined {
  if (cause instanceof StateUnavailable)
    return new FileError('offline', `davgate cannot reach its locks and properties; try again, or ${see}`, {
      cause,
    });
  if (cause instanceof StateUnwritable)
    return new FileError('no-space', `davgate cannot save its locks and properties; ${see}`, { cause });
  if (cause instanceof JournalFull)
    return new FileError(
      'no-space',
      `davgate's disk has no room for this file; free some space there, or ${see}`,
      { cause },
    );
  return undefined;
}

/** Adds the `Allow` that RFC 9110 §15.5.6 requires with each 405. */
function withAllow(error: DavError): DavError {
  if (error.status !== 405 || error.headers['Allow'] !== undefined) return error;
  const headers = { ...error.headers, Allow: ALLOWED_SOMEWHERE };
  return new DavError(405, error.message, { headers, cause: error });
}

function reasonOf(error: unknown): string {
  const hasKnownOrigin = error instanceof DavError || error instanceof FileError;
  return error instanceof Error && !hasKnownOrigin ? (error.stack ?? error.message) : String(error);
}

/** Renders `DAV:error` when RFC 4918 §16 has an element for the precondition, else plain text. */
function contentOf({ message, precondition, hrefs }: DavError): {
  readonly type: string;
  readonly body: string;
} {
  if (precondition === undefined) return { type: 'text/plain; charset=utf-8', body: `${message}\n` };
  const inner = hrefs.map((href) => `<D:href>${escapeText(href)}</D:href>`).join('');
  const condition = inner === '' ? `<D:${precondition}/>` : `<D:${precondition}>${inner}</D:${precondition}>`;
  const reason = `<message xmlns="${DAVGATE_NAMESPACE}">${escapeText(message)}</message>`;
  return {
    type: XML_TYPE,
    body: `${XML_DECLARATION}<D:error xmlns:D="DAV:">${condition}${reason}</D:error>`,
  };
}
