import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { passedOn } from './passed-on.ts';

export interface RoundRobin {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a proxy that passes each request, even of one connection, on to another of `targets` than the one before. */
export async function startRoundRobin(targets: readonly string[]): Promise<RoundRobin> {
  let count = 0;
  const server = createServer((request, response) => {
    const target = targets[count++ % targets.length] ?? '';
    // A request that waits for `100 Continue` gets it here.
    passedOn(request, target)
      .then(async (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        await pipeline(answer, response);
      })
      .catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
