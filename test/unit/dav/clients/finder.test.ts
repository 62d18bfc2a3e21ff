import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { type DavRequest, type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

/** webdavfs 367 (`webdav_network.c`), in the order that macOS 14 still sends. */
const AGENT = 'WebDAVFS/3.0.0 (03008000) Darwin/23.4.0 (arm64)';
const STAT =
  '<?xml version="1.0" encoding="utf-8"?>\n<D:propfind xmlns:D="DAV:">\n<D:prop>\n<D:getlastmodified/>\n' +
  '<D:getcontentlength/>\n<D:creationdate/>\n<D:resourcetype/>\n</D:prop>\n</D:propfind>\n';
const LOCK =
  '<?xml version="1.0" encoding="utf-8"?>\n<D:lockinfo xmlns:D="DAV:">\n<D:lockscope><D:exclusive/></D:lockscope>\n' +
  '<D:locktype><D:write/></D:locktype>\n<D:owner>\n<D:href>http://www.apple.com/webdav_fs/</D:href>\n</D:owner>\n</D:lockinfo>\n';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
});
afterEach(() => dav.close());

const send = (method: string, target: string, options: DavRequest = {}) =>
  dav.send(method, target, { agent: AGENT, ...options, headers: { Accept: '*/*', ...options.headers } });
const stat = (target: string, depth = '0') =>
  send('PROPFIND', target, { body: STAT, headers: { Depth: depth, 'Content-Type': 'text/xml' } });

async function lock(target: string): Promise<string> {
  const headers = { Depth: '0', Timeout: 'Second-600', 'Content-Type': 'text/xml; charset="utf-8"' };
  const answer = await send('LOCK', target, { body: LOCK, headers });
  expect(answer.status).toBe(200);
  const [, token] = /<D:locktoken><D:href>([^<]+)</.exec(answer.text) ?? [];
  expect(answer.headers['lock-token']).toBe(`<${token}>`);
  return String(token);
}

