import type { OutgoingHttpHeaders } from 'node:http';
import type { Fault, FileError } from '../drive/errors.ts';
import type { Client } from './clients.ts';
import { DavError } from './errors.ts';

/**
 * Each fault's status. Clients take a status for an errno: 404, 410 and, for Finder, most of 5xx mean that
 * the file is gone, and 401 asks for another password. So none of these is used for anything else.
 */
const STATUS: Readonly<Record<Fault, number | 'busy' | 'broken'>> = {
  'not-found': 404,
  'parent-missing': 409,
  // MKCOL (RFC 4918 §9.3.1). COPY and MOVE, which call it 412, say so themselves.
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
  incomplete: 400,
  checksum: 400,
  busy: 'busy',
  offline: 'busy',
  intercepted: 'busy',
  // Our own token is refused: not the client's fault, and nothing that its password could mend.
  unauthorized: 'busy',
  unsupported: 403,
  broken: 'broken',
};

/** In seconds; for a service that is away and did not say for how long. */
const RETRY_AFTER_SECONDS = 10;

/** Whether it is the service that fails, and not the request. */
export function isTrouble(fault: Fault): boolean {
  return typeof STATUS[fault] === 'string';
}

export function statusOf({ fault }: { readonly fault: Fault }, client: Client): number {
  const status = STATUS[fault];
  if (status === 'busy') return client.statusWhenBusy;
  return status === 'broken' ? client.statusWhenBroken : status;
}

/** A failure of the drive in the words of the protocol. */
export function refusalOf(error: FileError, client: Client): DavError {
  const status = statusOf(error, client);
  const headers: OutgoingHttpHeaders = {};
  if (STATUS[error.fault] === 'busy') {
    const { retryAfterMs } = error.details;
    headers['Retry-After'] =
      retryAfterMs === undefined ? RETRY_AFTER_SECONDS : Math.max(1, Math.ceil(retryAfterMs / 1000));
  }
  return new DavError(status, error.message, { headers, cause: error });
}
