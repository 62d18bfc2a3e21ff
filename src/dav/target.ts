import { type Path, PathError, pathOf } from '../util/path.ts';
import { DavError } from './errors.ts';

export interface Target {
  readonly path: Path;
  /** It ended with a slash. */
  readonly namesCollection: boolean;
}

/** Real trees are a dozen folders deep; work on a path grows with the square of its depth. */
const NAMES_MAX = 256;

/** Scheme and authority of an absolute URL (RFC 3986 §3). */
const ABSOLUTE = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i;

/**
 * What a request line, or a URL in a header, names. It is split at its slashes before each name is decoded,
 * once, so that no escape can make another name, a parent or the end of a string of it. A query is left
 * out, and so are scheme and host; slashes in a row count as one. Throws `DavError` 400 or 414.
 */
export function parseTarget(url: string): Target {
  const withoutHost = url.replace(ABSOLUTE, '');
  const [raw = ''] = withoutHost.split('?', 1);
  if (raw.includes('#'))
    throw new DavError(400, 'a "#" in a name must be sent as %23; nothing after it would arrive');
  if (raw !== '' && !raw.startsWith('/')) throw new DavError(400, 'the path of a URL starts with a slash');
  const segments = raw.split('/').filter((segment) => segment !== '');
  if (segments.length > NAMES_MAX)
    throw new DavError(414, `a path may be ${NAMES_MAX} names deep, not ${segments.length}`);
  return { path: pathFrom(segments.map(decodeSegment)), namesCollection: raw.endsWith('/') || raw === '' };
}

/** The host, and the port if there is one, of an absolute URL; `undefined` for a mere path. */
export function authorityOf(url: string): string | undefined {
  return ABSOLUTE.exec(url)?.[1];
}

const ESCAPE = /%([0-9a-f]{2})|%/gi;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Unescaped bytes beyond ASCII, which Node hands on one character each, are taken for UTF-8 as well. */
function decodeSegment(segment: string): string {
  const bytes = segment.replace(ESCAPE, (_, digits: string | undefined) => {
    if (digits === undefined)
      throw new DavError(400, `"${printable(segment)}" has a "%" without two hexadecimal digits`);
    return String.fromCharCode(Number.parseInt(digits, 16));
  });
  if (bytes.includes('/')) throw new DavError(400, 'a name may not hold an escaped slash (%2F)');
  try {
    return utf8.decode(Buffer.from(bytes, 'latin1'));
  } catch {
    throw new DavError(400, `"${printable(segment)}" is not UTF-8 when its escapes are resolved`);
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

/** What came from outside and may be anything, short enough to be read. */
function printable(text: string): string {
  return text.slice(0, 80).replace(/[^\x20-\x7e]/g, '?');
}
