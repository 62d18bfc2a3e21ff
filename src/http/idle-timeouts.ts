import { type Clock, elapsedMs, type Instant, msBetween } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Connections } from './connections.ts';
import type { Exchange } from './exchange.ts';
import type { ListenerLimits } from './limits.ts';

/** Number of checks of all connections within the shortest timeout. */
const CHECKS = 4;

/** A byte count, and since when it has not changed. */
interface Progress {
  readonly bytes: number;
  readonly since: Instant;
}

/**
 * Closes connections whose client makes no progress: it does not send its body, does not take our answer, or sends no
 * request and has not logged in. Checks all of them now and then, so that a request costs no timer. Resolves when `signal`
 * is aborted.
 */
export async function cutIdleConnections(
  connections: Connections,
  limits: ListenerLimits,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  const received = new WeakMap<Exchange, Progress>();
  const sent = new WeakMap<Exchange, Progress>();
  const { bodyIdleTimeoutMs, answerIdleTimeoutMs, unauthenticatedIdleTimeoutMs } = limits;
  const shortestMs = Math.min(bodyIdleTimeoutMs, answerIdleTimeoutMs, unauthenticatedIdleTimeoutMs);
  while (await sleepUnlessAborted(clock, Math.ceil(shortestMs / CHECKS), signal)) {
    for (const exchange of connections.running) {
      const { socket } = exchange.request;
      const owedMs = idleMs(received, exchange, owesBody(exchange), socket.bytesRead, clock.instant());
      const takenBytes = socket.bytesWritten - socket.writableLength;
      const refusedMs = idleMs(sent, exchange, socket.writableLength > 0, takenBytes, clock.instant());
      const isAuthenticated =
        exchange.principal !== undefined || connections.of(socket)?.isAuthenticated === true;
      const owedMaxMs = isAuthenticated
        ? bodyIdleTimeoutMs
        : Math.min(bodyIdleTimeoutMs, unauthenticatedIdleTimeoutMs);
      if (owedMs < owedMaxMs && refusedMs < answerIdleTimeoutMs) continue;
      log.warn('idle client disconnected', { address: exchange.address, path: exchange.path });
      socket.destroy();
    }
    for (const connection of connections.idle) {
      if (elapsedMs(clock, connection.idleSince) < unauthenticatedIdleTimeoutMs) break;
      if (!connection.isAuthenticated) connection.destroy();
    }
  }
}

/** Whether the client could send more of its body. The gateway is the slow side before it reads, and while its buffer is full. */
function owesBody({ request }: Exchange): boolean {
  const isRead = request.readableFlowing !== null;
  return isRead && !request.complete && request.readableLength < request.readableHighWaterMark;
}

/** Returns how long `isWaiting` has been true without a change of `bytes`, in ms. */
function idleMs(
  progress: WeakMap<Exchange, Progress>,
  exchange: Exchange,
  isWaiting: boolean,
  bytes: number,
  now: Instant,
): number {
  const before = progress.get(exchange);
  if (isWaiting && before?.bytes === bytes) return msBetween(before.since, now);
  if (isWaiting) progress.set(exchange, { bytes, since: now });
  else progress.delete(exchange);
  return 0;
}

function sleepUnlessAborted(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return clock.sleep(ms, signal).then(
    () => true,
    () => false,
  );
}
