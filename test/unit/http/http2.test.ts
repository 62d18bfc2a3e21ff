import { once } from 'node:events';
import type { IncomingHttpHeaders } from 'node:http';
import { request as requestTls } from 'node:https';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { connect as connectTls } from 'node:tls';
import { describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/http/metrics.ts';
import { elapsedMs } from '../../../src/util/clock.ts';
import { Networks } from '../../../src/util/networks.ts';
import { eventually } from '../../support/eventually.ts';
import { parseExposition } from '../../support/exposition.ts';
import {
  answerOf,
  connectFrames,
  counted,
  frame,
  Http2Client,
  ok,
  POST,
  POST_FIELDS,
  serving,
  waiting,
} from '../../support/http2.ts';
import { ANN } from '../../support/listening.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const ANN_LOGIN = { authorization: `Basic ${Buffer.from('ann:secret').toString('base64')}` };
const CANCEL = 8;
const INTERNAL_ERROR = 2;
const MIB = 1024 * 1024;

/** Timeouts that end no connection, and of whose checks the manual clock takes no notice. */
const DAY_MS = 24 * 3_600_000;
const PATIENT = {
  ...{ headersTimeoutMs: DAY_MS, keepAliveTimeoutMs: DAY_MS },
  ...{ bodyIdleTimeoutMs: DAY_MS, answerIdleTimeoutMs: DAY_MS },
};

describe('the version', () => {
  const agreed = async (port: number, ALPNProtocols?: string[]) => {
    const socket = connectTls({
      port,
      host: '127.0.0.1',
      rejectUnauthorized: false,
      ...(ALPNProtocols && { ALPNProtocols }),
    });
    await once(socket, 'secureConnect');
    socket.destroy();
    return socket.alpnProtocol;
  };

  test('a client that offers h2 in the TLS handshake gets HTTP/2, and all others get HTTP/1.1', async () => {
    const { port, url } = await serving(ok);
    expect(await agreed(port, ['http/1.1', 'h2'])).toBe('h2');
    expect(await agreed(port, ['http/1.1'])).toBe('http/1.1');
    expect(await agreed(port)).toBe(false);
    expect(await new Http2Client(url).send('GET', '/')).toMatchObject({
      status: 200,
      text: 'handled',
      code: 0,
    });
    const [answer] = await once(
      requestTls(url, { rejectUnauthorized: false, agent: false }).end(),
      'response',
    );
    expect([answer.httpVersion, await text(answer)]).toEqual(['1.1', 'handled']);
  });

  test('without HTTP/2 a client that offers both gets HTTP/1.1', async () => {
    const { port } = await serving(ok, { hasHttp2: false });
    expect(await agreed(port, ['h2', 'http/1.1'])).toBe('http/1.1');
  });
});

describe('requests over HTTP/2', () => {
  test('a request without a valid login answers 401, and one with it is admitted and logged', async () => {
    const { url, lines } = await serving(ok, { users: [ANN] });
    const client = new Http2Client(url);
    const refused = await client.send('PROPFIND', '/a');
    expect(refused).toMatchObject({ status: 401, headers: { 'www-authenticate': expect.any(String) } });
    expect((await client.send('PROPFIND', '/a', ANN_LOGIN)).status).toBe(200);
    await eventually(() => expect(lines).toHaveLength(2));
    expect(lines.at(-1)).toEqual({
      event: 'request',
      fields: {
        ...{ method: 'PROPFIND', path: '/a', status: 200, sentBytes: 7, ms: expect.any(Number) },
        ...{ user: 'ann', address: '127.0.0.1', cut: undefined },
      },
    });
  });

  test('an answer has lower-case names and none of the fields about a connection of HTTP/1.1', async () => {
    const { url } = await serving((exchange) =>
      exchange.answer({ status: 207, headers: { ETag: '"x"', 'Set-Cookie': ['a=1', 'b=2'] }, body: 'x' }),
    );
    const { headers } = await new Http2Client(url).send('GET', '/');
    expect(headers).toMatchObject({
      ':status': 207,
      etag: '"x"',
      'set-cookie': ['a=1', 'b=2'],
      'content-length': '1',
    });
    for (const name of ['connection', 'keep-alive', 'transfer-encoding', 'upgrade'])
      expect(headers).not.toHaveProperty(name);
  });

  test('a body is read whole, with and without an announced length, and its trailers are ignored', async () => {
    const { url } = await serving(counted);
    const client = new Http2Client(url);
    const body = Buffer.alloc(3_000_000, 'x');
    expect((await client.send('PUT', '/', { 'content-length': '3000000' }, body)).text).toBe('3000000');
    const stream = client.session.request({ ':method': 'PUT', ':path': '/' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-more': 'ignored' }));
    stream.end(body);
    expect((await answerOf(stream)).text).toBe('3000000');
    expect((await client.send('POST', '/')).text).toBe('0');
  });

  test('100 Continue is sent when the body is read, and not when the request is refused', async () => {
    const { url } = await serving((exchange) =>
      exchange.path === '/refused' ? exchange.refuse({ status: 412, text: 'No.' }) : counted(exchange),
    );
    const client = new Http2Client(url);
    const stream = client.begin('PUT', '/', { expect: '100-continue' });
    await once(stream, 'continue');
    stream.end('12345');
    expect((await answerOf(stream)).text).toBe('5');
    const refused = client.begin('PUT', '/refused', { expect: '100-continue' });
    refused.on('continue', () => expect.fail('a refused request got 100 Continue'));
    expect(await answerOf(refused)).toMatchObject({ status: 412, text: 'No.\n', code: 0 });
  });

  test('a request that is refused while its body is coming gets its whole answer, and the connection goes on', async () => {
    const { url } = await serving((exchange) =>
      exchange.path === '/' ? ok(exchange) : exchange.refuse({ status: 403, text: 'You may only read.' }),
    );
    const client = new Http2Client(url);
    const stream = client.begin('PUT', '/a', { 'content-length': '20000000' });
    Readable.from(Array(200).fill(Buffer.alloc(100_000))).pipe(stream);
    expect(await answerOf(stream)).toMatchObject({ status: 403, text: 'You may only read.\n', code: 0 });
    expect((await client.send('GET', '/')).status).toBe(200);
  });

  test('a handler that throws answers 500, or resets the stream of an answer that has begun, and the connection goes on', async () => {
    const { url } = await serving(async (exchange) => {
      if (exchange.path === '/begun') {
        exchange.writeHead(200, {});
        await exchange.write(Buffer.from('part'));
      }
      throw new Error('inner reasons');
    });
    const client = new Http2Client(url);
    const answer = await client.send('GET', '/');
    expect(answer.status).toBe(500);
    expect(answer.text).not.toContain('inner');
    expect(await client.send('GET', '/begun')).toMatchObject({ status: 200, code: INTERNAL_ERROR });
    expect((await client.send('GET', '/')).status).toBe(500);
  });

  test.each([
    [
      'CONNECT',
      405,
      (client: Http2Client) => client.session.request({ ':method': 'CONNECT', ':authority': 'x:1' }).end(),
    ],
    [
      'a header over 64 KiB',
      431,
      (client: Http2Client) => client.begin('GET', '/', { 'x-long': 'x'.repeat(70_000) }),
    ],
    ['201 fields', 431, (client: Http2Client) => client.begin('GET', '/', manyFields(201))],
    [
      'another Host than :authority',
      400,
      (client: Http2Client) => client.begin('GET', '/', { ':authority': 'x', host: 'other' }),
    ],
    ['an unknown Expect', 417, (client: Http2Client) => client.begin('GET', '/', { expect: 'more' })],
  ])('%s answers %i with the reason, and the connection goes on', async (_, status, begin) => {
    const { url } = await serving(ok);
    const client = new Http2Client(url, {
      settings: { maxHeaderListSize: 1_000_000 },
      maxSendHeaderBlockLength: 1_000_000,
    });
    const answer = await answerOf(begin(client));
    expect(answer).toMatchObject({ status, code: 0 });
    expect(answer.text.split(' ').length).toBeGreaterThan(3);
    expect((await client.send('GET', '/')).status).toBe(200);
  });

  test('OPTIONS * is handled, and :authority is the Host', async () => {
    const seen: unknown[] = [];
    const { url, port } = await serving((exchange) => {
      seen.push(exchange.target, exchange.request.headers.host);
      return ok(exchange);
    });
    expect((await new Http2Client(url).send('OPTIONS', '*')).status).toBe(200);
    expect(seen).toEqual(['*', `127.0.0.1:${port}`]);
  });

  test('fields in several lines that HTTP/1.1 joins with commas are joined over HTTP/2', async () => {
    const names = ['if', 'if-match', 'if-none-match', 'if-range', 'range', 'x-forwarded-for'];
    const more = ['content-encoding', 'content-md5', 'content-range'];
    const seen: IncomingHttpHeaders[] = [];
    const { port } = await serving((exchange) => {
      seen.push(exchange.request.headers);
      return ok(exchange);
    });
    const lines = [...names, ...more].flatMap((name) => [literalField(name, 'a'), literalField(name, 'b')]);
    const socket = await connectFrames(port);
    socket.write(frame(1, 5, 1, POST_FIELDS + lines.join('')));
    await eventually(() => expect(seen).toHaveLength(1));
    for (const name of [...names, ...more]) expect(seen[0]).toHaveProperty(name, 'a, b');
  });

  test('a trusted proxy that speaks HTTP/2 names the address of the client', async () => {
    const { url, lines } = await serving(ok, { trustedProxies: new Networks(['127.0.0.1']) });
    await new Http2Client(url).send('GET', '/', { 'x-forwarded-for': '192.0.2.7' });
    await eventually(() => expect(lines[0]?.fields['address']).toBe('192.0.2.7'));
  });

  test('metrics count each request, and the bytes of the connection', async () => {
    const metrics = createMetrics(() => 'other');
    metrics.watch({ drives: () => [], blockCacheBytes: () => 0, stateTrouble: () => undefined });
    const { url } = await serving(counted, { metrics });
    const client = new Http2Client(url);
    for (let round = 0; round < 3; round++) await client.send('PUT', '/', {}, Buffer.alloc(100_000));
    const { value } = parseExposition(await metrics.text());
    expect(value('davgate_http_requests_total', { method: 'PUT', client: 'other', status: '200' })).toBe(3);
    expect(value('davgate_http_bytes_total', { direction: 'received' })).toBeGreaterThan(300_000);
    expect(value('davgate_http_bytes_total', { direction: 'received' })).toBeLessThan(320_000);
    expect(value('davgate_http_bytes_total', { direction: 'sent' })).toBeGreaterThan(100);
  });
});

/** Returns a field that is in no table (RFC 7541 §6.2.2), of at most 126 characters. */
function literalField(name: string, value: string): string {
  const text = (content: string) => String.fromCharCode(content.length) + content;
  return `\0${text(name)}${text(value)}`;
}

function manyFields(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`x-${index}`, 'x']));
}

