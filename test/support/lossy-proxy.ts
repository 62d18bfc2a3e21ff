import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** What becomes of each call when it is made for the first time; made again, it goes through. */
export type Loss =
  /** The connection is cut before the service hears of it. */
  | 'before'
  /** The service does it, and the connection is cut before its answer. Refusals go through. */
  | 'after'
  /** The service does it, and 500 comes in place of its answer. Refusals go through. */
  | 'replaced';

export interface LossyProxy {
  readonly url: string;
  /** How many calls were lost. */
  readonly losses: () => number;
  close(): Promise<void>;
}

/** Stands between a client and the service at `target` and loses every call once. */
export async function startLossyProxy(target: string, loss: Loss): Promise<LossyProxy> {
  const seen = new Set<string>();
  let losses = 0;

  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request);
    const { 'dropbox-api-arg': arg = '', range = '' } = request.headers;
    const call = createHash('sha256')
      .update(`${request.url}\n${String(arg)}\n${range}\n`)
      .update(body)
      .digest('hex');
    const first = !seen.has(call);
    seen.add(call);
    if (first && loss === 'before') {
      losses += 1;
      response.destroy();
      return;
    }
    const answer = await forward(target, request, body, response);
    const content = await buffer(answer);
    if (first && answer.statusCode === 200) {
      losses += 1;
      if (loss === 'after') response.destroy();
      else response.writeHead(500).end();
      return;
    }
    response.writeHead(answer.statusCode ?? 500, answer.headers).end(content);
  };

  const server = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    losses: () => losses,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** The service's answer; given up when the client goes away meanwhile. */
async function forward(
  target: string,
  { url, method, headers }: IncomingMessage,
  body: Buffer,
  response: ServerResponse,
): Promise<IncomingMessage> {
  const outgoing = httpRequest(target + url, { method: method ?? 'POST', headers });
  response.on('close', () => outgoing.destroy());
  outgoing.end(body);
  const [answer] = (await once(outgoing, 'response')) as [IncomingMessage];
  return answer;
}
