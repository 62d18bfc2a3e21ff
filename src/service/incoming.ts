import type { Exchange } from '../http/exchange.ts';
import { BadCall } from './failures.ts';
import { type Incoming, StorageError } from './storage/storage.ts';

/** Of one call: 150 MiB. */
const UPLOAD_MAX_BYTES = 150 * 1024 * 1024;

/** The body for the store. What says by its length that it is too much is refused before it is read. */
export function incomingOf(exchange: Exchange, contentHash: string | undefined): Incoming {
  if (Number(exchange.request.headers['content-length'] ?? 0) > UPLOAD_MAX_BYTES)
    throw new StorageError({ kind: 'body', tag: 'payload_too_large' });
  if (exchange.request.headers['content-encoding'] !== undefined)
    throw new BadCall('HTTP header "Content-Encoding" is not supported; send the bytes as they are.');
  return {
    bytes: exchange.body(),
    maxBytes: UPLOAD_MAX_BYTES,
    ...(contentHash !== undefined && { contentHash }),
  };
}
