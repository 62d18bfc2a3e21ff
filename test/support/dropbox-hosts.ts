import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { makeCertificate } from './certificate.ts';

/** The names that clients of the real service have built in (rclone 1.60, the Go SDK). */
const HOSTS = ['api.dropboxapi.com', 'content.dropboxapi.com', 'notify.dropboxapi.com'];

/** The real service's hosts, played on this machine for clients that cannot be given another address. */
export interface DropboxHosts {
  /** Makes a child process go through the proxy and trust the certificate: Go, curl and Node. */
  readonly environment: Readonly<Record<string, string>>;
  /** The same service for a client that takes any address, over the same TLS. */
  readonly url: string;
  readonly traffic: Traffic;
  close(): Promise<void>;
}

/** What has passed since the start. */
export interface Traffic {
  /** Calls by function (`files/upload`); what is not below /2/ by its path. */
  readonly calls: Map<string, number>;
  /** Answers with status 429. */
  refusedCount: number;
  receivedBytes: number;
}

/**
 * A CONNECT proxy that leads the hosts' port 443, and nothing else, to the service at `serviceUrl`, with TLS of its
 * own in front. Bytes pass unchanged.
 */
export async function playDropboxHosts(serviceUrl: string): Promise<DropboxHosts> {
  const { key, cert, file, remove } = await makeCertificate([...HOSTS, 'localhost'], '127.0.0.1');
  const traffic: Traffic = { calls: new Map(), refusedCount: 0, receivedBytes: 0 };
  const sockets = new Set<Socket>();
  const { port, hostname } = new URL(serviceUrl);

  const front = createTlsServer({ key, cert, ALPNProtocols: ['http/1.1'] });
  front.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  front.on('tlsClientError', (_error, socket) => socket.destroy());
  front.on('secureConnection', (client) => pass(client, connect(Number(port), hostname), traffic));

  const proxy = createServer((_request, response) => response.writeHead(405).end('CONNECT is all there is.'));
  proxy.on('connect', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    if (!HOSTS.some((host) => request.url === `${host}:443`))
      return void socket.end('HTTP/1.1 403 Forbidden\r\n\r\n');
    socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
    if (head.length > 0) socket.unshift(head);
    front.emit('connection', socket);
  });

  await Promise.all([front, proxy].map((server) => once(server.listen(0, '127.0.0.1'), 'listening')));
  return {
    environment: {
      HTTPS_PROXY: `http://127.0.0.1:${portOf(proxy)}`,
      SSL_CERT_FILE: file,
      NODE_EXTRA_CA_CERTS: file,
    },
    url: `https://127.0.0.1:${portOf(front)}`,
    traffic,
    async close() {
      const closed = [front, proxy].map((server) => once(server.close(), 'close'));
      for (const socket of sockets) socket.destroy();
      await Promise.all([...closed, remove()]);
    },
  };
}

function portOf(server: { address(): AddressInfo | string | null }): number {
  return (server.address() as AddressInfo).port; // it listens on TCP
}

/** Hands bytes on both ways. A request begins in a chunk of its own: no client sends one before the last is answered. */
function pass(client: Socket, service: Socket, traffic: Traffic): void {
  client.on('data', (chunk: Buffer) => {
    const line = /^(?:POST|GET|OPTIONS) (?:\/2)?\/([^ ?]+)/.exec(chunk.toString('latin1', 0, 200));
    if (line?.[1]) traffic.calls.set(line[1], (traffic.calls.get(line[1]) ?? 0) + 1);
  });
  service.on('data', (chunk: Buffer) => {
    traffic.receivedBytes += chunk.length;
    if (chunk.toString('latin1', 0, 12) === 'HTTP/1.1 429') traffic.refusedCount++;
  });
  client.pipe(service).pipe(client);
  for (const [one, other] of [
    [client, service],
    [service, client],
  ] as const) {
    // A broken line closes too, and then the other side may still send what it has.
    one.on('error', () => undefined);
    one.on('close', () => other.destroySoon());
  }
}
