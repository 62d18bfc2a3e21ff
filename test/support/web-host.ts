import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A web server from which files are fetched. */
export interface WebHost {
  /** The server's URL, without a trailing slash. */
  readonly url: string;
  readonly port: number;
  /** Targets of all requests. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** Starts a web server on a loopback address. */
export async function startWebHost(
  answer: RequestListener,
  {
    host = '127.0.0.1',
    port = 0,
    server = createServer(),
  }: { host?: string; port?: number; server?: Server } = {},
): Promise<WebHost> {
  const asked: string[] = [];
  server.on('request', (request, response) => {
    asked.push(request.url ?? '');
    answer(request, response);
  });
  server.listen(port, host);
  await once(server, 'listening');
  const bound = (server.address() as AddressInfo).port; // listening on TCP
  return {
    url: `http://${host}:${bound}`,
    port: bound,
    asked,
    async close() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
