import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { request as send } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { PROJECT_ROOT } from './build.ts';

/** A reverse proxy that serves https and names the client's host and protocol in headers. */
export interface TlsProxy {
  /** Returns the https address of a page of the program. */
  url(address: string): string;
  stop(): Promise<void>;
}

export async function startTlsProxy(upstream: string): Promise<TlsProxy> {
  const certificates = join(PROJECT_ROOT, 'test/support/certificates');
  const [cert, key] = await Promise.all(
    ['one.pem', 'one.key'].map((name) => readFile(join(certificates, name))),
  );
  const server = createServer({ cert, key }, (incoming, outgoing) => {
    const { method, url = '', headers } = incoming;
    const forwarded = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': headers.host,
      'x-forwarded-for': '127.0.0.1',
    };
    const { host: _, ...others } = headers;
    const asked = send(new URL(url, upstream), { method, headers: { ...others, ...forwarded } });
    asked.on('response', (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    // A browser that goes away ends the stream of changes.
    outgoing.on('close', () => asked.destroy());
    asked.on('error', () => outgoing.destroy());
    incoming.pipe(asked);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo; // a port is an AddressInfo
  return {
    url: (address) => address.replace(/^http:\/\/[^/]*/, `https://127.0.0.1:${port}`),
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
