import { Readable } from 'node:stream';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../../support/dav.ts';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/docs/a.txt', '0123456789');
});
afterEach(() => dav.close());

test('gvfs replaces a file: HEAD with its condition, then PUT with the same', async () => {
  const { etag = '' } = (await dav.send('HEAD', '/docs/a.txt')).headers;
  const put = (tag: string) => ({ body: 'new', headers: { 'If-Match': tag } });
  expect((await dav.send('HEAD', '/docs/a.txt', { headers: { 'If-Match': '"old"' } })).status).toBe(412);
  expect((await dav.send('PUT', '/docs/a.txt', put('"old"'))).status).toBe(412);
  expect((await dav.send('HEAD', '/docs/a.txt', { headers: { 'If-Match': etag } })).status).toBe(200);
  expect((await dav.send('PUT', '/docs/a.txt', put(etag))).status).toBe(204);
});

test('gvfs copies in: HEAD, then PUT with Overwrite and the time', async () => {
  expect((await dav.send('HEAD', '/docs/b.txt')).status).toBe(404);
  const headers = { Overwrite: 'F', 'X-OC-Mtime': '1600000000' };
  const put = await dav.send('PUT', '/docs/b.txt', { body: 'new', headers });
  expect([put.status, put.headers['x-oc-mtime']]).toEqual([201, 'accepted']);
});

test('an older gvfs creates a file with a PUT without a length', async () => {
  const answer = await dav.raw('PUT /docs/b.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(answer).toMatch(/^HTTP\/1.1 201 /);
  expect(dav.content('/docs/b.txt')).toBe('');
});

test('kio sends a Content-Type with every request and gets the 201 and 204 that it expects', async () => {
  const headers = { 'Content-Type': 'text/xml' };
  expect((await dav.send('MKCOL', '/docs/new', { headers })).status).toBe(201);
  const move = { ...headers, Destination: `${dav.url}/docs/moved`, Overwrite: 'F', Depth: 'infinity' };
  expect((await dav.send('MOVE', '/docs/new', { headers: move })).status).toBe(201);
  const copy = { ...headers, Destination: `${dav.url}/docs/b.txt`, Overwrite: 'T', Depth: 'infinity' };
  expect((await dav.send('COPY', '/docs/a.txt', { headers: copy })).status).toBe(201);
  expect((await dav.send('COPY', '/docs/a.txt', { headers: copy })).status).toBe(204);
  expect((await dav.send('DELETE', '/docs/moved', { headers })).status).toBe(204);
});

test('Kodi seeks with open ranges, and every answer has a Content-Length', async () => {
  for (const start of [0, 7, 3]) {
    const answer = await dav.send('GET', '/docs/a.txt', { headers: { Range: `bytes=${start}-` } });
    expect(answer.status).toBe(206);
    expect(answer.headers).toMatchObject({
      'accept-ranges': 'bytes',
      'content-length': String(10 - start),
      'content-range': `bytes ${start}-9/10`,
    });
    expect(answer.headers['transfer-encoding']).toBeUndefined();
  }
});

test('a document scanner opens a folder with GET and uploads a file in chunks', async () => {
  expect((await dav.send('GET', '/docs')).status).toBe(200);
  expect((await dav.send('HEAD', '/docs/scan.pdf')).status).toBe(404);
  const body = Readable.from([Buffer.from('%PDF-'), Buffer.from('1.7')]);
  expect((await dav.send('PUT', '/docs/scan.pdf', { body })).status).toBe(201);
  expect(dav.content('/docs/scan.pdf')).toBe('%PDF-1.7');
});

test('OmniPresence sends a path as Destination and replaces a folder with MOVE', async () => {
  await dav.file('/docs/tmp/new', 'x');
  await dav.file('/docs/plan/old', 'x');
  const headers = { Destination: '/docs/plan/', Overwrite: 'T' };
  expect((await dav.send('MOVE', '/docs/tmp/', { headers })).status).toBe(204);
  expect(dav.files.paths()).toEqual(['/docs/', '/docs/a.txt', '/docs/plan/', '/docs/plan/new']);
});

test('curl resumes a download, and uploads with Expect: 100-continue', async () => {
  const rest = await dav.send('GET', '/docs/a.txt', { headers: { Range: 'bytes=8-' } });
  expect([rest.status, rest.text]).toEqual([206, '89']);
  const headers = { Expect: '100-continue', 'Content-Length': 4 };
  const put = await dav.send('PUT', '/docs/b.txt', { body: Readable.from(['body']), headers });
  expect(put.status).toBe(201);
});
