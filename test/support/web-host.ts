import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A web server that files are fetched from. */
export interface WebHost {
  /** Without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** The targets that were asked for so far. */
  readonly asked: readonly string[];
  close(): Promise<void>;
}

/** Starts one that answers by `answers`, on a loopback address. */
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
