import { type Clock, elapsedMs } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Exchange } from './exchange.ts';

/** What of a path goes to the log, in characters. */
const PATH_LENGTH_MAX = 1_000;

/** Logs one line about an exchange that is over, without the query and without any header. */
export function logAccess(exchange: Exchange, { clock, log }: { clock: Clock; log: Log }): void {
  const { request, response, path, address, start, sentBytes, principal, isSent } = exchange;
  log.info('request', {
    method: request.method,
    path: path.slice(0, PATH_LENGTH_MAX),
    status: response.headersSent ? response.statusCode : undefined,
    sentBytes,
    ms: Math.round(elapsedMs(clock, start)),
    user: principal,
    address,
    cut: isSent ? undefined : true,
  });
}
