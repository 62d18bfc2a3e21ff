import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { type DavAnswer, type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

let dav: DavServer;
const CONTENT = '0123456789'.repeat(200);

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/docs/a.txt', CONTENT);
});
afterEach(() => dav.close());

const get = (headers: Record<string, string> = {}, target = '/docs/a.txt') =>
  dav.send('GET', target, { headers });

describe('GET of a file', () => {
  test('GET sends the whole file with its length, entity tag, time and type', async () => {
    const answer = await get();
    const file = await dav.files.stat(path('/docs/a.txt'));
    const { date, ...headers } = answer.headers;
    expect(answer.text).toBe(CONTENT);
    expect(date).toBeDefined();
    expect(headers).toEqual({
      'accept-ranges': 'bytes',
      'cache-control': 'no-cache',
      connection: 'close',
      'content-length': '2000',
      'content-type': 'text/plain; charset=utf-8',
      'cross-origin-resource-policy': 'same-origin',
      etag: `"${file?.kind === 'file' && file.rev}"`,
      'last-modified': new Date(dav.clock.now()).toUTCString(),
      'x-content-type-options': 'nosniff',
    });
  });

  test('HEAD sends the headers of GET without the content', async () => {
    const [head, whole] = [await dav.send('HEAD', '/docs/a.txt'), await get()];
    expect(head.status).toBe(200);
    expect(head.text).toBe('');
    expect({ ...head.headers, date: '' }).toEqual({ ...whole.headers, date: '' });
    const ranged = await dav.send('HEAD', '/docs/a.txt', { headers: { Range: 'bytes=0-1' } });
    expect(ranged.status).toBe(200);
    expect(ranged.headers['content-length']).toBe('2000');
  });

  test.each([0, 1, 65_536, 65_537, 5_000_000])(
    'GET of a file of %d bytes sends all of it',
    async (sizeBytes) => {
      const bytes = pseudoRandomBytes(sizeBytes, 3);
      await dav.file('/big', bytes);
      const answer = await get({}, '/big');
      expect(answer.headers['content-length']).toBe(String(sizeBytes));
      expect(answer.headers['transfer-encoding']).toBeUndefined();
      expect(answer.body.equals(bytes)).toBe(true);
      expect(dav.files.abandonedReads).toBe(0);
    },
  );

  test.each([
    ['page.html', 'text/html', 'sandbox'],
    ['draw.SVG', 'image/svg+xml', 'sandbox'],
    ['data.json', 'application/json', 'sandbox'],
    ['script.mjs', 'text/javascript', 'sandbox'],
    ['paper.pdf', 'application/pdf', undefined],
    ['photo.jpg', 'image/jpeg', undefined],
    ['.bashrc', 'application/octet-stream', undefined],
    ['no ending', 'application/octet-stream', undefined],
    ['x.constructor', 'application/octet-stream', undefined],
  ])('GET of %s answers with the type %s and the policy %s', async (name, type, policy) => {
    await dav.file(`/${name}`, '<script>');
    const { headers } = await get({}, `/${encodeURIComponent(name)}`);
    expect(headers['content-type']).toBe(type);
    expect(headers['content-security-policy']).toBe(policy);
  });

  test('GET finds names that contain # and ?', async () => {
    await dav.file('/a#b?c', 'odd');
    expect((await get({}, '/a%23b%3Fc')).text).toBe('odd');
    expect((await get({}, '/a%23b')).status).toBe(404);
  });

  test('GET of an unmapped URL answers 404 with a reason', async () => {
    const answer = await get({}, '/docs/none');
    expect(answer.status).toBe(404);
    expect(answer.text).toContain('/docs/none');
    expect((await dav.send('HEAD', '/docs/none')).status).toBe(404);
  });
});

