import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { passedOn } from './passed-on.ts';

/** How the service fails. */
export type Absence =
  /** Connections are reset when they are made. The port stays in use, so that no other process takes it. */
  | 'reset'
  /** Connections are accepted and never answered. */
  | 'silent'
  /** Every call gets this answer. */
  | { readonly status: number; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }
  /** `oauth2/token` answers 500, and all tokens have expired. */
  | 'tokenless';

export interface FailingFront {
  readonly url: string;
  /** Makes the service fail from now on, and breaks running calls off. */
  leave(absence: Absence): void;
  comeBack(): void;
  close(): Promise<void>;
}

const EXPIRED = { error_summary: 'expired_access_token/.', error: { '.tag': 'expired_access_token' } };

/** Starts a proxy of the service at `target` that can fail. */
export async function startFailingFront(target: string): Promise<FailingFront> {
  let absence: Absence | undefined;

  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    const answer = await passedOn(request, target, (end) => response.once('close', end));
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    await pipeline(answer, response);
  };

  const fail = (how: Absence, request: IncomingMessage, response: ServerResponse) => {
    request.resume();
    if (how === 'silent' || how === 'reset') return;
    if (how !== 'tokenless') response.writeHead(how.status, how.headers).end(how.body);
    else if (request.url?.endsWith('/oauth2/token')) response.writeHead(500).end();
    else response.writeHead(401, { 'content-type': 'application/json' }).end(JSON.stringify(EXPIRED));
  };

  const server = createServer((request, response) => {
    if (absence) fail(absence, request, response);
    // The gateway disconnects when it ends, or the service during a long poll.
    else pass(request, response).catch(() => response.destroy());
  });
  server.on('connection', (socket) => {
    if (absence === 'reset') socket.resetAndDestroy();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;

  return {
    url: `http://127.0.0.1:${port}`,
    leave(how) {
      absence = how;
      server.closeAllConnections();
    },
    comeBack() {
      absence = undefined;
      server.closeAllConnections();
    },
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
