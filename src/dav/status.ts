import type { OutgoingHttpHeaders } from 'node:http';
import type { Fault, FileError } from '../drive/errors.ts';
import type { Client } from './clients.ts';
import { DavError } from './errors.ts';

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

/** `Retry-After` when the service is unavailable and named no time, in seconds. */
const RETRY_AFTER_SECONDS = 10;

/** Whether the fault is a failure of the service, not of the request. */
export function isServiceFailure(fault: Fault): boolean {
  return typeof STATUS[fault] === 'string';
}

/** Returns the status by which `client` understands the fault. */
export function statusOf({ fault }: { readonly fault: Fault }, client: Client): number {
  const status = STATUS[fault];
  if (status === 'busy') return client.statusWhenBusy;
  return status === 'broken' ? client.statusWhenBroken : status;
}

/** Returns the refusal for a failure of the drive. */
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
