import type { IncomingHttpHeaders } from 'node:http';
import { DavError } from './errors.ts';
import type { Context } from './method.ts';
import { authorityOf, parseTarget, type Target } from './target.ts';

export type Depth = '0' | '1' | 'infinity';

/** RFC 4918 §10.2. Throws `DavError` 400 for a depth that the method does not know. */
export function depthOf<D extends Depth>(headers: IncomingHttpHeaders, allowed: readonly D[], missing: D): D {
  const text = String(headers['depth'] ?? missing)
    .trim()
    .toLowerCase();
  const depth = allowed.find((one) => one === text);
  if (depth) return depth;
  throw new DavError(400, `Depth must be ${allowed.join(' or ')} here, not ${JSON.stringify(text)}`);
}

/** RFC 4918 §10.6; missing means yes. */
export function overwriteOf(headers: IncomingHttpHeaders): boolean {
  const text = String(headers['overwrite'] ?? 'T').trim();
  if (/^t$/i.test(text)) return true;
  if (/^f$/i.test(text)) return false;
  throw new DavError(400, `Overwrite must be T or F, not ${JSON.stringify(text)}`);
}

type Forwarded = Pick<Context, 'request' | 'forwardedHosts'>;

/**
 * RFC 4918 §10.3: a URL, or a path alone as OmniPresence sends it. `http` and `https` count as one, and so do all
 * ports, as they differ behind a proxy that speaks TLS. Throws `DavError` 400, or 403 for a host that is clearly not this one.
 */
export function destinationOf(forwarded: Forwarded): Target {
  const { request } = forwarded;
  const header = request.headers['destination'];
  if (typeof header !== 'string' || header.trim() === '')
    throw new DavError(400, 'the header Destination must say where to put it');
  const url = header.trim();
  const authority = authorityOf(url);
  if (authority === undefined && !url.startsWith('/'))
    throw new DavError(400, 'Destination must be a URL or start with a slash');
  if (authority !== undefined && !isOurs(authority, forwarded))
    throw new DavError(
      403,
      `Destination names another server (${JSON.stringify(hostIn(authority))}); copy within one drive only. ` +
        'Behind a proxy, let it hand on the Host header as it came, or name the proxy with --trusted-proxy',
    );
  if (authority !== undefined && !OUR_SCHEMES.test(url))
    throw new DavError(400, 'Destination must be an http or https address of this server');
  return parseTarget(url);
}

/** `dav` and `webdav` stand for http in the addresses that file managers show, and may slip into a header. */
const OUR_SCHEMES = /^(https?|davs?|webdavs?):/i;

/** A proxy may have put its own idea of `Host` in place of the client's: only one that is trusted tells that. */
function isOurs(authority: string, { request, forwardedHosts }: Forwarded): boolean {
  const { headers, httpVersion } = request;
  const host = hostIn(authority);
  const named = [headers.host, ...(forwardedHosts ?? [])].filter((name) => name !== undefined);
  if (named.some((name) => hostIn(name) === host)) return true;
  // Where it names no host of the client, nobody can tell; nginx by itself speaks HTTP/1.0 and names none.
  return forwardedHosts?.length === 0 || httpVersion === '1.0';
}

/** Without user, port and a dot at the end. */
function hostIn(authority: string): string {
  const host = authority.trim().slice(authority.trim().lastIndexOf('@') + 1);
  return host.replace(/:\d*$/, '').replace(/\.$/, '').toLowerCase();
}

/** LibreOffice refreshes each second when given half a minute or less; lost locks shall not last for days. */
const TIMEOUT_SECONDS_MIN = 60;
/** Word loses the save after lunch when it is much shorter. */
const TIMEOUT_SECONDS_MAX = 3600;

/** RFC 4918 §10.7: the first time in the list that can be read, within what we grant; in seconds. */
export function lockTimeoutSeconds(headers: IncomingHttpHeaders): number {
  for (const wish of String(headers['timeout'] ?? '').split(',')) {
    if (/^\s*infinite\s*$/i.test(wish)) return TIMEOUT_SECONDS_MAX;
    const [, digits] = /^\s*second-(\d+)\s*$/i.exec(wish) ?? [];
    if (digits !== undefined)
      return Math.min(TIMEOUT_SECONDS_MAX, Math.max(TIMEOUT_SECONDS_MIN, Number(digits)));
  }
  return TIMEOUT_SECONDS_MAX;
}

/** RFC 4918 §10.5; older Windows sends it without the angle brackets. Throws `DavError` 400. */
export function lockTokenOf(headers: IncomingHttpHeaders): string {
  const [, token] = /^\s*<?([^<>\s]+)>?\s*$/.exec(String(headers['lock-token'] ?? '')) ?? [];
  if (token !== undefined) return token;
  throw new DavError(400, 'the header Lock-Token must name the lock to release, as <token>');
}

const MONTHS = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ');
const IMF_FIXDATE = /^\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT$/i;
const RFC_850 = /^\w{6,9}, (\d{2})-(\w{3})-(\d{2}) (\d{2}):(\d{2}):(\d{2}) GMT$/i;
const ASCTIME = /^\w{3} (\w{3}) ([ \d]\d) (\d{2}):(\d{2}):(\d{2}) (\d{4})$/i;

/** A date of HTTP in any of its three forms (RFC 9110 §5.6.7), in milliseconds since 1970; `undefined` for others. */
export function parseHttpDate(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const trimmed = text.trim();
  const asctime = ASCTIME.exec(trimmed);
  const [, day, month, year, hour, minute, second] = asctime
    ? [asctime[0], asctime[2], asctime[1], asctime[6], asctime[3], asctime[4], asctime[5]]
    : (IMF_FIXDATE.exec(trimmed) ?? RFC_850.exec(trimmed) ?? []);
  const index = MONTHS.indexOf(String(month).toLowerCase());
  if (index < 0) return undefined;
  return Date.UTC(fullYear(Number(year)), index, Number(day), Number(hour), Number(minute), Number(second));
}

/** Two digits are of this century up to 2069, as everywhere. */
function fullYear(year: number): number {
  if (year >= 100) return year;
  return year < 70 ? 2000 + year : 1900 + year;
}

export function httpDate(ms: number): string {
  return new Date(ms).toUTCString();
}

/** What a file is given as its time, in seconds since 1970: years of four digits, 0001 to 9999, as others cannot be sent on. */
const MTIME_SECONDS_MIN = -62_135_596_800;
const MTIME_SECONDS_MAX = 253_402_300_799;

/**
 * `X-OC-Mtime` (ownCloud, rclone, gvfs): when the file was changed at its source, sent in seconds since
 * 1970, returned in milliseconds; `undefined` for what is no time.
 */
export function mtimeOf(headers: IncomingHttpHeaders): number | undefined {
  const text = String(headers['x-oc-mtime'] ?? '').trim();
  if (!/^-?\d{1,12}(\.\d+)?$/.test(text)) return undefined;
  const seconds = Number(text);
  if (seconds < MTIME_SECONDS_MIN || seconds > MTIME_SECONDS_MAX) return undefined;
  return Math.floor(seconds * 1000);
}
