import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';

/** How a service is away. */
export type Absence =
  /** Nobody listens at its address. */
  | 'refused'
  /** Connections are taken, and nothing is ever answered. */
  | 'silent'
  /** Every call is answered so. */
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** `oauth2/token` answers 500, and all tokens have expired. */
  | 'tokenless';

export interface FailingFront {
  readonly url: string;
  /** From now on the service is away. What is under way is cut. */
  leave(absence: Absence): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
}

const EXPIRED = { error_summary: 'expired_access_token/.', error: { '.tag': 'expired_access_token' } };

/** Stands before the service at `target` and passes all on while that is not away. */
export async function startFailingFront(target: string): Promise<FailingFront> {
  let absence: Absence | undefined;

  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const { method, headers } = request;
    const outgoing = httpRequest(new URL(request.url ?? '', target), { method, headers, agent: false });
    response.once('close', () => outgoing.destroy());
    const answered = once(outgoing, 'response');
    await pipeline(request, outgoing);
    const [answer] = (await answered) as [IncomingMessage];
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    await pipeline(answer, response);
  };

  const fail = (how: Absence, request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    if (how === 'silent' || how === 'refused') return;
    if (how !== 'tokenless') response.writeHead(how.status, how.headers).end(how.body);
    else if (request.url?.endsWith('/oauth2/token')) response.writeHead(500).end();
    else response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify(EXPIRED));
  };

  const server = createServer((request, response) => {
    if (absence) fail(absence, request, response);
    // One of the two hangs up: the gateway at its end, or the service on a long poll.
    else pass(request, response).catch(() => response.destroy());
  });
  const listen = async (port: number): Promise<number> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const stop = async (): Promise<void> => {
    server.close();
    server.closeAllConnections();
    await once(server, 'close');
  };
  const port = await listen(0);

  return {
    url: `http://127.0.0.1:${port}`,
    async leave(how) {
      absence = how;
      if (how === 'refused') await stop();
      else server.closeAllConnections();
    },
    async comeBack() {
      absence = undefined;
      if (!server.listening) await listen(port);
      else server.closeAllConnections();
    },
    async close() {
      if (server.listening) await stop();
    },
  };
}
