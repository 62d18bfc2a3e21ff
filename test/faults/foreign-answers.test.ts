import { once } from 'node:events';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';

interface Page {
  readonly status: number;
  readonly text: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** An HTTP proxy that can answer with a page of its own instead of the service, as a captive portal does. */
class Middlebox {
  /** The page to answer with instead of the service, if any. */
  page: Page | undefined;

  private constructor(
    private readonly server: Server,
    private readonly target: URL,
  ) {
    server.on('request', (incoming, outgoing) => {
      const { page } = this;
      if (page) {
        incoming.resume();
        outgoing.writeHead(page.status, { 'content-type': 'text/html', ...page.headers });
        outgoing.end(page.text);
        return;
      }
      const { hostname, port } = this.target;
      const passed = httpRequest(
        { hostname, port, method: incoming.method, path: incoming.url, headers: incoming.headers },
        (answer) => {
          outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(outgoing);
          answer.on('error', () => outgoing.destroy());
        },
      );
      passed.on('error', () => outgoing.destroy());
      outgoing.on('close', () => passed.destroy());
      incoming.pipe(passed);
    });
  }

  static async before(url: string): Promise<Middlebox> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new Middlebox(server, new URL(url));
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }
}

let service: TestService;
let middlebox: Middlebox;
let gateway: TestGateway;
let client: GatewayClient;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

beforeEach(async () => {
  middlebox = await Middlebox.before(service.url);
  gateway = await startTestGateway({ service: { ...service, url: middlebox.url }, writeBack: true });
  client = new GatewayClient(gateway.url);
});

afterEach(async () => {
  client.close();
  await gateway.close();
  middlebox.close();
});

test.each<[string, Page]>([
  ['403 with a page', { status: 403, text: '<html>blocked</html>' }],
  ['404 in plain text', { status: 404, text: 'not found' }],
  ['a redirect', { status: 302, text: '', headers: { location: 'http://portal.example/' } }],
  ['418', { status: 418, text: 'short and stout' }],
])(
  'a write that a middlebox answers with %s waits in the journal, is shown meanwhile, and lands afterwards',
  async (_what, page) => {
    const path = `/${page.status}.txt`;
    expect((await client.send('PUT', path, { body: Buffer.from('v1') })).status).toBe(201);
    await gateway.landed();
    middlebox.page = page;
    expect((await client.send('PUT', path, { body: Buffer.from('v2') })).status).toBe(204);
    await eventually(() => expect(gateway.depth()).toMatchObject({ files: 1, trouble: 'intercepted' }));
    expect((await client.send('GET', path)).body.toString()).toBe('v2');
    expect((await client.send('GET', '/unknown folder/file')).status).toBe(503);
    middlebox.page = undefined;
    await gateway.landed();
    expect(gateway.depth()).toEqual({ files: 0, bytes: 0, lostFiles: 0 });
    expect((await client.send('GET', path)).body.toString()).toBe('v2');
  },
);
