import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../util/clock.ts';
import type { Log } from '../util/log.ts';

/** What of a path goes to the log, in characters. */
const PATH_LENGTH_MAX = 1_000;

/** What a line of the log is about. */
interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly address: string;
  readonly startMs: number;
  /** Known by the time the visit is over. */
  readonly user: { readonly name: string } | undefined;
}

/** Call what this gives when the visit is over: one line, without the query and without any header. */
export function logAccess(visit: Visit, { clock, log }: { clock: Clock; log: Log }): () => void {
  const { request, response, path, address, startMs } = visit;
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
      user: visit.user?.name,
      address,
      cut: isWhole ? undefined : true,
    });
}
