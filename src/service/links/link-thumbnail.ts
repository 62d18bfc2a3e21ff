import type { Answer } from '../../http/answer.ts';
import type { Exchange } from '../../http/exchange.ts';
import { text } from '../answers.ts';
import { namesRev } from '../content/etag.ts';
import type { Rooms } from '../route.ts';
import type { StoredFile } from '../storage/storage.ts';
import { thumbnailOf } from '../thumbnails/thumbnail.ts';

/** When to come back while too many images are being made, in seconds. */
const RETRY_SECONDS = 5;

/** Twice as many pixels as the largest place for one, for screens that have them. */
const WANTED = { format: 'webp', mode: 'strict', box: { width: 320, height: 240 } } as const;

/** The small picture of a linked file that a folder's page shows; 404 for a file that is no image. */
export async function linkThumbnail(
  { request, signal }: Exchange,
  rooms: Rooms,
  file: StoredFile,
): Promise<Answer> {
  const etag = `"${file.rev}"`;
  const headers = { 'cache-control': 'private, no-cache', 'referrer-policy': 'no-referrer', etag };
  if (namesRev(request.headers['if-none-match'], file.rev)) return { status: 304, headers, body: undefined };
  const made = await thumbnailOf(rooms, file, WANTED, signal);
  if (made === 'busy')
    return text(503, 'Too many thumbnails are being made: try again in a few seconds.', {
      'retry-after': String(RETRY_SECONDS),
    });
  if (typeof made === 'string') return text(404, `There is no thumbnail of this file: ${made}.`);
  return {
    status: 200,
    headers: {
      ...headers,
      'content-type': 'image/webp',
      'content-security-policy': "sandbox; default-src 'none'",
      'cross-origin-resource-policy': 'cross-origin',
    },
    body: { sizeBytes: made.length, bytes: bytesOf(made) },
  };
}

async function* bytesOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
