import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** A TCP address at which clients find the PostgreSQL of the moment. */
export interface PostgresForwarder {
  /** Returns the URL of a database with the address of the forwarder. */
  through(url: string): string;
  /** Ends all connections, and forwards later ones to another port; `undefined` refuses them. */
  switchTo(port: number | undefined): void;
  close(): Promise<void>;
}

/** Starts a forwarder to a loopback port. */
export async function startPostgresForwarder(port: number): Promise<PostgresForwarder> {
  let target: number | undefined = port;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const { server, sides } = joined(client, target);
    for (const side of sides) {
      sockets.add(side);
      side.on('error', () => undefined);
      side.on('close', () => {
        sockets.delete(side);
        for (const one of sides) one.destroy();
      });
    }
    if (!server) return void client.destroy();
    client.pipe(server).pipe(client);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const own = (server.address() as AddressInfo).port;
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    through(url) {
      const changed = new URL(url);
      changed.port = String(own);
      return changed.href;
    },
    switchTo(next) {
      target = next;
      cut();
    },
    async close() {
      server.close();
      cut();
      await once(server, 'close');
    },
  };
}

function joined(client: Socket, target: number | undefined) {
  const server = target === undefined ? undefined : connect(target, '127.0.0.1');
  return { server, sides: server ? [client, server] : [client] };
}
