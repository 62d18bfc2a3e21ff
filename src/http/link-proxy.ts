import { type IncomingHttpHeaders, type IncomingMessage, request as sendRequest } from 'node:http';
import type { Log } from '../util/log.ts';
import { readBody } from '../util/whole-body.ts';
import type { Exchange } from './exchange.ts';
import { queryOfTarget } from './request-target.ts';

/** The gateway serves shared links below this path; the rest of a link's path is the service's. */
export const LINKS_PATH = '/.davgate';

/** Link pages with their downloads, and the previews that other sites embed. No other spelling is served. */
const SERVED = /^\/(scl\/|embed$|embed\.js$)/;

/** POST submits a link's password form. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST']);

/** Maximum size of a password form, in bytes. */
const FORM_BYTES_MAX = 16 * 1024;

/**
 * Answers a request that needs no login; `undefined` for any other request. `closing` is aborted when the server takes no new
 * requests.
 */
export type OpenRoute = (exchange: Exchange, closing: AbortSignal) => Promise<void> | undefined;

/**
 * Proxies shared links to the service at `serviceUrl`, which listens on loopback only. The answers pass unchanged, with
 * the policies that keep uploaded content from running in this origin.
 */
export function createLinkProxy(serviceUrl: string, log: Log): OpenRoute {
  const { hostname, port } = new URL(serviceUrl);
  return (exchange) => {
    const { path, request } = exchange;
    const inner = path.startsWith(LINKS_PATH) ? path.slice(LINKS_PATH.length) : '';
    if (!SERVED.test(inner) || !METHODS.has(request.method ?? '')) return undefined;
    // The service decides which of its pages other sites may embed.
    exchange.removeHeader('Cross-Origin-Resource-Policy');
    const query = queryOfTarget(request.url ?? '/');
    // As it is: a URL would be read again, and `/scl/../2` as another path than the one above.
    return forward(exchange, { hostname, port, path: inner + (query && `?${query}`) }, log);
  };
}

/** A request of the service. */
interface Target {
  readonly hostname: string;
  readonly port: string;
  /** With the query. */
  readonly path: string;
}

async function forward(exchange: Exchange, target: Target, log: Log): Promise<void> {
  const form = await formOf(exchange);
  if (!form)
    return exchange.refuse({
      status: 413,
      text: `This body is too long; a password form has at most ${FORM_BYTES_MAX / 1024} KiB.`,
    });
  let answer: IncomingMessage;
  try {
    answer = await ask(exchange, target, form);
  } catch (error) {
    if (exchange.signal.aborted) return exchange.drop();
    log.error('cannot forward a shared link to the storage service', { reason: String(error) });
    return exchange.refuse({ status: 502, text: 'The storage service does not answer; try again later.' });
  }
  const { statusCode: status = 502, headers } = answer;
  const sizeBytes = Number(headers['content-length'] ?? 0);
  await exchange.answer({ status, headers: passedBack(headers), body: { sizeBytes, bytes: answer } });
}

/** Returns the body of a POST; `undefined` when it is too long. */
async function formOf(exchange: Exchange): Promise<Buffer | undefined> {
  if (exchange.request.method !== 'POST') return Buffer.alloc(0);
  return readBody(exchange.body(), FORM_BYTES_MAX);
}

function ask(
  { request, signal, address, isSecure, prefix, forwardedPrefix }: Exchange,
  target: Target,
  form: Buffer,
): Promise<IncomingMessage> {
  const { method } = request;
  const headers = {
    ...passedOn(request.headers),
    'x-forwarded-for': address,
    'x-forwarded-proto': isSecure ? 'https' : 'http',
    // Otherwise the service knows the path from --public-url, which may name a proxy that sends no such header.
    ...(forwardedPrefix !== '' && { 'x-forwarded-prefix': `${prefix}${LINKS_PATH}` }),
    ...(method === 'POST' && { 'content-length': form.length }),
  };
  return new Promise((resolve, reject) => {
    // A connection for each request: on loopback it costs nothing, and none is left open when the gateway stops.
    const asked = sendRequest({ ...target, method, headers, signal, agent: false }, resolve);
    asked.on('error', reject);
    asked.end(form);
  });
}

const PASSED_ON = ['accept', 'content-type', 'if-none-match', 'if-range', 'range'] as const;

/** Leaves out the drive's login, and all cookies except those that links have set. */
function passedOn(headers: IncomingHttpHeaders): Record<string, string> {
  const cookies = (headers.cookie ?? '').split(/; */).filter((cookie) => cookie.startsWith('link-'));
  const asked = PASSED_ON.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]]));
  return { ...Object.fromEntries(asked), ...(cookies.length > 0 && { cookie: cookies.join('; ') }) };
}

/** Headers about the connection to the service, and its own request id. */
const NOT_PASSED_BACK: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'transfer-encoding',
  'x-dropbox-request-id',
]);

function passedBack(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || NOT_PASSED_BACK.has(name) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}
