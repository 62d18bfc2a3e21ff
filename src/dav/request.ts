import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Entry } from '../drive/files.ts';
import { type BasePath, pathBelow } from '../util/base-path.ts';
import { DEPTH_MAX, namesOf, type Path, PathError, pathOf, plainPath } from '../util/path.ts';
import { decodeName, encodeName } from '../util/url-names.ts';
import type { Context } from './context.ts';
import { DavError } from './errors.ts';
import type { Exchange } from './exchange.ts';

/** A resource as a URL names it. */
export interface ResourceUrl {
  readonly path: Path;
  /** The URL ends with a slash, as that of a collection does (RFC 4918 §5.2). */
  readonly hasTrailingSlash: boolean;
}

/** Scheme and authority of an absolute URL (RFC 3986 §3). */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

/**
 * Parses a request target, or a URL in a header that has the client's `prefix`. Splits it at its slashes first and decodes
 * each name once, so that no escape can produce another name, a parent folder or a NUL. Ignores scheme, host, query and
 * repeated slashes. Throws `DavError` 400 or 414, or 403 for a URL outside of the drive.
 */
export function parseResourceUrl(url: string, prefix: BasePath = ''): ResourceUrl {
  const hasTrailingSlash = url.endsWith('/');
  // Nearly all paths that programs send. One of this length cannot have too many levels.
  const plain = prefix === '' && url.length <= DEPTH_MAX;
  const path = plain ? plainPath(hasTrailingSlash ? url.slice(0, -1) : url) : undefined;
  if (path !== undefined) return { path, hasTrailingSlash };
  const withoutHost = url.replace(ABSOLUTE, '');
  const [whole = ''] = withoutHost.split('?', 1);
  if (whole.includes('#'))
    throw new DavError(400, 'the URL contains "#", which starts a fragment; send a "#" in a name as %23');
  if (whole !== '' && !whole.startsWith('/'))
    throw new DavError(400, 'the path of the URL must start with a slash');
  const raw = prefix === '' ? whole : pathBelow(prefix, whole);
  if (raw === undefined)
    throw new DavError(
      403,
      `${JSON.stringify(printable(whole))} is outside of the drive, which is at ${prefix}/`,
    );
  const segments = raw.split('/').filter((segment) => segment !== '');
  if (segments.length > DEPTH_MAX)
    throw new DavError(414, `the path has ${segments.length} levels; at most ${DEPTH_MAX} are allowed`);
  return { path: pathFrom(segments.map(decodeSegment)), hasTrailingSlash: raw.endsWith('/') || raw === '' };
}

/** Returns the entry at the request's path: at once when the drive knows it. */
export function entryHere({ drive, path, exchange }: Context): Entry | Promise<Entry | undefined> {
  return drive.files.known(path) ?? drive.files.stat(path, exchange.signal);
}

/** Returns the host and port of an absolute URL; `undefined` for a path. */
function authorityOf(url: string): string | undefined {
  return ABSOLUTE.exec(url)?.[1];
}

/** Bytes beyond ASCII that a client has not escaped: Node delivers them as one character each. */
const UNESCAPED = /[\x80-\xff]/g;

function decodeSegment(segment: string): string {
  if (UNRESERVED.test(segment)) return segment;
  if (/%2f/i.test(segment)) throw new DavError(400, 'a name must not contain an escaped slash (%2F)');
  const escaped = segment.replace(UNESCAPED, (byte) => `%${byte.charCodeAt(0).toString(16)}`);
  try {
    return decodeName(escaped);
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    throw new DavError(
      400,
      `"${printable(segment)}" contains a "%" without two hexadecimal digits; send it as %25`,
    );
  }
}

function pathFrom(names: readonly string[]): Path {
  try {
    return pathOf(names);
  } catch (error) {
    if (error instanceof PathError) throw new DavError(400, error.message);
    throw error;
  }
}

/** Makes untrusted text safe for a message: 80 characters of printable ASCII at most. */
function printable(text: string): string {
  return text.slice(0, 80).replace(/[^\x20-\x7e]/g, '?');
}

/** The parts of an exchange that a URL in its answer depends on. */
type Addressed = Pick<Exchange, 'prefix' | 'target'>;

/**
 * Returns the URL path of `path` for `DAV:href` and `Location`, as the client sees it. Escapes only what must be escaped,
 * in upper case, because gvfs compares hrefs byte by byte. A collection's ends with a slash.
 */
export function hrefOf({ prefix }: Pick<Addressed, 'prefix'>, path: Path, isCollection: boolean): string {
  return hrefOfNames(prefix, namesOf(path), isCollection);
}

/**
 * Returns the `DAV:href` of `path` in the spelling of the request target: its letter case and Unicode form. davfs2 and
 * Zotero drop rows whose href does not start with the URL they asked for, and macOS asks in NFD.
 */
