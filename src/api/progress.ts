import { type Clock, elapsedMs } from '../util/clock.ts';

/** The least that a body must bring within its limit: one that drips more slowly comes sooner over a new connection. */
const PROGRESS_BYTES_MIN = 16 * 1024;

/**
 * The same bytes, ended by an error when next to none came in `silenceMs` of waiting for them. The time in which nobody
 * asks for the next bytes does not count: then the reader is the slow one.
 */
export async function* inSteadyProgress(
  body: AsyncIterable<Uint8Array>,
  clock: Clock,
  silenceMs: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let waitedMs = 0;
  let bytes = 0;
  let since = clock.instant();
  for await (const chunk of body) {
    waitedMs += elapsedMs(clock, since);
    bytes += chunk.length;
    if (bytes >= PROGRESS_BYTES_MIN) {
      waitedMs = 0;
      bytes = 0;
    } else if (waitedMs >= silenceMs) {
      throw new Error(`only ${bytes} bytes came in ${Math.round(waitedMs / 1000)} s`);
    }
    yield chunk;
    since = clock.instant();
  }
}
