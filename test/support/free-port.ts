import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/** Distance of a port to the one that marks it as taken. */
const MARK = 6_000;

/**
 * Returns a free loopback port that no other test gets while this process runs, also if nothing listens there. It is
 * below the ephemeral range, so that no outgoing connection has it by chance; a connection to a port in that range can
 * even reach itself.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 20_000 + MARK);
    const mark = await listening(port + MARK);
    if (!mark) continue;
    const probe = await listening(port);
    if (probe) {
      probe.close();
      await once(probe, 'close');
      mark.unref();
      return port;
    }
    mark.close();
  }
}

/** Returns `undefined` if the port is taken. */
function listening(port: number): Promise<Server | undefined> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(undefined));
    server.listen(port, '127.0.0.1', () => resolve(server));
  });
}
