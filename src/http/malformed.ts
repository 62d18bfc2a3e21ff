import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Clock } from '../util/clock.ts';

/** For so long a client may take to read an answer to what was no request. */
const LINGER_MS = 2_000;

const STATUS_OF: Readonly<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

/** The status for a connection error of Node's parser. */
export function statusOfParserError(error: Error): number {
  const code = 'code' in error ? String(error.code) : '';
  return STATUS_OF[code] ?? 400;
}

/**
 * Answers what is no request that could be handled, and closes the connection: our half at once, all of it
 * when the client has done the same or had its time, so that the answer is not lost.
 */
export async function answerMalformed(socket: Duplex, status: number, clock: Clock): Promise<void> {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  const phrase = STATUS_CODES[status] ?? '';
  const head = `HTTP/1.1 ${status} ${phrase}\r\nConnection: close\r\nContent-Type: text/plain\r\n`;
  const body = `${phrase}\n`;
  socket.end(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
  socket.resume();
  const done = new AbortController();
  for (const event of ['end', 'close', 'error']) socket.once(event, () => done.abort());
  await clock.sleep(LINGER_MS, done.signal).catch(() => undefined);
  socket.destroy();
}