describe('Finder', () => {
  test('Finder finds class 2 support and a collection at the root, and mounts the drive for writing', async () => {
    const probe = await dav.send('OPTIONS', '/', { agent: 'WebDAVLib/1.3' });
    expect(probe.status).toBe(200);
    expect(String(probe.headers['dav']).split(', ')).toContain('2');
    const root = await stat('/');
    expect(root.status).toBe(207);
    expect(root.text).toContain('<D:collection/>');
  });

  test('Finder saves a new file: empty PUT, LOCK, PUT under the lock, UNLOCK; one write at the service', async () => {
    expect((await stat('/note.txt')).status).toBe(404);
    const created = await send('PUT', '/note.txt', { body: '' });
    expect(created.status).toBe(201);
    expect(created.headers.date).toBeDefined();
    expect(dav.files.isHeld(path('/note.txt'))).toBe(true);
    expect((await stat('/note.txt')).text).toContain('<D:getcontentlength>0</D:getcontentlength>');

    const token = await lock('/note.txt');
    expect((await send('GET', '/note.txt')).headers['content-length']).toBe('0');
    const put = await send('PUT', '/note.txt', { body: 'dear diary', headers: { If: `(<${token}>)` } });
    expect(put.status).toBe(204);
    // Without these headers Finder sends another request.
    expect(put.headers.etag).toBeDefined();
    expect(put.headers['last-modified']).toBeDefined();
    const headers = { 'Lock-Token': `<${token}>` };
    expect((await send('UNLOCK', '/note.txt', { headers })).status).toBe(204);

    expect(dav.content('/note.txt')).toBe('dear diary');
    expect(dav.files.calls.filter(({ what }) => what === 'write')).toHaveLength(1);
    expect(dav.files.isHeld(path('/note.txt'))).toBe(false);
  });

  test('Finder keeps its lock while a document is open', async () => {
    await dav.file('/note.txt', 'old');
    const token = await lock('/note.txt');
    for (let minutes = 0; minutes < 30; minutes += 5) {
      await dav.clock.advance(5 * 60_000);
      const headers = { If: `(<${token}>)`, 'Content-Type': 'text/xml', Timeout: 'Second-600', Depth: '0' };
      const answer = await send('LOCK', '/note.txt', { headers });
      expect(answer.status).toBe(200);
      expect(answer.text).toContain(token);
    }
    expect((await dav.send('PUT', '/note.txt', { body: 'mine', user: 'ben' })).status).toBe(423);
  });

  test('Finder copies a large file in chunks and announces its length with X-Expected-Entity-Length', async () => {
    await send('PUT', '/film.mov', { body: '' });
    const token = await lock('/film.mov');
    const body = Readable.from([Buffer.alloc(70_000, 'a'), Buffer.alloc(50_000, 'b')]);
    const headers = { If: `(<${token}>)`, 'X-Expected-Entity-Length': '120000' };
    expect((await send('PUT', '/film.mov', { body, headers })).status).toBe(204);
    expect(dav.files.contentAt(path('/film.mov'))).toHaveLength(120_000);
  });

  test('Finder aborts a copy half-way, and the file stays empty', async () => {
    await send('PUT', '/film.mov', { body: '' });
    const token = await lock('/film.mov');
    const socket = dav.socket();
    socket.write(
      `PUT /film.mov HTTP/1.1\r\nHost: x\r\nUser-Agent: ${AGENT}\r\nIf: (<${token}>)\r\n` +
        'X-Expected-Entity-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n',
    );
    while (dav.files.writing === 0) await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    while (dav.files.writing > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(dav.content('/film.mov')).toBe('');
  });

  test('Finder saves as macOS programs do: a temporary folder, a file in it, a MOVE over the old file', async () => {
    await dav.file('/Letter.txt', 'old');
    const token = await lock('/Letter.txt');
    const aside = '/Letter.txt.sb-ac6800a0-t3YBFI';
    expect((await send('MKCOL', `${aside}/`)).status).toBe(201);
    expect((await send('PUT', `${aside}/Letter.txt`, { body: '' })).status).toBe(201);
    const own = await lock(`${aside}/Letter.txt`);
    await send('PUT', `${aside}/Letter.txt`, { body: 'new', headers: { If: `(<${own}>)` } });
    const move =
      `MOVE ${aside}/Letter.txt HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: ${AGENT}\r\nConnection: close\r\n` +
      `Destination: http://127.0.0.1/Letter.txt\r\nIf: (<${own}>)\r\nIf: (<${token}>)\r\n\r\n`;
    expect(await dav.raw(move)).toMatch(/^HTTP\/1.1 204 /);
    expect((await send('DELETE', `${aside}/`)).status).toBe(204);
    expect((await send('UNLOCK', '/Letter.txt', { headers: { 'Lock-Token': `<${token}>` } })).status).toBe(
      204,
    );
    expect(dav.files.paths()).toEqual(['/Letter.txt']);
    expect(dav.content('/Letter.txt')).toBe('new');
  });

  test('Finder resumes a read with a date in If-Range and gets 206', async () => {
    await dav.file('/film.mov', '0123456789');
    await dav.clock.advance(1_000);
    const { 'last-modified': date = '' } = (await send('GET', '/film.mov')).headers;
    const rest = await send('GET', '/film.mov', { headers: { Range: 'bytes=4-', 'If-Range': date } });
    expect([rest.status, rest.text]).toEqual([206, '456789']);
    expect((await send('GET', '/film.mov', { headers: { 'If-Modified-Since': date } })).status).toBe(304);
  });

  test('Finder gets 423 for PROPFIND, GET and DELETE while the service is busy, and an empty folder lists only itself', async () => {
    await dav.file('/note.txt', 'old');
    for (const [method, call] of [
      ['PROPFIND', 'stat'],
      ['GET', 'read'],
      ['DELETE', 'remove'],
    ] as const) {
      dav.files.failNext(call, new FileError('busy', 'the service is busy'));
      expect((await send(method, '/note.txt', { headers: { Depth: '0' } })).status).toBe(423);
    }
    // Finder takes a folder with more than one response for not empty, and does not remove it.
    await dav.folder('/empty');
    expect((await stat('/empty/', '1')).text.match(/<D:response>/g)).toHaveLength(1);
  });
});
