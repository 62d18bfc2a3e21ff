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

/** The traffic since the start. */
export interface Traffic {
  /** Calls by function (`files/upload`); requests outside of /2/ by their path. */
  readonly calls: Map<string, number>;
  /** The calls that were not refused with 429. On a busy machine the service refuses some, and clients send them again. */
  readonly acceptedCalls: Map<string, number>;
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
  const traffic: Traffic = { calls: new Map(), acceptedCalls: new Map(), refusedCount: 0, receivedBytes: 0 };
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

function count(calls: Map<string, number>, name: string): void {
  calls.set(name, (calls.get(name) ?? 0) + 1);
}

/** Hands bytes on both ways. A request begins in a chunk of its own: no client sends one before the last is answered. */
function pass(client: Socket, service: Socket, traffic: Traffic): void {
  let pending: string | undefined;
  client.on('data', (chunk: Buffer) => {
    const line = /^(?:POST|GET|OPTIONS) (?:\/2)?\/([^ ?]+)/.exec(chunk.toString('latin1', 0, 200));
    if (!line?.[1]) return;
    pending = line[1];
    count(traffic.calls, pending);
  });
  service.on('data', (chunk: Buffer) => {
    traffic.receivedBytes += chunk.length;
    const isRefused = chunk.toString('latin1', 0, 12) === 'HTTP/1.1 429';
    if (isRefused) traffic.refusedCount++;
    else if (pending !== undefined) count(traffic.acceptedCalls, pending);
    pending = undefined;
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
