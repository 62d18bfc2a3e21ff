import type { IncomingMessage, ServerResponse } from 'node:http';

const METHODS = 'COPY, DELETE, GET, HEAD, LOCK, MKCOL, MOVE, OPTIONS, PROPFIND, PROPPATCH, PUT, UNLOCK';

const READABLE_HEADERS =
  'Accept-Ranges, Allow, Content-Length, Content-Range, DAV, ETag, Last-Modified, Location, Lock-Token';

/** How long a browser may remember the answer, in seconds; two hours is the most that any honours. */
const MAX_AGE_SECONDS = 7_200;

const HEADER_NAMES = /^[\w!#$%&'*+.^`|~-]+( *, *[\w!#$%&'*+.^`|~-]+)*$/;

/** A browser's question whether a page from elsewhere may send a request; it comes without a login. */
export function isPreflight(request: IncomingMessage): boolean {
  const { origin, 'access-control-request-method': method } = request.headers;
  return request.method === 'OPTIONS' && origin !== undefined && method !== undefined;
}

/** 200 and not 204: some clients take only that for a yes. Without the headers it is a no. */
export function answerPreflight(
  request: IncomingMessage,
  response: ServerResponse,
  origins: readonly string[],
): void {
  if (allowOrigin(request, response, origins)) {
    const wanted = request.headers['access-control-request-headers'] ?? '';
    response.setHeader('Access-Control-Allow-Methods', METHODS);
    response.setHeader('Access-Control-Max-Age', MAX_AGE_SECONDS);
    if (HEADER_NAMES.test(wanted)) response.setHeader('Access-Control-Allow-Headers', wanted);
  }
  response.writeHead(200, { 'Content-Length': 0 }).end();
}

/** Lets a page of one of `origins` read the answer; whether it may. */
export function allowOrigin(
  request: IncomingMessage,
  response: ServerResponse,
  origins: readonly string[],
): boolean {
  const { origin } = request.headers;
  if (origins.length > 0) response.setHeader('Vary', 'Origin');
  if (origin === undefined || !origins.includes(origin)) return false;
  response.setHeader('Access-Control-Allow-Origin', origin);
  response.setHeader('Access-Control-Expose-Headers', READABLE_HEADERS);
  response.setHeader('Cross-Origin-Resource-Policy', 'cross-origin');
  return true;
}
