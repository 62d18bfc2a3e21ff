import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { Clock } from '../util/clock.ts';
import { endBeforeBody, isBodySmall } from '../util/unread-body.ts';

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
  await endBeforeBody(request, response, clock, refusal.isBodyHeldBack === true);
}
