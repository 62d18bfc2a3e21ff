import type { IncomingMessage } from 'node:http';
import { HEADER_FIELDS_MAX } from './limits.ts';
import type { Refusal } from './refusal.ts';

/**
 * What is wrong with a request that Node's parser let through. The parser itself refuses a body with two
 * lengths, or with a length and chunks, with which one request could be smuggled inside another.
 */
export function wrongShape(request: IncomingMessage): Refusal | undefined {
  const { rawHeaders, headers } = request;
  if (rawHeaders.length / 2 > HEADER_FIELDS_MAX)
    return { status: 431, text: `At most ${HEADER_FIELDS_MAX} header fields, please.` };
  const hosts = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host');
  if (hosts.length > 1) return { status: 400, text: 'The request has more than one Host.' };
  if (hosts.length === 0 && request.httpVersion !== '1.0')
    return { status: 400, text: 'The request has no Host.' };
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect))
    return { status: 417, text: 'Of the expectations only "100-continue" is understood.' };
  const coding = headers['transfer-encoding'];
  if (coding === undefined) return undefined;
  if (request.httpVersion === '1.0')
    return { status: 400, text: 'HTTP/1.0 knows no Transfer-Encoding; send a Content-Length.' };
  if (coding.trim().toLowerCase() !== 'chunked')
    return { status: 501, text: 'Of the transfer codings only "chunked" is understood.' };
  return undefined;
}