describe('GET of a range', () => {
  test.each([
    ['bytes=0-9', 'bytes 0-9/2000', CONTENT.slice(0, 10)],
    ['bytes=1995-', 'bytes 1995-1999/2000', CONTENT.slice(1995)],
    ['bytes=-4', 'bytes 1996-1999/2000', CONTENT.slice(1996)],
    ['bytes=0-20,10-40', 'bytes 0-40/2000', CONTENT.slice(0, 41)],
  ])('GET of the range %s answers 206 with Content-Range: %s', async (range, contentRange, content) => {
    const answer = await get({ Range: range });
    expect(answer.status).toBe(206);
    expect(answer.headers['content-range']).toBe(contentRange);
    expect(answer.headers['content-length']).toBe(String(content.length));
    expect(answer.headers['content-type']).toBe('text/plain; charset=utf-8');
    expect(answer.text).toBe(content);
  });

  test('GET of several ranges answers multipart/byteranges of exactly the announced length', async () => {
    const answer = await get({ Range: 'bytes=1000-1003, 0-2, -1' });
    expect(answer.status).toBe(206);
    expect(answer.headers['content-range']).toBeUndefined();
    const [, boundary] =
      /^multipart\/byteranges; boundary=(\S+)$/.exec(answer.headers['content-type'] ?? '') ?? [];
    const part = (range: string, content: string) =>
      `\r\n--${boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes ${range}/2000\r\n\r\n${content}`;
    expect(answer.text).toBe(
      `${part('1000-1003', '0123')}${part('0-2', '012')}${part('1999-1999', '9')}\r\n--${boundary}--\r\n`,
    );
    expect(answer.headers['content-length']).toBe(String(answer.body.length));
  });

  test('GET of a range beyond the end answers 416 with the size', async () => {
    const answer = await get({ Range: 'bytes=2000-' });
    expect(answer.status).toBe(416);
    expect(answer.headers['content-range']).toBe('bytes */2000');
    expect(answer.headers.etag).toBeUndefined();
  });

  test.each(['bytes=x', 'lines=0-1', `bytes=${'0-0,'.repeat(100)}`])(
    'a malformed or unsupported Range (%s) is answered with the whole file',
    async (range) => {
      const answer = await get({ Range: range });
      expect(answer.status).toBe(200);
      expect(answer.text).toBe(CONTENT);
    },
  );

  test('If-Range with an entity tag or a date selects a partial or the whole answer', async () => {
    await dav.clock.advance(1_000);
    const { etag = '', 'last-modified': date = '' } = (await get()).headers;
    const statusOf = async (ifRange: string) =>
      (await get({ Range: 'bytes=0-1', 'If-Range': ifRange })).status;
    expect(await statusOf(etag)).toBe(206);
    expect(await statusOf(date)).toBe(206);
    expect(await statusOf('"other"')).toBe(200);
    expect(await statusOf(`W/${etag}`)).toBe(200);
    expect(await statusOf('Thu, 01 Jan 1970 00:00:00 GMT')).toBe(200);
    expect(await statusOf('junk')).toBe(200);
  });

  test('If-Range with a date that a client has set, or whose second is not over, selects the whole answer', async () => {
    const rangeAfter = async () => {
      const { 'last-modified': date = '' } = (await get()).headers;
      return (await get({ Range: 'bytes=0-1', 'If-Range': date })).status;
    };
    expect(await rangeAfter()).toBe(200);
    await dav.clock.advance(1_000);
    expect(await rangeAfter()).toBe(206);
    const seconds = Math.floor(dav.clock.now() / 1000) - 1;
    const headers = { 'X-OC-Mtime': String(seconds) };
    expect((await dav.send('PUT', '/docs/a.txt', { body: CONTENT.toUpperCase(), headers })).status).toBe(204);
    await dav.clock.advance(1_000);
    expect(await rangeAfter()).toBe(200);
  });
});

describe('conditions on GET and HEAD, in the order of RFC 9110', () => {
  const LATER = 'Fri, 01 Jan 2100 00:00:00 GMT';
  const EARLIER = 'Thu, 01 Jan 1970 00:00:00 GMT';
  const TAG = 'the tag';

  test.each([
    [{ 'If-None-Match': TAG }, 304],
    [{ 'If-None-Match': `W/${TAG}` }, 304],
    [{ 'If-None-Match': '*' }, 304],
    [{ 'If-None-Match': '"other"' }, 200],
    [{ 'If-None-Match': 'junk' }, 200],
    [{ 'If-Modified-Since': LATER }, 304],
    [{ 'If-Modified-Since': EARLIER }, 200],
    [{ 'If-Modified-Since': 'junk' }, 200],
    [{ 'If-None-Match': '"other"', 'If-Modified-Since': LATER }, 200],
    [{ 'If-None-Match': TAG, 'If-Modified-Since': EARLIER }, 304],
    [{ 'If-Match': TAG }, 200],
    [{ 'If-Match': '"other"' }, 412],
    [{ 'If-Match': 'junk' }, 412],
    [{ 'If-Match': '"other"', 'If-None-Match': TAG }, 412],
    [{ 'If-Match': TAG, 'If-None-Match': TAG }, 304],
    [{ 'If-Match': TAG, 'If-Unmodified-Since': EARLIER }, 200],
    [{ 'If-Unmodified-Since': EARLIER }, 412],
    [{ 'If-Unmodified-Since': LATER }, 200],
    [{ If: '(["other"])' }, 412],
    [{ 'If-None-Match': TAG, Range: 'bytes=0-1' }, 304],
  ])('GET and HEAD with %j answer %d', async (conditions, status) => {
    const { etag = '' } = (await get()).headers;
    const headers = Object.fromEntries(
      Object.entries(conditions).map(([name, value]) => [name, value.replace(TAG, etag)]),
    );
    for (const method of ['GET', 'HEAD']) {
      const answer = await dav.send(method, '/docs/a.txt', { headers });
      expect(answer.status).toBe(status);
      if (status === 304) {
        expect(answer.headers.etag).toBe(etag);
        // RFC 9110 §15.4.5: a 304 repeats the Cache-Control of the 200.
        expect(answer.headers['cache-control']).toBe('no-cache');
        expect(answer.body).toHaveLength(0);
      }
    }
  });

  test('HEAD with If-Match on an unmapped URL answers 412 (gvfs)', async () => {
    expect((await dav.send('HEAD', '/none', { headers: { 'If-Match': '"x"' } })).status).toBe(412);
  });
});