describe('a client that leaves', () => {
  test.each(['GET', 'HEAD'])(
    'resetting a %s fires its signal, and another request of the connection goes on',
    async (method) => {
      const { signals, release, handle } = waiting();
      const { url, lines } = await serving(handle);
      const client = new Http2Client(url);
      const left = client.begin(method, '/left');
      const staying = client.send('GET', '/staying');
      await eventually(() => expect(signals).toHaveLength(2));
      left.close(CANCEL);
      await eventually(() => expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]));
      release();
      expect((await staying).text).toBe('handled');
      await eventually(() =>
        expect(lines.find(({ fields }) => fields['path'] === '/left')?.fields['cut']).toBe(true),
      );
    },
  );

  test('a connection that breaks fires the signals of all its requests', async () => {
    const { signals, handle } = waiting();
    const { url, close } = await serving(handle);
    const client = new Http2Client(url);
    for (let count = 0; count < 3; count++) client.begin('GET', '/');
    await eventually(() => expect(signals).toHaveLength(3));
    client.session.destroy();
    await eventually(() =>
      expect(signals.map(({ reason }) => String(reason))).toEqual(
        Array(3).fill('ClientGone: the client has gone'),
      ),
    );
    await close();
  });

  test.each([0, CANCEL])(
    'a body without a length whose stream is reset with code %i is not taken for whole',
    async (code) => {
      const outcomes: string[] = [];
      let got = 0;
      const { port } = await serving(async (exchange) => {
        try {
          for await (const piece of exchange.body()) got += piece.length;
          outcomes.push('whole');
        } catch (error) {
          outcomes.push((error as Error).name);
        }
      });
      const socket = await connectFrames(port);
      socket.write(Buffer.concat([POST, frame(0, 0, 1, 'half')]));
      await eventually(() => expect(got).toBe(4));
      socket.write(frame(3, 0, 1, `\0\0\0${String.fromCharCode(code)}`));
      await eventually(() => expect(outcomes).toEqual(['ClientGone']));
    },
  );
});

