import { describe, expect, test } from 'vitest';
import { HEADER_FIELDS_MAX } from '../../../src/http/server.ts';
import { eventually } from '../../support/eventually.ts';
import { listening, request } from '../../support/listening.ts';

describe('malformed requests', () => {
  test.each([
    ['no HTTP in it', '\x16\x03\x01\x02\x00\x01\r\n\r\n', 400],
    ['an unknown version', 'GET / HTTP/9.9\r\nHost: x\r\n\r\n', 400],
    ['no host', 'GET / HTTP/1.1\r\n\r\n', 400],
    ['two hosts', request('GET', '/', 'host: y\r\n'), 400],
    ['a space in the target', request('GET', '/a b'), 400],
    ['a line end in the target', 'GET /\n/ HTTP/1.1\r\nHost: x\r\n\r\n', 400],
    ['a NUL in a header', request('GET', '/', 'X-A: a\0b\r\n'), 400],
    ['a header without a colon', request('GET', '/', 'X-A\r\n'), 400],
    [
      'a header that goes on in the next line',
      request('PUT', '/', 'Content-Length:\r\n 5\r\n', '12345'),
      400,
    ],
    ['a space before the colon', request('PUT', '/', 'Transfer-Encoding : chunked\r\n', '0\r\n\r\n'), 400],
    [
      'a length and chunks',
      request('PUT', '/', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'),
      400,
    ],
    [
      'chunks and a length',
      request('PUT', '/', 'Transfer-Encoding: chunked\r\nContent-Length: 5\r\n', '0\r\n\r\n'),
      400,
    ],
    ['two lengths', request('PUT', '/', 'Content-Length: 5\r\nContent-Length: 6\r\n', '123456'), 400],
    ['a list of lengths', request('PUT', '/', 'Content-Length: 5, 5\r\n', '12345'), 400],
    ['a length with a sign', request('PUT', '/', 'Content-Length: +5\r\n', '12345'), 400],
    ['a negative length', request('PUT', '/', 'Content-Length: -1\r\n'), 400],
    [
      'chunks that are not the last coding',
      request('PUT', '/', 'Transfer-Encoding: chunked, x\r\n', '0\r\n\r\n'),
      400,
    ],
    [
      'another transfer coding',
      request('PUT', '/', 'Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'),
      501,
    ],
    ['chunks in HTTP/1.0', 'PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
    ['a flood of headers', request('GET', '/', 'X-A: a\r\n'.repeat(HEADER_FIELDS_MAX)), 431],
    ['the method CONNECT', 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n', 405],
  ])(
    'a request with %s is refused with a reason, closes the connection and is never handled',
    async (_, text, status) => {
      let handled = 0;
      const { connect, port } = await listening({
        handle: async (_request, response) => {
          handled += 1;
          response.end('handled');
        },
      });
      const answer = await connect(`${text}${request('DELETE', '/smuggled')}`).closed();
      expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
      expect(answer).toMatch(/\r\nConnection: close\r\n/);
      // The body explains the refusal in more words than the status line.
      const [head = '', body = ''] = answer.split('\r\n\r\n');
      expect(body.trim().split(' ').length, body).toBeGreaterThan(4);
      expect(head).not.toContain(body.trim());
      expect(handled).toBe(0);
      expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('handled');
    },
  );

  test('a path with bytes beyond ASCII is redirected to its percent-encoded form with the same method', async () => {
    const { connect } = await listening();
    const target = Buffer.from('/käse/50%25?von=ä').toString('latin1');
    const put = request('PUT', target, 'Content-Length: 3\r\n', 'abc');
    const answer = await connect(put).closed();
    expect(answer).toMatch(/^HTTP\/1\.1 308 Permanent Redirect\r\n/);
    expect(answer).toContain('\r\nLocation: /k%C3%A4se/50%25?von=%C3%A4\r\n');
    expect(answer).toContain('\r\nConnection: close\r\n');
    expect(answer).not.toContain('handled');
  });

  test.each([
    ['begins with two slashes', '//example.org/\xe4'],
    ['begins with a slash and a backslash', '/\\example.org/\xe4'],
    ['contains a control character', '/\x01\xe4'],
    ['contains a fragment', '/a#\xe4'],
    ['is a URL', 'http://example.org/\xe4'],
  ])('a path with bytes beyond ASCII that %s is refused without a redirect', async (_, target) => {
    const { connect } = await listening();
    const answer = await connect(request('GET', target)).closed();
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).not.toContain('Location');
  });

  test.each([
    ['a space in its target', request('HEAD', '/a b'), 400],
    ['a space in its target, behind a good request', request('GET', '/') + request('HEAD', '/a b'), 400],
    ['a NUL in a header', request('HEAD', '/', 'X-A: a\0b\r\n'), 400],
    ['a header of 65 KiB', request('HEAD', '/', `X-A: ${'a'.repeat(65 * 1024)}\r\n`), 431],
    ['a target of 65 KiB', request('HEAD', `/${'a'.repeat(65 * 1024)}`), 431],
    ['no host', 'HEAD / HTTP/1.1\r\n\r\n', 400],
  ])('HEAD with %s is refused without a body', async (_, text, status) => {
    const { connect } = await listening();
    const answer = await connect(text).closed();
    const refusal = answer.slice(answer.lastIndexOf('HTTP/1.1 '));
    expect(refusal).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(refusal).toContain('Connection: close\r\n');
    expect(refusal).toMatch(/\r\n\r\n$/);
  });

  test.each([
    ['header', request('GET', '/', `X-A: ${'a'.repeat(65 * 1024)}\r\n`)],
    ['target', request('GET', `/${'a'.repeat(65 * 1024)}`)],
  ])('a %s of 65 KiB is refused and never handled', async (_, text) => {
    const { connect } = await listening();
    const answer = await connect(`${text}${request('DELETE', '/smuggled')}`).closed();
    expect(answer.match(/HTTP\/1\.1 \d+|handled/g)).toEqual(['HTTP/1.1 431']);
  });

  test('a malformed chunk in a pipelined request is answered with 400 after the running request before it', async () => {
    let release = (): void => undefined;
    const released = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { connect, lines } = await listening({
      handle: async ({ url }, response) => {
        if (url === '/broken') return;
        await released;
        response.end('handled');
      },
    });
    const chunked = request('PUT', '/broken', 'Transfer-Encoding: chunked\r\n', 'xyz\r\n');
    const connection = connect(request('GET', '/') + chunked);
    await eventually(() => expect(lines.map(({ event }) => event)).toContain('malformed request'));
    release();
    expect((await connection.closed()).match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  test('a malformed chunk ends the request body with an error and answers 400', async () => {
    let outcome: unknown;
    const { connect, close } = await listening({
      handle: async (message) => {
        try {
          for await (const _ of message);
          outcome = 'whole';
        } catch (error) {
          outcome = error;
        }
      },
    });
    const connection = connect(request('PUT', '/', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\nxyz\r\n'));
    expect(await connection.closed()).toMatch(/^HTTP\/1\.1 400 /);
    await close();
    expect(outcome).toBeInstanceOf(Error);
  });

  test('a malformed chunk during an answer adds nothing to the answer', async () => {
    const { connect } = await listening({
      handle: async (message, response) => {
        response.writeHead(200, ['Content-Length', 100]);
        response.write('begun');
        for await (const _ of message);
      },
    });
    const connection = connect(request('PUT', '/', 'Transfer-Encoding: chunked\r\n'));
    await connection.until('begun');
    connection.send('xyz\r\n');
    expect(await connection.closed()).toMatch(/\r\n\r\nbegun$/);
  });

  test('bytes after the last request of a connection do not disturb its answer', async () => {
    let release = (): void => undefined;
    const { connect } = await listening({
      handle: (_message, response) =>
        new Promise((resolve) => {
          release = () => {
            response.end('handled');
            resolve();
          };
          begin();
        }),
    });
    let begin = (): void => undefined;
    const begun = new Promise<void>((resolve) => {
      begin = resolve;
    });
    const connection = connect(request('GET', '/', 'Connection: close\r\n', 'and some more\r\n'));
    await begun;
    release();
    expect(await connection.closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*\r\n\r\nhandled$/);
  });

  test('malformed bytes after a request are answered with 400 after its answer', async () => {
    const { connect } = await listening();
    const answer = await connect(`${request('GET', '/')}no request\r\n\r\n`).closed();
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  test('a request to upgrade to another protocol is answered as an ordinary request', async () => {
    const { connect } = await listening();
    const header = 'Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n';
    expect(await connect(request('GET', '/', header)).closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*handled$/);
  });

  test('a request with an unknown Expect header answers 417', async () => {
    const { connect } = await listening();
    const connection = connect(request('PUT', '/', 'Expect: coffee\r\nContent-Length: 0\r\n'));
    expect(await connection.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 417 /);
  });
});

describe('ordinary requests', () => {
  test('a request in HTTP/1.0 is answered and its connection closed', async () => {
    const { connect } = await listening();
    expect(await connect('GET / HTTP/1.0\r\n\r\n').closed()).toMatch(/200 OK[\s\S]*handled$/);
  });

  test('a handler that reads the body sends 100 Continue, and one that refuses it sends none and closes the connection', async () => {
    const { connect } = await listening({
      handle: async (message, response) => {
        if (message.url === '/refused') {
          response.writeHead(412, []);
          return void response.end();
        }
        let body = '';
        for await (const chunk of message) body += chunk;
        response.end(`got ${body}`);
      },
    });
    const header = 'Content-Length: 5\r\nExpect: 100-continue\r\n';
    const connection = connect(request('PUT', '/', header));
    expect(await connection.until('\r\n\r\n')).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    connection.send('12345');
    expect(await connection.until('got 12345')).toContain('Connection: keep-alive');
    connection.send(request('PUT', '/refused', header));
    const answers = await connection.closed();
    expect(answers.slice(answers.indexOf('got 12345'))).toMatch(
      /^got 12345HTTP\/1\.1 412 [\s\S]*Connection: close\r\n/,
    );
  });

  test('a handler that throws answers 500 without its headers or its reason, and the reason is logged', async () => {
    const { connect, lines } = await listening({
      handle: async (_message, _response, _access, exchange) => {
        exchange.setHeader('ETag', '"x"');
        throw new Error('inner reasons');
      },
    });
    const answer = await connect(
      request('PUT', '/', 'Content-Length: 1\r\nConnection: close\r\n', 'a'),
    ).closed();
    expect(answer).toMatch(/^HTTP\/1\.1 500 /);
    expect(answer).not.toMatch(/inner reasons|ETag/);
    expect(lines.map(({ fields }) => fields['error'])).toContain('Error: inner reasons');
  });

  test('a handler that throws in the middle of a chunked answer leaves the answer unfinished', async () => {
    const { connect } = await listening({
      handle: async (_message, response) => {
        response.write('part');
        throw new Error('broken');
      },
    });
    const answer = await connect(request('GET', '/', 'Connection: close\r\n')).closed();
    // The last chunk, "0", would mark the answer as complete.
    expect(answer).not.toMatch(/\r\n0\r\n\r\n$/);
  });
});
