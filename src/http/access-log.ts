import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Exchange } from './exchange.ts';

/** What of a path goes to the log, in characters. */
const PATH_LENGTH_MAX = 1_000;

/** Call what this gives when the exchange is over: one line, without the query and without any header. */
export function logAccess(exchange: Exchange, { clock, log }: { clock: Clock; log: Log }): () => void {
  const { request, response, path, address, startMs } = exchange;
  const { socket } = request;
  const sentBefore = socket.bytesWritten;
  let isWhole = false;
  // Node says "finish" too of an answer whose connection breaks; first in line, for Node then closes the others.
  response.prependOnceListener('finish', () => {
    isWhole = !socket.destroyed;
  });
  return () =>
    log.info('request', {
      method: request.method,
      path: path.slice(0, PATH_LENGTH_MAX),
      status: response.headersSent ? response.statusCode : undefined,
      sentBytes: socket.bytesWritten - sentBefore,
      ms: clock.now() - startMs,
      user: exchange.user?.name,
      address,
      cut: isWhole ? undefined : true,
    });
}
