import type { IncomingHttpHeaders } from 'node:http';
import type { Transform } from 'node:stream';
import { promisify } from 'node:util';
import {
  type BrotliOptions,
  brotliCompress,
  constants,
  createBrotliCompress,
  createGzip,
  gzip,
} from 'node:zlib';
import Negotiator from 'negotiator';

/** A coding in which texts are sent (RFC 9110 §8.4.1). */
export type ContentCoding = 'br' | 'gzip';

/** The one that makes texts shorter comes first. */
const CODINGS: readonly ContentCoding[] = ['br', 'gzip'];

/** Listings shrink to a twelfth. The default level takes twice the time, and saves another twentieth. */
const GZIP_LEVEL = 3;

/** As fast as gzip at its level, and a tenth shorter. A window of 256 KiB is enough for rows that are alike. */
const BROTLI: BrotliOptions = {
  params: { [constants.BROTLI_PARAM_QUALITY]: 4, [constants.BROTLI_PARAM_LGWIN]: 18 },
};

const brotliCompressed = promisify(brotliCompress);
const gzipped = promisify(gzip);

/** Returns the coding in which a client gets texts; `undefined` if it takes none (RFC 9110 §12.5.3). */
export function codingFor(headers: IncomingHttpHeaders): ContentCoding | undefined {
  const taken = new Negotiator({ headers }).encodings(CODINGS);
  return CODINGS.find((coding) => taken.includes(coding));
}

/** Compresses an answer that is sent once. */
export function compressed(body: Buffer, coding: ContentCoding): Promise<Buffer> {
  return coding === 'br' ? brotliCompressed(body, BROTLI) : gzipped(body, { level: GZIP_LEVEL });
}

/** Like `compressed`, for a stream. */
export function compressing(coding: ContentCoding): Transform {
  return coding === 'br' ? createBrotliCompress(BROTLI) : createGzip({ level: GZIP_LEVEL });
}

/** Compresses a file that is sent again and again: as short as possible, in a hundred times the time. */
export function compressedOnce(body: Buffer, coding: ContentCoding): Promise<Buffer> {
  return coding === 'br' ? brotliCompressed(body) : gzipped(body, { level: constants.Z_BEST_COMPRESSION });
}