describe('GET of a folder', () => {
  const folder = (headers: Record<string, string> = {}, target = '/docs/') => get(headers, target);

  test('GET of a folder answers a page that lists it, with and without a trailing slash', async () => {
    await dav.file('/docs/<b> & "c"#.txt', 'x');
    await dav.folder('/docs/sub');
    for (const target of ['/docs', '/docs/']) {
      const { status, headers, text } = await folder({}, target);
      expect(status).toBe(200);
      expect(headers['content-type']).toBe('text/html; charset=utf-8');
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'/);
      expect(text).toContain('<a href="/docs/sub/">sub/</a>');
      expect(text).toContain('<a href="/docs/a.txt">a.txt</a></td><td>2.0 kB</td>');
      expect(text).toContain(
        'href="/docs/%3Cb%3E%20&amp;%20%22c%22%23.txt">&lt;b&gt; &amp; &quot;c&quot;#.txt</a>',
      );
      expect(text).not.toContain('<b>');
    }
  });

  test('HEAD of a folder answers 200 without content, also for the root', async () => {
    const head = await dav.send('HEAD', '/docs');
    expect([head.status, head.text]).toEqual([200, '']);
    expect((await dav.send('GET', '/')).text).toContain('href="/docs/"');
  });

  test('GET of a folder with its entity tag answers 304 until something changes', async () => {
    const { etag = '' } = (await folder()).headers;
    expect((await folder({ 'If-None-Match': etag })).status).toBe(304);
    await dav.file('/docs/b');
    expect((await folder({ 'If-None-Match': etag })).status).toBe(200);
  });
});

describe('failing GET', () => {
  test('GET closes the connection when the read fails in the middle', async () => {
    await dav.file('/big', pseudoRandomBytes(5_000_000, 1));
    dav.files.readCutBytes = 4_000_000;
    const text = await dav.raw('GET /big HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(text).toContain('Content-Length: 5000000');
    expect(text.length).toBeLessThan(5_000_000);
    expect(dav.errors).toMatchObject([{ method: 'GET', fault: 'broken' }]);
  });

  test('GET answers an error when the read fails before the first byte', async () => {
    for (const call of ['read', 'stat'] as const) {
      dav.files.failNext(call, new FileError('busy', 'the service is busy', { retryAfterMs: 4_200 }));
      const answer = await get();
      expect(answer.status).toBe(503);
      expect(answer.headers['retry-after']).toBe('5');
      expect(answer.headers['content-range']).toBeUndefined();
      expect(answer.text).toBe('the service is busy\n');
    }
  });

  test("GET reads at the client's pace and ends the download when the client disconnects", async () => {
    await dav.file('/big', pseudoRandomBytes(64_000_000, 1));
    const socket = dav.socket();
    socket.write('GET /big HTTP/1.1\r\nHost: x\r\n\r\n');
    await new Promise((resolve) => socket.once('data', resolve));
    socket.pause();
    expect(dav.files.openReads).toBe(1);
    socket.destroy();
    while (dav.files.openReads > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(dav.files.abandonedReads).toBe(1);
    expect(dav.errors).toEqual([]);
  });
});

test('GET with a small body answers 200, and with a body of 3 MB 413', async () => {
  const answer: DavAnswer = await dav.send('GET', '/docs/a.txt', { body: 'what is this' });
  expect(answer.status).toBe(200);
  expect((await dav.send('GET', '/docs/a.txt', { body: Buffer.alloc(3_000_000) })).status).toBe(413);
});
