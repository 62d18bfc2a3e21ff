import type { Clock } from '../util/clock.ts';
import type { HttpRequest } from '../util/http-messages.ts';
import { Alarm } from '../util/wait.ts';

/** Maximum size of an unwanted body that is read to its end, so that the connection can be used again, in bytes. */
export const UNWANTED_BODY_BYTES_MAX = 1024 * 1024;

/**
 * How long, in ms, and how many bytes of a longer unwanted body are read before the connection is closed. A client that
 * sends everything before it reads would lose our answer if the connection broke meanwhile.
 */
const LINGER_MS = 10_000;
export const LINGER_BYTES_MAX = 256 * 1024 * 1024;

/** Reads and discards the rest of the body. Stops at the limits, or when the client has gone. */
export async function discardBody(request: HttpRequest, clock: Clock): Promise<void> {
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
