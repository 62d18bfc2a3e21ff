import { describe, expect, test } from 'vitest';
import type { Access } from '../../../src/http/admission.ts';
import { createMetrics } from '../../../src/http/metrics.ts';
import { OPEN_PER_CLIENT_MAX } from '../../../src/http/password-gate.ts';
import { hashPassword } from '../../../src/http/passwords.ts';
import { LINGER_BYTES_MAX, UNWANTED_BODY_BYTES_MAX } from '../../../src/http/unwanted-body.ts';
import { Networks } from '../../../src/util/networks.ts';
import { eventually } from '../../support/eventually.ts';
import { ANN, ANN_HEADER, listening, request } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A user whose password takes long enough to check that other logins arrive meanwhile. */
const SLOW = { ...ANN, passwordHash: await hashPassword('secret') };

const wrong = (index = 0) =>
  `Authorization: Basic ${Buffer.from(`ann:wrong${index}`).toString('base64')}\r\n`;

describe('a gateway with users', () => {
  test('a request with the right password is handled with its user', async () => {
    const seen: (Access<undefined> | string | undefined)[] = [];
    const { connect } = await listening({
      users: [ANN],
      handle: async ({ url }, response, access) => {
        seen.push(url, access);
        response.end('handled');
      },
    });
    expect(await connect(request('GET', '/a?b', ANN_HEADER)).until('handled')).toContain('200 OK');
    expect(seen).toEqual(['/a?b', { user: ANN }]);
  });

  test.each(['GET', 'HEAD', 'OPTIONS', 'PROPFIND', 'UNLOCK', 'DELETE'])(
    '%s without a login answers 401 with WWW-Authenticate and keeps the connection open',
    async (method) => {
      const { connect } = await listening({ users: [ANN] });
      const connection = connect(request(method, '/%zz'));
      const answer = await connection.until('\r\n\r\n');
      expect(answer).toMatch(/^HTTP\/1\.1 401 /);
      expect(answer).toContain('\r\nWWW-Authenticate: Basic realm="davgate", charset="UTF-8"\r\n');
      expect(answer).toContain('\r\nConnection: keep-alive\r\n');
      connection.send(request('GET', '/', ANN_HEADER));
      expect(await connection.until('handled')).toContain('200 OK');
    },
  );

  test('a client with more than 64 logins to check at once gets 429 with Retry-After, and its failed logins are logged without passwords', async () => {
    const { connect, lines } = await listening({ users: [SLOW] });
    const connections = Array.from({ length: OPEN_PER_CLIENT_MAX + 1 }, (_, index) =>
      connect(request('GET', '/', wrong(index))),
    );
    // The other logins are delayed for seconds, as each was a wrong guess.
    const refusals = connections.map(async (connection) =>
      expect(await connection.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 429 [\s\S]*Retry-After: \d+\r\n/),
    );
    await Promise.any(refusals);
    const failure = { event: 'login failed', fields: { address: '127.0.0.1', user: 'ann' } };
    await eventually(() => expect(lines).toContainEqual(failure));
    expect(JSON.stringify(lines)).not.toMatch(/wrong\d|Basic/);
  });

  test('a request without a login and with a small body answers 401 and keeps the connection open', async () => {
    const { connect } = await listening({ users: [ANN] });
    const size = UNWANTED_BODY_BYTES_MAX;
    const connection = connect(request('PUT', '/a', `Content-Length: ${size}\r\n`));
    expect(await connection.until('of this davgate')).toMatch(/401 [\s\S]*Connection: keep-alive/);
    connection.send(Buffer.alloc(size));
    connection.send(request('GET', '/', ANN_HEADER));
    expect(await connection.until('handled')).toContain('200 OK');
  });

  test.each([
    ['of known length', `Content-Length: ${64 * 1024 * 1024}\r\n`, ''],
    ['in chunks', 'Transfer-Encoding: chunked\r\n', '4000000\r\n'],
  ])('a client that sends all of a large body %s before it reads gets the 401', async (_, header, first) => {
    const { connect } = await listening({ users: [ANN], clock: new ManualClock() });
    const connection = connect();
    connection.socket.pause();
    connection.send(request('PUT', '/a', header, first));
    const chunk = Buffer.alloc(1024 * 1024);
    for (let count = 0; count < 64; count++)
      await new Promise((resolve) => connection.socket.write(chunk, resolve));
    if (first !== '') connection.send('\r\n0\r\n\r\n');
    connection.socket.resume();
    const answer = await connection.closed();
    expect(answer).toMatch(/^HTTP\/1\.1 401 [\s\S]*Connection: close\r\n[\s\S]*of this davgate\.\n$/);
  });

  test('a request without a login and with an endless body is cut off', async () => {
    const { connect } = await listening({ users: [ANN] });
    const connection = connect(request('PUT', '/a', 'Transfer-Encoding: chunked\r\n'));
    const size = 16 * 1024 * 1024;
    const chunk = Buffer.concat([
      Buffer.from(`${size.toString(16)}\r\n`),
      Buffer.alloc(size),
      Buffer.from('\r\n'),
    ]);
    let isOpen = true;
    const closed = connection.closed().then(() => {
      isOpen = false;
    });
    let sentBytes = 0;
    while (isOpen) {
      await Promise.race([closed, new Promise((resolve) => connection.socket.write(chunk, resolve))]);
      sentBytes += size;
    }
    expect(sentBytes).toBeLessThan(2 * LINGER_BYTES_MAX);
  });

  test('a request without a login that sends Expect: 100-continue gets 401 without 100, and its connection is closed', async () => {
    const { connect } = await listening({ users: [ANN] });
    const header = 'Content-Length: 5\r\nExpect: 100-continue\r\n';
    const answer = await connect(request('PUT', '/a', header)).closed();
    expect(answer).toMatch(/^HTTP\/1\.1 401 [\s\S]*Connection: close\r\n/);
    expect(answer).not.toContain('100 Continue');
  });
});

