import { type IncomingHttpHeaders, type IncomingMessage, request as sendRequest } from 'node:http';
import type { Log } from '../util/log.ts';
import type { Exchange } from './exchange.ts';
import { refuse } from './refusal.ts';
import { queryOfTarget } from './target.ts';

/** Below it the gateway serves shared links; the rest of a link's path is the service's own. */
export const LINKS_PATH = '/.davgate';

/** Pages of links with their downloads, and previews for other sites' pages. Spelled like this and in no other way. */
const SERVED = /^\/(scl\/|embed$|embed\.js$)/;

/** POST sends the form with a link's password. */
const METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'POST']);

/** Maximum size of the form with a password, in bytes. */
const FORM_BYTES_MAX = 16 * 1024;

/** Answers requests that need no login; `undefined` for one that is not its. */
export type OpenSite = (exchange: Exchange) => Promise<void> | undefined;

/**
 * Serves the shared links of the service at `serviceUrl`, which listens on loopback alone: passes their requests on, and
 * the answers back as they are, with the policies that keep what people uploaded from running in this origin.
 */
export function linkSite(serviceUrl: string, log: Log): OpenSite {
  return (exchange) => {
    const { path, request, response } = exchange;
    const inner = path.startsWith(LINKS_PATH) ? path.slice(LINKS_PATH.length) : '';
    if (!SERVED.test(inner) || !METHODS.has(request.method ?? '')) return undefined;
    // The service says itself what other sites may embed.
    response.removeHeader('Cross-Origin-Resource-Policy');
    const query = queryOfTarget(request.url ?? '/');
    return passOn(exchange, `${serviceUrl}${inner}${query && `?${query}`}`, log);
  };
}

async function passOn(exchange: Exchange, url: string, log: Log): Promise<void> {
  const form = await formOf(exchange);
  if (!form)
    return refuse(exchange, { status: 413, text: 'A form with a password is shorter than this body.' });
  let answer: IncomingMessage;
  try {
    answer = await ask(exchange, url, form);
  } catch (error) {
    if (exchange.signal.aborted) return exchange.drop();
    log.error('a shared link could not be passed on to the storage service', { reason: String(error) });
    return refuse(exchange, { status: 502, text: 'The storage service does not answer; try again later.' });
  }
  const { statusCode: status = 502, headers } = answer;
  const sizeBytes = Number(headers['content-length'] ?? 0);
  await exchange.answer({ status, headers: answeredHeaders(headers), body: { sizeBytes, bytes: answer } });
}

/** `undefined`: it is too long. */
async function formOf(exchange: Exchange): Promise<Buffer | undefined> {
  if (exchange.request.method !== 'POST') return Buffer.alloc(0);
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of exchange.body()) {
    sizeBytes += chunk.length;
    if (sizeBytes > FORM_BYTES_MAX) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function ask({ request, signal, address }: Exchange, url: string, form: Buffer): Promise<IncomingMessage> {
  const { method } = request;
  const headers = {
    ...askedHeaders(request.headers),
    'x-forwarded-for': address,
    ...(method === 'POST' && { 'content-length': form.length }),
  };
  return new Promise((resolve, reject) => {
    // A connection of its own: loopback's cost nothing, and none is left over when the gateway stops.
    const asked = sendRequest(url, { method, headers, signal, agent: false }, resolve);
    asked.on('error', reject);
    asked.end(form);
  });
}

const ASKED = ['accept', 'content-type', 'if-none-match', 'if-range', 'range'] as const;

/** No login of the drive's, and of the cookies only those that links have set. */
function askedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const cookies = (headers.cookie ?? '').split(/; */).filter((cookie) => cookie.startsWith('link-'));
  const asked = ASKED.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]]]));
  return { ...Object.fromEntries(asked), ...(cookies.length > 0 && { cookie: cookies.join('; ') }) };
}

/** Headers that speak of the connection to the service, and its own name for the request. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'date',
  'keep-alive',
  'transfer-encoding',
  'x-dropbox-request-id',
]);

function answeredHeaders(headers: IncomingHttpHeaders): Record<string, string | string[]> {
  const entries = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || NOT_PASSED.has(name) ? [] : [[name, value] as const],
  );
  return Object.fromEntries(entries);
}
