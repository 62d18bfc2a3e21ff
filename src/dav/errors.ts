import type { OutgoingHttpHeaders } from 'node:http';
import type { Entry } from '../drive/files.ts';
import { namesOf, type Path } from '../util/path.ts';

export interface DavErrorDetails {
  /** Local name of the `DAV:` element for the violated precondition (RFC 4918 §16), as in `no-conflicting-lock`. */
  readonly precondition?: string;
  /** The resources that violate the precondition, sent as `DAV:href`s inside its element. */
  readonly hrefs?: readonly string[];
  readonly headers?: OutgoingHttpHeaders;
  readonly cause?: unknown;
}

/** A request refused with an HTTP status; `message` tells the client's user what is wrong and what to do. */
export class DavError extends Error {
  override readonly name = 'DavError';
  readonly precondition: string | undefined;
  readonly hrefs: readonly string[];
  readonly headers: OutgoingHttpHeaders;

  constructor(
    readonly status: number,
    message: string,
    details: DavErrorDetails = {},
  ) {
    super(message, { cause: details.cause });
    this.precondition = details.precondition;
    this.hrefs = details.hrefs ?? [];
    this.headers = details.headers ?? {};
  }
}

/** Throws `DavError` with `status` if the user is read-only at `path`. */
export function requireWritable(
  isReadOnly: ((path: Path) => boolean) | undefined,
  path: Path,
  status = 403,
): void {
  if (isReadOnly?.(path))
    throw new DavError(status, `read-only: you may read ${path}, but not change it or add anything to it`);
}

/** Throws `DavError` 403 for the folder that davgate reserves for itself on every drive. */
export function refuseReserved(path: Path): void {
  if (namesOf(path)[0]?.toLowerCase() === '.davgate')
    throw new DavError(403, 'the folder /.davgate belongs to davgate itself; choose another path');
}

/** `Allow` for a read-only user. */
export const ALLOWED_READING = 'OPTIONS, GET, HEAD, PROPFIND, REPORT, SEARCH';

/** `Allow` in the folders of versions and deleted files, which are read, and copied to restore. */
export const ALLOWED_IN_PAST = 'OPTIONS, GET, HEAD, PROPFIND, COPY';

const ALLOWED_ALWAYS = 'OPTIONS, LOCK';
const ALLOWED_ON_FOLDER = `${ALLOWED_ALWAYS}, GET, HEAD, PROPFIND, PROPPATCH, COPY, MOVE, DELETE, UNLOCK, REPORT, SEARCH`;
const ALLOWED_ON_FILE = `${ALLOWED_ON_FOLDER}, PUT, PATCH`;

/** `Allow` for a folder above the drive. */
export const ALLOWED_ABOVE = 'OPTIONS, PROPFIND';

/** `Allow` for a resource in an unknown state. */
export const ALLOWED_SOMEWHERE = `${ALLOWED_ON_FILE}, MKCOL`;

/** Returns `Allow` for the resource `entry`, or for an unmapped URL (RFC 9110 §10.2.1). */
export function allowedMethods(entry: Entry | undefined): string {
  if (!entry) return `${ALLOWED_ALWAYS}, PUT, MKCOL`;
  return entry.kind === 'file' ? ALLOWED_ON_FILE : ALLOWED_ON_FOLDER;
}

/** Returns a 405 that lists the methods allowed on `entry`. */
export function methodNotAllowed(message: string, entry: Entry | undefined): DavError {
  return new DavError(405, message, { headers: { Allow: allowedMethods(entry) } });
}
