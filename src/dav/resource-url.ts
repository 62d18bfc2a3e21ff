import { namesOf, type Path, PathError, pathOf } from '../util/path.ts';
import { DavError } from './errors.ts';

/** A resource as a URL names it. */
export interface ResourceUrl {
  readonly path: Path;
  /** The URL ends with a slash, as that of a collection does (RFC 4918 §5.2). */
  readonly hasTrailingSlash: boolean;
}

/** Maximum depth of a path. Real trees have a dozen levels; work on a path grows with the square of its depth. */
const DEPTH_MAX = 256;

/** Scheme and authority of an absolute URL (RFC 3986 §3). */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

/**
 * Parses a request target, or a URL in a header. Splits it at its slashes first and decodes each name once, so that no
 * escape can produce another name, a parent folder or a NUL. Ignores scheme, host, query and repeated slashes.
 * Throws `DavError` 400 or 414.
 */
export function parseResourceUrl(url: string): ResourceUrl {
  const withoutHost = url.replace(ABSOLUTE, '');
  const [raw = ''] = withoutHost.split('?', 1);
  if (raw.includes('#'))
    throw new DavError(400, 'the URL contains "#", which starts a fragment; send a "#" in a name as %23');
  if (raw !== '' && !raw.startsWith('/'))
    throw new DavError(400, 'the path of the URL must start with a slash');
  const segments = raw.split('/').filter((segment) => segment !== '');
  if (segments.length > DEPTH_MAX)
    throw new DavError(414, `the path has ${segments.length} levels; at most ${DEPTH_MAX} are allowed`);
  return { path: pathFrom(segments.map(decodeSegment)), hasTrailingSlash: raw.endsWith('/') || raw === '' };
}

/** Returns the host and port of an absolute URL; `undefined` for a path. */
export function authorityOf(url: string): string | undefined {
  return ABSOLUTE.exec(url)?.[1];
}

const ESCAPE = /%([0-9a-f]{2})|%/gi;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Treats unescaped bytes beyond ASCII, which Node delivers as one character each, as UTF-8 too. */
function decodeSegment(segment: string): string {
  const bytes = segment.replace(ESCAPE, (_, digits: string | undefined) => {
    if (digits === undefined)
      throw new DavError(
        400,
        `"${printable(segment)}" contains a "%" without two hexadecimal digits; send it as %25`,
      );
    return String.fromCharCode(Number.parseInt(digits, 16));
  });
  if (bytes.includes('/')) throw new DavError(400, 'a name must not contain an escaped slash (%2F)');
  try {
    return utf8.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new DavError(400, `"${printable(segment)}" is not valid UTF-8 once its escapes are decoded`);
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

/**
 * Returns the URL path of `path` for `DAV:href` and `Location`. Escapes only what must be escaped, in upper case, because
 * gvfs compares hrefs byte by byte. A collection's ends with a slash.
 */
export function hrefOf(path: Path, isCollection: boolean): string {
  return hrefOfNames(namesOf(path), isCollection);
}

/**
 * Returns the `DAV:href` of `path` in the spelling of the request target: its letter case and Unicode form. davfs2 and
 * Zotero drop rows whose href does not start with the URL they asked for, and macOS asks in NFD.
 */
export function requestHref(target: string, path: Path, isCollection: boolean): string {
  const names = namesInTarget(target);
  // A proxy may have rewritten the target.
  return names && isPathOf(names, path) ? hrefOfNames(names, isCollection) : hrefOf(path, isCollection);
}

function hrefOfNames(names: readonly string[], isCollection: boolean): string {
  const href = `/${names.map(encodeSegment).join('/')}`;
  return isCollection && names.length > 0 ? `${href}/` : href;
}

function namesInTarget(target: string): string[] | undefined {
  const [path = ''] = target.replace(/^https?:\/\/[^/]*/i, '').split('?', 1);
  try {
    return path.split('/').filter(Boolean).map(decodeURIComponent);
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

/** Names of these characters need no escape. */
const UNRESERVED = /^[A-Za-z0-9\-._~!$&'()*+,;=:@]*$/;

/** Characters that `encodeURIComponent` escapes although a segment may contain them (RFC 3986 §3.3). */
const NEEDLESS_ESCAPES = /%(?:24|26|2B|2C|3A|3B|3D|40)/g;

/** Encodes one name as a segment of a URL path. */
export function encodeSegment(name: string): string {
  if (UNRESERVED.test(name)) return name;
  return encodeURIComponent(name).replace(NEEDLESS_ESCAPES, decodeURIComponent);
}
