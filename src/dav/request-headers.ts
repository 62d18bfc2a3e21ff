import type { IncomingHttpHeaders } from 'node:http';
import { DavError } from './errors.ts';
import type { Exchange } from './exchange.ts';
import { authorityOf, parseResourceUrl, type ResourceUrl } from './resource-url.ts';

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
