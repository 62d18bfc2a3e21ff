import { isIP } from 'node:net';
import type { HttpRequest } from '../util/http-messages.ts';
import type { Exchange, Refusal } from './exchange.ts';

/** Methods and headers that an allowed page may use. */
const METHODS =
  'COPY, DELETE, GET, HEAD, LOCK, MKCOL, MOVE, OPTIONS, PATCH, PROPFIND, PROPPATCH, PUT, UNLOCK';
const READABLE_HEADERS =
  'Accept-Ranges, Allow, Content-Length, Content-Range, DAV, ETag, Last-Modified, Location, Lock-Token';

/** How long a browser may remember the answer to a preflight, in seconds. No browser honours more than two hours. */
const MAX_AGE_SECONDS = 7_200;

const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+( *, *[\w!#$%&'*+.^`|~-]+)*$/;

/** Keeps browsers from loading an answer into another site's page, as a script or an image. */
export const RESOURCE_POLICY = { 'Cross-Origin-Resource-Policy': 'same-origin' } as const;

/**
 * Whether the Host header names another host than `localhost`, an IP address or one of `ownNames`. A web page whose name
 * resolves to this machine (DNS rebinding) could otherwise read, from its user's browser, everything that needs no
 * login. A request without a Host (HTTP/1.0) comes from no browser.
 */
export function hasForeignHost({ headers }: HttpRequest, ownNames: readonly string[]): boolean {
  const host = (headers.host ?? '').trim().toLowerCase();
  const name = host.replace(/:\d*$/, '').replace(/\.$/, '');
  if (host === '' || /^(.+\.)?localhost$/.test(name) || ownNames.includes(name)) return false;
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) === 0;
}

/**
 * Refuses a request that a browser sends for another site's page, by its Fetch Metadata headers. Such a page may link to
 * a file, but not load it into itself. Programs other than browsers send no such headers.
 */
export function crossSiteRefusal(
  { method, headers }: HttpRequest,
  allowedOrigins: readonly string[],
): Refusal | undefined {
  const site = headers['sec-fetch-site'];
  if (site !== 'cross-site' && site !== 'same-site') return undefined;
  const isNavigation =
    method === 'GET' && headers['sec-fetch-mode'] === 'navigate' && headers['sec-fetch-dest'] === 'document';
  if (isNavigation || allowedOrigins.includes(headers.origin ?? '')) return undefined;
  return {
    status: 403,
    text: "Another site's page asked for this. Open it in a window of its own, or allow that site with --cors-origin.",
  };
}

/** What a browser runs, or takes as a part of a page's own code. */
const CODE = new Set([
  'script',
  'style',
  'worker',
  'sharedworker',
  'serviceworker',
  'audioworklet',
  'paintworklet',
  'xslt',
]);

/**
 * Refuses a file of the drive that a page of this gateway would run as its code. The pages' own scripts and styles are not
 * in the drive.
 */
export function codeRefusal({ headers }: HttpRequest): Refusal | undefined {
  const isCode = headers['sec-fetch-site'] === 'same-origin' && CODE.has(headers['sec-fetch-dest'] ?? '');
  return isCode ? { status: 403, text: 'Files of the drive never run as a part of its pages.' } : undefined;
}

/** Whether a browser asks in advance if a page of another origin may send a request (CORS). It sends no login. */
export function isPreflight(request: HttpRequest): boolean {
  const { origin, 'access-control-request-method': method } = request.headers;
  return request.method === 'OPTIONS' && origin !== undefined && method !== undefined;
}

/** Answers 200, because some clients take 204 for a refusal. Without the CORS headers the answer is a refusal. */
export function answerPreflight(exchange: Exchange, origins: readonly string[]): Promise<void> {
  const isAllowed = allowOrigin(exchange, origins);
  const wanted = exchange.request.headers['access-control-request-headers'] ?? '';
  const headers = {
    'Access-Control-Allow-Methods': METHODS,
    'Access-Control-Max-Age': MAX_AGE_SECONDS,
    ...(HEADER_NAMES.test(wanted) && { 'Access-Control-Allow-Headers': wanted }),
  };
  return exchange.answer({ status: 200, headers: isAllowed ? headers : {}, body: undefined });
}

/** Lets pages of `origins` read the answer. Returns whether the request comes from one of them. */
export function allowOrigin(exchange: Exchange, origins: readonly string[]): boolean {
  const { origin } = exchange.request.headers;
  if (origins.length > 0) exchange.setHeader('Vary', 'Origin');
  if (origin === undefined || !origins.includes(origin)) return false;
  exchange.setHeader('Access-Control-Allow-Origin', origin);
  exchange.setHeader('Access-Control-Expose-Headers', READABLE_HEADERS);
  exchange.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
  return true;
}