describe('a gateway without users on a loopback address', () => {
  const open = () => listening({ ownNames: [] });
  const get = (host: string) => `GET /a HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

  test.each(['evil.example', 'evil.example:8765', 'localhost.evil.example', '127.0.0.1.evil.example', 'x'])(
    'a gateway without users answers 421 to the Host %s (DNS rebinding)',
    async (host) => {
      const { connect } = await open();
      const answer = await connect(get(host)).closed();
      expect(answer).toMatch(/^HTTP\/1\.1 421 /);
      expect(answer).not.toContain('handled');
      expect(answer).toContain('localhost');
    },
  );

  test.each([
    'localhost',
    'LocalHost.:8765',
    'drive.localhost',
    '127.0.0.1:8765',
    '[::1]',
    '[::1]:8765',
    '192.0.2.1',
  ])('a gateway without users answers 200 to the Host %s', async (host) => {
    const { connect } = await open();
    expect(await connect(get(host)).closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*handled/);
  });

  test('a gateway without users answers HTTP/1.0 without a Host', async () => {
    const { connect } = await open();
    expect(await connect('GET /a HTTP/1.0\r\n\r\n').closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*handled/);
  });

  test('a gateway without users answers 200 to one of its own names', async () => {
    const { connect } = await listening({ ownNames: ['drive.example'] });
    expect(await connect(get('Drive.example:8765')).closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*handled/);
  });
});

describe('paths without a login', () => {
  const metrics = createMetrics(() => 'x');
  const get = (path: string, host: string, lines = '') =>
    `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${lines}\r\n`;

  test("metrics need a login under a foreign Host (DNS rebinding), and none under the gateway's own names", async () => {
    const { connect } = await listening({ users: [ANN], metrics, ownNames: ['drive.example'] });
    const path = '/.davgate/metrics';
    expect(await connect(get(path, '127.0.0.1')).closed()).toMatch(/^HTTP\/1\.1 200 /);
    expect(await connect(get(path, 'drive.example')).closed()).toMatch(/^HTTP\/1\.1 200 /);
    expect(await connect(get(path, 'evil.example')).closed()).toMatch(/^HTTP\/1\.1 401 /);
    expect(await connect(get(path, 'evil.example', ANN_HEADER)).closed()).toMatch(/^HTTP\/1\.1 200 /);
  });

  test('metrics of a gateway without users answer 421 to a foreign Host', async () => {
    const { connect } = await listening({ metrics, ownNames: [] });
    expect(await connect(get('/.davgate/metrics', 'evil.example')).closed()).toMatch(/^HTTP\/1\.1 421 /);
  });

  describe('health', () => {
    const path = '/.davgate/healthz';
    const WHOLE = '{"journalFiles":3,"status":"ok"}';
    const BARE = '{"status":"ok"}';
    const health = () => ({ journalFiles: 3 });
    const bodyOf = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4);

    test.each([
      ['under a name of this gateway, from this machine,', 'drive.example', '', WHOLE],
      ['under an address, from this machine,', '127.0.0.1', '', WHOLE],
      ['under a service name that the gateway does not know', 'davgate', '', BARE],
      ['under a foreign name with a login', 'davgate', ANN_HEADER, WHOLE],
      ['for a proxy on this machine', '127.0.0.1', 'X-Forwarded-For: 192.0.2.1\r\n', BARE],
      ['for a proxy on this machine, with a login', '127.0.0.1', `Via: 1.1 x\r\n${ANN_HEADER}`, WHOLE],
    ])(
      'health %s answers 200 with the details only where they are allowed',
      async (_, host, lines, expected) => {
        const { connect } = await listening({ users: [ANN], health, ownNames: ['drive.example'] });
        const answer = await connect(get(path, host, lines)).closed();
        expect(answer).toMatch(/^HTTP\/1\.1 200 /);
        expect(bodyOf(answer)).toBe(expected);
      },
    );

    test('a check over HTTP/1.0 gets the status from this machine without a login, and the details with one', async () => {
      const { connect } = await listening({ users: [ANN], health });
      const check = (lines = '') => connect(`GET ${path} HTTP/1.0\r\n${lines}\r\n`).closed();
      expect(await check()).toMatch(/^HTTP\/1\.1 200 /);
      expect(bodyOf(await check())).toBe(BARE);
      expect(bodyOf(await check(ANN_HEADER))).toBe(WHOLE);
    });

    test.each([
      ['evil.example', '', BARE],
      ['evil.example', ANN_HEADER, BARE],
      ['127.0.0.1', '', WHOLE],
    ])(
      'health of a gateway without users under the Host %s with the headers %j answers %s',
      async (host, lines, expected) => {
        const { connect } = await listening({ health, ownNames: [] });
        const answer = await connect(get(path, host, lines)).closed();
        expect(answer).toMatch(/^HTTP\/1\.1 200 /);
        expect(bodyOf(answer)).toBe(expected);
      },
    );

    test('health with a wrong login answers 401', async () => {
      const { connect } = await listening({ users: [ANN], health, ownNames: [] });
      const wrong = `Authorization: Basic ${Buffer.from('ann:wrong').toString('base64')}\r\n`;
      expect(await connect(get(path, 'davgate', wrong)).closed()).toMatch(/^HTTP\/1\.1 401 /);
    });
  });
});

describe('the request log', () => {
  test('the request log has method, path, status, user and address, and neither headers nor the query', async () => {
    const { connect, lines } = await listening({
      users: [ANN],
      handle: async (message, response) => {
        for await (const _ of message);
        response.writeHead(201, []);
        response.end('12345');
      },
    });
    const header = `${ANN_HEADER}Cookie: c00kie\r\nContent-Length: 3\r\nConnection: close\r\n`;
    await connect(request('PUT', 'http://u:pw@x/a%20b?token=t0ken', header, 'abc')).closed();
    expect(lines).toEqual([
      {
        event: 'request',
        fields: {
          method: 'PUT',
          path: '/a%20b',
          status: 201,
          sentBytes: expect.any(Number),
          ms: expect.any(Number),
          user: 'ann',
          address: '127.0.0.1',
          cut: undefined,
        },
      },
    ]);
    expect(lines[0]?.fields['sentBytes']).toBeGreaterThan(5);
  });

  test("the request log takes the client's address from a trusted proxy only", async () => {
    const header = 'X-Forwarded-For: 198.51.100.9, 192.0.2.7\r\nConnection: close\r\n';
    const trusting = await listening({ trustedProxies: new Networks(['127.0.0.0/8']) });
    await trusting.connect(request('GET', '/', header)).closed();
    expect(trusting.lines[0]?.fields['address']).toBe('192.0.2.7');
    const other = await listening({ trustedProxies: new Networks(['10.0.0.0/8']) });
    await other.connect(request('GET', '/', header)).closed();
    expect(other.lines[0]?.fields['address']).toBe('127.0.0.1');
  });

  test('the request log shows the address of the connection when no proxy is trusted', async () => {
    const { connect, lines } = await listening();
    const header = 'X-Forwarded-For: 192.0.2.7\r\nForwarded: for=192.0.2.7\r\nConnection: close\r\n';
    await connect(request('GET', '/', header)).closed();
    expect(lines[0]?.fields['address']).toBe('127.0.0.1');
  });

  test('the request log marks requests that were cut off, and those refused without a login have no user', async () => {
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const { connect, lines, close } = await listening({
      users: [ANN],
      handle: (_request, response) => {
        begin();
        return new Promise((resolve) => response.once('close', resolve));
      },
    });
    await connect(request('GET', '/', 'Connection: close\r\n')).closed();
    const connection = connect(request('GET', '/slow', ANN_HEADER));
    await begun;
    connection.socket.destroy();
    await close();
    expect(
      lines.map(({ fields }) => [fields['path'], fields['status'], fields['user'], fields['cut']]),
    ).toEqual([
      ['/', 401, undefined, undefined],
      ['/slow', undefined, 'ann', true],
    ]);
  });
});
