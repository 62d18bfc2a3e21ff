import type { Entry } from '../drive/files.ts';
import { DavError } from './errors.ts';

const ANYWHERE = 'OPTIONS, LOCK';
const THERE = `${ANYWHERE}, GET, HEAD, PROPFIND, PROPPATCH, COPY, MOVE, DELETE, UNLOCK`;

/** The methods that make sense on a resource as it is now (RFC 9110 §10.2.1). */
export function allowedOn(entry: Entry | undefined): string {
  if (!entry) return `${ANYWHERE}, PUT, MKCOL`;
  return entry.kind === 'file' ? `${THERE}, PUT` : THERE;
}

/** For a resource whose state is not known. */
export const ALLOWED_SOMEWHERE = `${THERE}, PUT, MKCOL`;

export function notAllowed(message: string, entry: Entry | undefined): DavError {
  return new DavError(405, message, { headers: { Allow: allowedOn(entry) } });
}
