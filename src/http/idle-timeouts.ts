import { type Clock, elapsedMs, type Instant, msBetween } from '../util/clock.ts';
import type { Log } from '../util/log.ts';
import type { Connections } from './connections.ts';
import type { Exchange } from './exchange.ts';
import type { ListenerLimits } from './limits.ts';

/** How often in the shortest waiting time the connections are looked at. */
const LOOKS = 4;

interface Seen {
  readonly bytes: number;
  readonly since: Instant;
}

/**
 * Cuts connections on which the client stands still: it owes us bytes of a body, or does not take ours, or is a stranger
 * who asks for nothing. One look at all of them now and then, so that a request costs no timer. Resolves when `signal` is
 * aborted.
 */
export async function cutStalls(
  connections: Connections,
  limits: ListenerLimits,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
  signal: AbortSignal,
): Promise<void> {
  const received = new WeakMap<Exchange, Seen>();
  const sent = new WeakMap<Exchange, Seen>();
  const { bodyIdleTimeoutMs, answerIdleTimeoutMs, strangerIdleTimeoutMs } = limits;
  const shortestMs = Math.min(bodyIdleTimeoutMs, answerIdleTimeoutMs, strangerIdleTimeoutMs);
  while (await sleepUnlessAborted(clock, Math.ceil(shortestMs / LOOKS), signal)) {
    for (const exchange of connections.running) {
      const { socket } = exchange.request;
      const owedMs = idleMs(received, exchange, owesBody(exchange), socket.bytesRead, clock.instant());
      const takenBytes = socket.bytesWritten - socket.writableLength;
      const refusedMs = idleMs(sent, exchange, socket.writableLength > 0, takenBytes, clock.instant());
      const isStranger = exchange.principal === undefined && !connections.of(socket)?.isAuthenticated;
      const owedMaxMs = isStranger ? Math.min(bodyIdleTimeoutMs, strangerIdleTimeoutMs) : bodyIdleTimeoutMs;
      if (owedMs < owedMaxMs && refusedMs < answerIdleTimeoutMs) continue;
      log.warn('a client stood still and was cut off', { address: exchange.address, path: exchange.path });
      socket.destroy();
    }
    for (const connection of connections.silent) {
      if (elapsedMs(clock, connection.silentSince) < strangerIdleTimeoutMs) break;
      if (!connection.isAuthenticated) connection.destroy();
    }
  }
}

/** We would take more of the body and the client does not send it. A full buffer means that we are the slow ones. */
function owesBody({ request, isBodyHeldBack }: Exchange): boolean {
  return !request.complete && !isBodyHeldBack && request.readableLength < request.readableHighWaterMark;
}

/** For how long `isWaiting` has been seen with nothing moving. */
function idleMs(
  seen: WeakMap<Exchange, Seen>,
  exchange: Exchange,
  isWaiting: boolean,
  bytes: number,
  now: Instant,
): number {
  const before = seen.get(exchange);
  if (isWaiting && before?.bytes === bytes) return msBetween(before.since, now);
  if (isWaiting) seen.set(exchange, { bytes, since: now });
  else seen.delete(exchange);
  return 0;
}

function sleepUnlessAborted(clock: Clock, ms: number, signal: AbortSignal): Promise<boolean> {
  return clock.sleep(ms, signal).then(
    () => true,
    () => false,
  );
}
