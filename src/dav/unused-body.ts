import type { HttpRequest } from '../util/http-messages.ts';
import { DavError } from './errors.ts';
import type { Exchange } from './exchange.ts';

/** Maximum size of a body that is read only to keep the connection usable, in bytes. */
const IGNORED_BODY_BYTES_MAX = 1024 * 1024;

type RequestWithBody = Pick<Exchange, 'request' | 'isChunked' | 'announcedBytes' | 'body'>;

/** Throws `DavError` 415 if there is a body. */
export async function refuseBody(exchange: RequestWithBody): Promise<void> {
  // Some clients announce chunks and send none.
  const isAbsent = exchange.isChunked ? await isEmpty(exchange.body()) : exchange.announcedBytes === 0;
  if (isAbsent) return;
  throw new DavError(415, `${exchange.request.method} takes no body; send the request without one`);
}

/** Reads the body and discards it, so that the connection stays usable. Throws `DavError` 413 above the limit. */
export async function ignoreBody(exchange: RequestWithBody): Promise<void> {
  const { request } = exchange;
  if (!exchange.isChunked) {
    requireIgnorable(request, exchange.announcedBytes ?? 0);
  }
  let sizeBytes = 0;
  for await (const piece of exchange.body()) {
    sizeBytes += piece.length;
    requireIgnorable(request, sizeBytes);
  }
}

function requireIgnorable({ method }: HttpRequest, sizeBytes: number): void {
  if (sizeBytes > IGNORED_BODY_BYTES_MAX)
    throw new DavError(
      413,
      `${method} takes no body and ignores one of up to ${IGNORED_BODY_BYTES_MAX} bytes; this one is larger`,
    );
}

async function isEmpty(body: AsyncIterable<Uint8Array>): Promise<boolean> {
  for await (const piece of body) if (piece.length > 0) return false;
  return true;
}