describe('flow control', () => {
  test('a client may send a mebibyte before its body is read, and no more', async () => {
    const { signals, release, handle } = waiting();
    const { url } = await serving(async (exchange) => {
      await handle(exchange);
    });
    const client = new Http2Client(url);
    const stream = client.begin('PUT', '/');
    stream.write(Buffer.alloc(3_000_000));
    await eventually(() => expect(client.session.state.remoteWindowSize).toBe(4 * MIB - MIB));
    expect(signals).toHaveLength(1);
    release();
    stream.end();
    expect((await answerOf(stream)).status).toBe(200);
  });

  test('a bandwidth limit holds for all requests of a connection together', async () => {
    const clock = new ManualClock();
    const { url } = await serving(
      (exchange) => exchange.answer({ status: 200, headers: {}, body: Buffer.alloc(50_000) }),
      { clock, bandwidth: { downloadBytes: 100_000 }, limits: PATIENT },
    );
    const client = new Http2Client(url);
    const start = clock.instant();
    const answers = await clock.during(Promise.all([1, 2, 3, 4].map(() => client.send('GET', '/'))));
    expect(answers.map(({ text: body }) => body.length)).toEqual(Array(4).fill(50_000));
    // A quarter of a second passes at once.
    expect(elapsedMs(clock, start)).toBeGreaterThan(1_500);
    expect(elapsedMs(clock, start)).toBeLessThan(2_000);
  });

  test('content is read no faster than the client takes it', async () => {
    let produced = 0;
    const pieces = async function* () {
      for (; produced < 64; produced++) yield Buffer.alloc(MIB, produced);
    };
    const { url } = await serving((exchange) =>
      exchange.answer({ status: 200, headers: {}, body: { sizeBytes: 64 * MIB, bytes: pieces() } }),
    );
    const client = new Http2Client(url);
    const stream = client.begin('GET', '/');
    await once(stream, 'response');
    stream.pause();
    // Meanwhile other requests are answered.
    expect((await client.send('HEAD', '/')).status).toBe(200);
    expect(produced).toBeLessThan(3);
    let sizeBytes = 0;
    for await (const piece of stream) sizeBytes += piece.length;
    expect(sizeBytes).toBe(64 * MIB);
  });
});
