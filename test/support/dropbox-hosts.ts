import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { makeCertificate } from './certificate.ts';

/** Host names that clients of the real service have built in (rclone 1.60, the Go SDK). */
const HOSTS = ['api.dropboxapi.com', 'content.dropboxapi.com', 'notify.dropboxapi.com'];

/** The real service's hosts on this machine, for clients whose host names are fixed. */
export interface DropboxHosts {
  /** Variables that make a child process use the proxy and trust the certificate: Go, curl and Node. */
  readonly environment: Readonly<Record<string, string>>;
  /** Address of the same TLS server, for clients with a configurable address. */
  readonly url: string;
  readonly traffic: Traffic;
  close(): Promise<void>;
}

/** The traffic since the start. */
export interface Traffic {
  /** Number of calls by function (`files/upload`), or by path outside of /2/. */
  readonly calls: Map<string, number>;
  /** Number of calls that were not refused with 429. Clients repeat the refused ones. */
  readonly acceptedCalls: Map<string, number>;
  /** Number of answers with status 429. */
  refusedCount: number;
  receivedBytes: number;
}

/**
 * Starts a CONNECT proxy that connects port 443 of the hosts, and nothing else, to the service at `serviceUrl`
 * over its own TLS. Bytes pass unchanged.
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

/**
 * Forwards bytes both ways. A request begins in a chunk of its own, because no client sends one before the
 * last is answered.
 */
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
    // 'close' follows an error, and the other side then sends its remaining bytes.
    one.on('error', () => undefined);
    one.on('close', () => other.destroySoon());
  }
}
