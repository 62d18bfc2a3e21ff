import { describe, expect, test } from 'vitest';
import { HEADER_FIELDS_MAX } from '../../../src/http/malformed.ts';
import { eventually } from '../../support/eventually.ts';
import { listening, request } from '../../support/listening.ts';

describe('what is no proper request', () => {
  test.each([
    ['no HTTP at all', '\x16\x03\x01\x02\x00\x01\r\n\r\n', 400],
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
    ['another coding', request('PUT', '/', 'Transfer-Encoding: gzip, chunked\r\n', '0\r\n\r\n'), 501],
    ['chunks in HTTP/1.0', 'PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n', 400],
    ['a flood of headers', request('GET', '/', 'X-A: a\r\n'.repeat(HEADER_FIELDS_MAX)), 431],
    ['a tunnel', 'CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n', 405],
  ])('%s is refused and never handled', async (_, text, status) => {
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
    // It says why, in more words than the status line has.
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    expect(body.trim().split(' ').length, body).toBeGreaterThan(4);
    expect(head).not.toContain(body.trim());
    expect(handled).toBe(0);
    expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('handled');
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

  test('a broken chunk behind a request that still runs is answered after that one', async () => {
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

  test('a broken chunk ends the body with an error, never as if it were whole', async () => {
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

  test('nothing is put into the middle of an answer', async () => {
    const { connect } = await listening({
      handle: async (message, response) => {
        response.writeHead(200, { 'Content-Length': 100 }).write('begun');
        for await (const _ of message);
      },
    });
    const connection = connect(request('PUT', '/', 'Transfer-Encoding: chunked\r\n'));
    await connection.until('begun');
    connection.send('xyz\r\n');
    expect(await connection.closed()).toMatch(/\r\n\r\nbegun$/);
  });

  test('what follows the last request of a connection does not disturb its answer', async () => {
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

  test('what is no request behind a good one is answered after it', async () => {
    const { connect } = await listening();
    const answer = await connect(`${request('GET', '/')}no request\r\n\r\n`).closed();
    expect(answer.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 400']);
  });

  test('a wish for another protocol is not granted', async () => {
    const { connect } = await listening();
    const header = 'Connection: Upgrade, close\r\nUpgrade: websocket\r\nSec-WebSocket-Key: AAAA\r\n';
    expect(await connect(request('GET', '/', header)).closed()).toMatch(/^HTTP\/1\.1 200 [\s\S]*handled$/);
  });

  test('an unknown expectation is refused', async () => {
    const { connect } = await listening();
    const connection = connect(request('PUT', '/', 'Expect: coffee\r\nContent-Length: 0\r\n'));
    expect(await connection.until('\r\n\r\n')).toMatch(/^HTTP\/1\.1 417 /);
  });
});

describe('ordinary requests', () => {
  test('HTTP/1.0 is answered and its connection closed', async () => {
    const { connect } = await listening();
    expect(await connect('GET / HTTP/1.0\r\n\r\n').closed()).toMatch(/200 OK[\s\S]*handled$/);
  });

  test('a handler that reads gives leave to send; one that refuses does not', async () => {
    const { connect } = await listening({
      handle: async (message, response) => {
        if (message.url === '/refused') return void response.writeHead(412).end();
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

  test('a handler that fails is a 500 without its reasons, which the log has', async () => {
    const { connect, lines } = await listening({
      handle: async (_message, response) => {
        response.setHeader('ETag', '"x"');
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

  test('a handler that fails in the middle of its answer leaves it unfinished', async () => {
    const { connect } = await listening({
      handle: async (_message, response) => {
        response.write('part');
        throw new Error('broken');
      },
    });
    const answer = await connect(request('GET', '/', 'Connection: close\r\n')).closed();
    // The last chunk, "0", is what would make it look whole.
    expect(answer).not.toMatch(/\r\n0\r\n\r\n$/);
  });
});
