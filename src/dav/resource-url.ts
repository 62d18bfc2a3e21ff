import { type BasePath, pathBelow } from '../util/base-path.ts';
import { DEPTH_MAX, namesOf, type Path, PathError, pathOf, plainPath } from '../util/path.ts';
import { decodeName, encodeName } from '../util/url-names.ts';
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
  const [whole = ''] = withoutHost(url).split('?', 1);
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

/** Returns a URL from its path on. */
export function withoutHost(url: string): string {
  return url.replace(ABSOLUTE, '');
}

/** Returns the host and port of an absolute URL; `undefined` for a path. */
export function authorityOf(url: string): string | undefined {
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
