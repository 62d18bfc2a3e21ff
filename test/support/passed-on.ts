import { once } from 'node:events';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { pipeline } from 'node:stream/promises';

/** Sends a request that a test's proxy received on to `target`. Returns the answer; ends the call when `over` says so. */
export async function passedOn(
  received: IncomingMessage,
  target: string,
  over?: (end: () => void) => void,
): Promise<IncomingMessage> {
  const { method, headers, url: path = '/' } = received;
  // As the client wrote it: a URL object would change it.
  const outgoing = httpRequest(target, { method, headers, path, agent: false });
  over?.(() => outgoing.destroy());
  // Both fail when the target disconnects: neither failure may stay unhandled.
  const results = await Promise.all([once(outgoing, 'response'), pipeline(received, outgoing)]);
  const [[answer]] = results as [[IncomingMessage], unknown]; // arguments of 'response'
  return answer;
}
