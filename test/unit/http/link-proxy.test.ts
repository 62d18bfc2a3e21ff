import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLinkProxy } from '../../../src/http/link-proxy.ts';
import { silentLog } from '../../../src/util/log.ts';
import { expectSoon } from '../../support/eventually.ts';
import { ANN, ANN_HEADER, listening, request } from '../../support/listening.ts';

// The gateway in front of a service that the test implements.

const asked: IncomingMessage[] = [];
let answer: (message: IncomingMessage, response: ServerResponse) => unknown;
let service: ReturnType<typeof createServer>;

beforeEach(async () => {
  asked.length = 0;
  answer = (_message, response) => void response.end('the page');
  service = createServer((message, response) => {
    asked.push(message);
    void answer(message, response);
  });
  await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
});
afterEach(async () => {
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
});

function gateway() {
  const { port } = service.address() as AddressInfo;
  return listening({ users: [ANN], openRoute: createLinkProxy(`http://127.0.0.1:${port}`, silentLog) });
}

const LINK = '/.davgate/scl/fi/token/name%20%C3%BC.txt?rlkey=key&dl=0';

test('a shared link is requested from the service with its path and query unchanged', async () => {
  const { connect } = await gateway();
  expect(await connect(request('GET', LINK)).until('the page')).toMatch(/^HTTP\/1\.1 200 /);
  expect(asked.map(({ method, url }) => [method, url])).toEqual([['GET', LINK.slice('/.davgate'.length)]]);
  await connect(request('GET', 'http://any.example/.davgate/embed?link=x')).until('the page');
  expect(asked[1]?.url).toBe('/embed?link=x');
});

test('the service gets neither the login of the drive nor cookies that do not belong to links', async () => {
  const { connect } = await gateway();
  const lines = `${ANN_HEADER}Cookie: session=s; link-abc=pass; other=o\r\nRange: bytes=1-2\r\nX-Forwarded-For: 10.0.0.1\r\n`;
  await connect(request('GET', LINK, lines)).until('the page');
  const { host: _, ...headers } = asked[0]?.headers ?? {};
  expect(headers).toEqual({
    cookie: 'link-abc=pass',
    range: 'bytes=1-2',
    connection: 'close',
    // The client's real address, so that the service counts password guesses by address.
    'x-forwarded-for': '127.0.0.1',
    'x-forwarded-proto': 'http',
  });
});

test('a cross-site request for an embed script is answered without Cross-Origin-Resource-Policy', async () => {
  const { connect } = await gateway();
  const lines = 'Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: script\r\n';
  const answered = await connect(request('GET', '/.davgate/embed.js', lines)).until('the page');
  expect(answered).toMatch(/^HTTP\/1\.1 200 /);
  expect(answered).not.toContain('Resource-Policy');
});

test("the answer to a shared link has the service's status, body, policies and cookies, but not its request id", async () => {
  answer = (_message, response) =>
    void response
      .writeHead(206, {
        'content-length': 5,
        'content-range': 'bytes 0-4/9',
        'content-security-policy': 'sandbox',
        'set-cookie': ['link-a=1', 'link-b=2'],
        'x-dropbox-request-id': 'f'.repeat(32),
        'keep-alive': 'timeout=75',
      })
      .end('bytes');
  const { url } = await gateway();
  const answered = await fetch(url.slice(0, -1) + LINK);
  expect([answered.status, await answered.text()]).toEqual([206, 'bytes']);
  expect(answered.headers.getSetCookie()).toEqual(['link-a=1', 'link-b=2']);
  expect(answered.headers.get('content-security-policy')).toBe('sandbox');
  expect(answered.headers.get('content-range')).toBe('bytes 0-4/9');
  expect(answered.headers.get('x-dropbox-request-id')).toBeNull();
});

test('an answer that the service cuts off is cut off at the client', async () => {
  answer = (_message, response) => {
    response.writeHead(200, { 'content-length': 1000 });
    response.write('the beginning', () => response.destroy());
  };
  const { url } = await gateway();
  await expect(fetch(url.slice(0, -1) + LINK).then((answered) => answered.text())).rejects.toThrow();
});

test('a request for a shared link at the service ends when its client disconnects', async () => {
  let gone = false;
  answer = (message, response) => {
    message.socket.once('close', () => {
      gone = true;
    });
    response.writeHead(200, { 'content-length': 1000 }).write('the beginning');
  };
  const { connect, close, lines } = await gateway();
  const connection = connect(request('GET', LINK));
  await connection.until('the beginning');
  connection.socket.destroy();
  await expectSoon(() => gone).toBe(true);
  await close();
  expect(lines.map(({ event }) => event)).not.toContain('internal error');
});

test('a shared link answers 502 and says to try again while the service does not answer', async () => {
  const { url } = await gateway();
  service.closeAllConnections();
  await new Promise((resolve) => service.close(resolve));
  const answered = await fetch(url.slice(0, -1) + LINK);
  expect([answered.status, await answered.text()]).toEqual([
    502,
    'The storage service does not answer; try again later.\n',
  ]);
});

test('a password form for a shared link is passed on, and a body of 20,000 bytes answers 413 without a call', async () => {
  const { connect } = await gateway();
  let form = '';
  answer = async (message, response) => {
    for await (const chunk of message) form += chunk;
    response.writeHead(303, { location: '?rlkey=key' }).end();
  };
  const typed = 'Content-Type: application/x-www-form-urlencoded\r\n';
  const body = 'password=open';
  const post = request('POST', LINK, `${typed}Content-Length: ${body.length}\r\n`, body);
  expect(await connect(post).until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 303 [\s\S]*location: \?rlkey=key/i);
  expect([form, asked[0]?.headers['content-type']]).toEqual([body, 'application/x-www-form-urlencoded']);
  const long = request('POST', LINK, `${typed}Content-Length: 20000\r\n`, 'p'.repeat(20_000));
  expect(await connect(long).until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 413 /);
  expect(asked).toHaveLength(1);
});

test.each(['/scl/../2/files/list_folder', '/scl/%2e%2e/2/x', '/scl/..\\2\\x', '/scl/./fi/x'])(
  'the target %s reaches the service as it is, which has no such link, and not as the path that a URL would make of it',
  async (target) => {
    const { connect } = await gateway();
    await connect(request('GET', `/.davgate${target}`)).until('the page');
    expect(asked.map(({ url }) => url)).toEqual([target]);
  },
);

test.each([
  ['GET', '/.davgate/2/files/list_folder'],
  ['GET', '/.davgate/scl'],
  ['GET', '/.davgate/embed/x'],
  ['GET', '/.Davgate/scl/x'],
  ['GET', '//.davgate/scl/x'],
  ['GET', '/%2Edavgate/scl/x'],
  ['GET', '/.davgate//scl/x'],
  ['GET', '/.davgatescl/x'],
  ['PROPFIND', '/.davgate/scl/x'],
  ['OPTIONS', '/.davgate/embed.js'],
])('%s %s is not passed on to the service and answers 401 without a login', async (method, target) => {
  const { connect } = await gateway();
  expect(await connect(request(method, target)).until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 401 /);
  expect(asked).toEqual([]);
});
