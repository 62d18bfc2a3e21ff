import type { IncomingMessage } from 'node:http';
import type { Clock } from '../util/clock.ts';
import { Alarm } from '../util/wait.ts';

/** A body that nobody wants is read to its end up to this size, so that the connection can be used again. */
export const UNWANTED_BODY_BYTES_MAX = 1024 * 1024;

/**
 * For so long and so many bytes a longer unwanted body is swallowed before the connection is closed: a client
 * that sends all before it reads would lose our answer if the connection broke under it.
 */
const LINGER_MS = 10_000;
export const LINGER_BYTES_MAX = 256 * 1024 * 1024;

/** Whether the request says that it has no body, or a small one. */
export function isBodySmall({ headers }: IncomingMessage): boolean {
  if (headers['transfer-encoding'] !== undefined) return false;
  return Number(headers['content-length'] ?? 0) <= UNWANTED_BODY_BYTES_MAX;
}

/** Reads the rest of the body and throws it away; gives up quietly after a while or when the client has gone. */
export async function swallow(request: IncomingMessage, clock: Clock): Promise<void> {
  if (request.destroyed || request.readableEnded) return;
  if (request.complete && request.readableLength === 0) return;
  const done = new Alarm(clock);
  const stop = () => done.ring();
  let sizeBytes = 0;
  request.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes > LINGER_BYTES_MAX) stop();
  });
  for (const event of ['end', 'close', 'error']) request.once(event, stop);
  request.resume();
  await done.sleep(LINGER_MS);
}
