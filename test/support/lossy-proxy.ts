import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';

/** The fault of each call's first attempt. Later attempts succeed. */
export type Loss =
  /** The connection is closed before the service gets the call. */
  | 'before'
  /** The service runs the call, and the connection is closed before the answer. Refusals pass. */
  | 'after'
  /** The service runs the call, and 500 replaces the answer. Refusals pass. */
  | 'replaced';

export interface LossyProxy {
  readonly url: string;
  /** Returns the number of lost calls. */
  readonly losses: () => number;
  close(): Promise<void>;
}

/** Starts a proxy of the service at `target` that loses every call once. */
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

/** Forwards a request. Returns the answer, and aborts when the client disconnects. */
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