export function requestHref({ prefix, target }: Addressed, path: Path, isCollection: boolean): string {
  if ((target === path || target === `${path}/`) && PLAIN.test(path))
    return isCollection && path.length > 1 ? `${prefix}${path}/` : `${prefix}${path}`;
  const names = namesInTarget(target);
  // A proxy may have rewritten the target.
  const isSame = names !== undefined && isPathOf(names, path);
  return hrefOfNames(prefix, isSame ? names : namesOf(path), isCollection);
}

function hrefOfNames(prefix: BasePath, names: readonly string[], isCollection: boolean): string {
  const href = `${prefix}/${names.map(encodeSegment).join('/')}`;
  return isCollection && names.length > 0 ? `${href}/` : href;
}

function namesInTarget(target: string): string[] | undefined {
  const [path = ''] = target.replace(/^https?:\/\/[^/]*/i, '').split('?', 1);
  try {
    return path.split('/').filter(Boolean).map(decodeName);
  } catch {
    return undefined;
  }
}

function isPathOf(names: readonly string[], path: Path): boolean {
  try {
    return pathOf(names) === path;
  } catch (error) {
    if (error instanceof PathError) return false;
    throw error;
  }
}

/** Paths of these characters are their own href. */
const PLAIN = /^[A-Za-z0-9\-._~!$&'()*+,;=:@/]*$/;

/** Names of these characters need no escape. */
const UNRESERVED = /^[A-Za-z0-9\-._~!$&'()*+,;=:@]*$/;

/** Characters that `encodeName` escapes although a segment may contain them (RFC 3986 §3.3). */
const NEEDLESS_ESCAPES = /%(?:24|26|2B|2C|3A|3B|3D|40)/g;

/** Encodes one name as a segment of a URL path. */
export function encodeSegment(name: string): string {
  if (UNRESERVED.test(name)) return name;
  return encodeName(name).replace(NEEDLESS_ESCAPES, decodeURIComponent);
}

export type Depth = '0' | '1' | 'infinity';

/** Returns the `Depth` header (RFC 4918 §10.2), or `missing` without one. Throws `DavError` 400 unless it is `allowed`. */
export function depthOf<D extends Depth | `${Depth},noroot`>(
  headers: IncomingHttpHeaders,
  allowed: readonly D[],
  missing: D,
): D {
  const text = String(headers['depth'] ?? missing)
    .replace(/\s/g, '')
    .toLowerCase();
  const depth = allowed.find((one) => one === text);
  if (depth) return depth;
  throw new DavError(400, `Depth must be ${allowed.join(' or ')} here, not ${JSON.stringify(text)}`);
}

/** Whether the client prefers a short answer (`Prefer: return=minimal`, RFC 8144). */
export function prefersMinimal({ prefer }: IncomingHttpHeaders): boolean {
  return prefer !== undefined && /(^|,)\s*return\s*=\s*"?minimal"?\s*([,;]|$)/i.test(String(prefer));
}

/** Returns the `Overwrite` header (RFC 4918 §10.6), true by default. Throws `DavError` 400. */
export function overwriteOf(headers: IncomingHttpHeaders): boolean {
  const text = String(headers['overwrite'] ?? 'T').trim();
  if (/^t$/i.test(text)) return true;
  if (/^f$/i.test(text)) return false;
  throw new DavError(400, `Overwrite must be T or F, not ${JSON.stringify(text)}`);
}

type ForwardedRequest = Pick<Exchange, 'request' | 'forwardedHosts' | 'prefix'>;

/**
 * Parses the `Destination` header (RFC 4918 §10.3): a URL, or a path alone as OmniPresence sends it. Ignores the scheme
 * and the port, which differ behind a proxy that terminates TLS. Throws `DavError` 400, or 403 for another host or for a
 * path outside of the drive.
 */
export function destinationOf(exchange: ForwardedRequest): ResourceUrl {
  const header = exchange.request.headers['destination'];
  if (typeof header !== 'string' || header.trim() === '')
    throw new DavError(400, 'the Destination header is missing; set it to the URL of the target');
  const url = header.trim();
  const authority = authorityOf(url);
  if (authority === undefined && !url.startsWith('/'))
    throw new DavError(400, 'Destination must be a URL, or a path that starts with a slash');
  if (authority !== undefined && !isOwnHost(authority, exchange))
    throw new DavError(
      403,
      `Destination names another server (${JSON.stringify(hostIn(authority))}); copy within one drive only. ` +
        'Behind a reverse proxy, forward the Host header unchanged, or name the proxy with --trusted-proxy',
    );
  if (authority !== undefined && !HTTP_SCHEMES.test(url))
    throw new DavError(400, 'Destination must be an http or https URL of this server');
  return parseResourceUrl(url, exchange.prefix);
}

/** File managers show http URLs as `dav:` or `webdav:`, and some send them that way. */
const HTTP_SCHEMES = /^(https?|davs?|webdavs?):/i;

function isOwnHost(authority: string, { request, forwardedHosts }: ForwardedRequest): boolean {
  const { headers, httpVersion } = request;
  const host = hostIn(authority);
  const ownHosts = [headers.host, ...(forwardedHosts ?? [])].filter((name) => name !== undefined);
  if (ownHosts.some((name) => hostIn(name) === host)) return true;
  // A proxy that replaces Host and forwards no original leaves nothing to compare with; nginx's default is HTTP/1.0.
  return forwardedHosts?.length === 0 || httpVersion === '1.0';
}

/** Returns the host without user, port and trailing dot. */
function hostIn(authority: string): string {
  const host = authority.trim().slice(authority.trim().lastIndexOf('@') + 1);
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}

/** Minimum lifetime of a lock, in seconds. LibreOffice refreshes a lock of 30 seconds or less every second. */
const TIMEOUT_SECONDS_MIN = 60;
/** Maximum lifetime of a lock, in seconds: abandoned locks end, and Word can still save after a lunch break. */
const TIMEOUT_SECONDS_MAX = 3600;

/** Returns the first readable lifetime in the `Timeout` header (RFC 4918 §10.7), within the limits, in seconds. */
export function lockTimeoutSeconds(headers: IncomingHttpHeaders): number {
  for (const wish of String(headers['timeout'] ?? '').split(',')) {
    if (/^\s*infinite\s*$/i.test(wish)) return TIMEOUT_SECONDS_MAX;
    const [, digits] = /^\s*second-(\d+)\s*$/i.exec(wish) ?? [];
    if (digits !== undefined)
      return Math.min(TIMEOUT_SECONDS_MAX, Math.max(TIMEOUT_SECONDS_MIN, Number(digits)));
  }
  return TIMEOUT_SECONDS_MAX;
}

/** Returns the `Lock-Token` header (RFC 4918 §10.5). Old Windows omits the angle brackets. Throws `DavError` 400. */
export function lockTokenOf(headers: IncomingHttpHeaders): string {
  const [, token] = /^\s*<?([^<>\s]+)>?\s*$/.exec(String(headers['lock-token'] ?? '')) ?? [];
  if (token !== undefined) return token;
  throw new DavError(400, 'the Lock-Token header must contain the token of the lock to release, as <token>');
}

/** Range of times, in ms since 1970: years 0001 to 9999, as other years fit in no HTTP date. */
const TIME_MS_MIN = -62_135_596_800_000;
const TIME_MS_MAX = 253_402_300_799_999;

/** Whether ms since 1970 are a time that an HTTP date can express. */
export function isTime(ms: number): boolean {
  return ms >= TIME_MS_MIN && ms <= TIME_MS_MAX;
}

/**
 * Parses `X-OC-Mtime` and `X-OC-CTime` (ownCloud, Nextcloud, rclone, gvfs), times in seconds since 1970. Returns ms since
 * 1970, or `undefined` if the header is no time.
 */
export function parseSeconds(header: string): number | undefined {
  const text = header.trim();
  if (!/^-?\d{1,12}(\.\d+)?$/.test(text)) return undefined;
  const ms = Math.floor(Number(text) * 1000);
  return isTime(ms) ? ms : undefined;
}

/** Maximum size of a body that is read only to keep the connection usable, in bytes. */
const IGNORED_BODY_BYTES_MAX = 1024 * 1024;

type RequestWithBody = Pick<Exchange, 'request' | 'isChunked' | 'announcedBytes' | 'body'>;

/** Throws `DavError` 415 if there is a body. */
export async function refuseBody(exchange: RequestWithBody): Promise<void> {
  // Some clients announce chunks and send none.
  const isAbsent = exchange.isChunked ? await isEmpty(exchange.body()) : exchange.announcedBytes === 0;
  if (isAbsent) return;
  throw new DavError(415, `${exchange.request.method} takes no body; send the request without one`);
}

/** Reads the body and discards it, so that the connection stays usable. Throws `DavError` 413 above the limit. */
export async function ignoreBody(exchange: RequestWithBody): Promise<void> {
  const { request } = exchange;
  if (!exchange.isChunked) {
    requireIgnorable(request, exchange.announcedBytes ?? 0);
  }
  let sizeBytes = 0;
  for await (const piece of exchange.body()) {
    sizeBytes += piece.length;
    requireIgnorable(request, sizeBytes);
  }
}

function requireIgnorable({ method }: IncomingMessage, sizeBytes: number): void {
  if (sizeBytes > IGNORED_BODY_BYTES_MAX)
    throw new DavError(
      413,
      `${method} takes no body and ignores one of up to ${IGNORED_BODY_BYTES_MAX} bytes; this one is larger`,
    );
}

async function isEmpty(body: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const piece of body) if (piece.length > 0) return false;
  return true;
}
