import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../util/clock.ts';
import { LINGER_BYTES_MAX, LINGER_MS, UNWANTED_BODY_BYTES_MAX } from './limits.ts';

export interface Refusal {
  readonly status: number;
  /** One sentence for a person: what was wrong and what to do. */
  readonly text: string;
  readonly headers?: OutgoingHttpHeaders;
  /** The client waits for leave to send its body, and gets none. */
  readonly isBodyHeldBack?: boolean;
}

/**
 * Answers a request before its body was read, so that the client gets to see it: the whole answer goes out
 * first, then what still comes of the body is swallowed, and only then the connection goes on or is closed.
 */
export async function refuse(
  request: IncomingMessage,
  response: ServerResponse,
  refusal: Refusal,
  clock: Clock,
): Promise<void> {
  const body = `${refusal.text}\n`;
  if (refusal.isBodyHeldBack || !isBodySmall(request)) response.shouldKeepAlive = false;
  response.writeHead(refusal.status, {
    ...refusal.headers,
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(body),
  });
  if (request.method === 'HEAD') response.flushHeaders();
  else response.write(body);
  if (!refusal.isBodyHeldBack) await swallow(request, clock);
  response.end();
}

function isBodySmall(request: IncomingMessage): boolean {
  if (request.headers['transfer-encoding'] !== undefined) return false;
  return Number(request.headers['content-length'] ?? 0) <= UNWANTED_BODY_BYTES_MAX;
}

/** Reads the body and throws it away; gives up quietly after a while or when the client has gone. */
async function swallow(request: IncomingMessage, clock: Clock): Promise<void> {
  if (request.complete && request.readableLength === 0) return;
  const done = new AbortController();
  const stop = () => done.abort();
  let sizeBytes = 0;
  request.on('data', (chunk: Buffer) => {
    sizeBytes += chunk.length;
    if (sizeBytes > LINGER_BYTES_MAX) stop();
  });
  for (const event of ['end', 'close', 'error']) request.once(event, stop);
  await clock.sleep(LINGER_MS, done.signal).catch(() => undefined);
}
