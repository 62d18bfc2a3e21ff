import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { type DavRequest, type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

/** rclone 1.68 with vendor `owncloud` (`backend/webdav/webdav.go`). */
const AGENT = 'rclone/v1.68.2';
const PROPFIND =
  '<?xml version="1.0"?>\n<d:propfind  xmlns:d="DAV:" xmlns:oc="http://owncloud.org/ns" xmlns:nc="http://nextcloud.org/ns">\n' +
  ' <d:prop>\n  <d:displayname />\n  <d:getlastmodified />\n  <d:getcontentlength />\n  <d:resourcetype />\n' +
  '  <d:getcontenttype />\n  <oc:checksums />\n  <oc:permissions />\n </d:prop>\n</d:propfind>\n';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
});
afterEach(() => dav.close());

const send = (method: string, target: string, options: DavRequest = {}) =>
  dav.send(method, target, { agent: AGENT, ...options });
const stat = (target: string) => send('PROPFIND', target, { body: PROPFIND, headers: { Depth: '0' } });

describe('rclone', () => {
  test('rclone uploads: MKCOL of the parent, PUT with time and checksum, PROPFIND of the result', async () => {
    expect((await send('MKCOL', '/a/b/')).status).toBe(409);
    expect((await send('MKCOL', '/a/')).status).toBe(201);
    expect((await send('MKCOL', '/a/b/')).status).toBe(201);
    expect((await send('MKCOL', '/a/b/')).status).toBe(405);
    const sha1 = createHash('sha1').update('content').digest('hex');
    const headers = { 'X-OC-Mtime': '1600000000', 'OC-Checksum': `SHA1:${sha1}` };
    expect((await send('PUT', '/a/b/c', { body: 'content', headers })).status).toBe(201);
    const found = (await stat('/a/b/c')).text;
    expect(found).toContain('<D:getlastmodified>Sun, 13 Sep 2020 12:26:40 GMT</D:getlastmodified>');
    expect(found).toContain(`SHA1:${sha1}`);
    expect(found.indexOf('200 OK')).toBeGreaterThan(0);
  });

  test('rclone uploads an empty file, which is at the service at once', async () => {
    expect((await send('PUT', '/empty', { body: '' })).status).toBe(201);
    expect(dav.files.isHeld(path('/empty'))).toBe(false);
    expect(dav.files.calls.at(-1)?.what).toBe('write');
  });

  test('rclone deletes the file after a failed PUT, and the previous version is removed recoverably', async () => {
    await dav.file('/a', 'precious');
    dav.files.failNext('write', new FileError('busy', 'the service is busy'));
    expect((await send('PUT', '/a', { body: 'new' })).status).toBe(503);
    await dav.clock.advance(1_000);
    expect((await send('DELETE', '/a')).status).toBe(204);
    expect(dav.files.calls.at(-1)).toEqual({ what: 'remove', path: '/a', options: { recoverable: true } });
  });

  test('rclone copies and moves on the server, and gets X-OC-Mtime: accepted', async () => {
    await dav.file('/a', 'content');
    const headers = { Destination: `${dav.url}/b`, Overwrite: 'T', 'X-OC-Mtime': '1600000000.5' };
    const copied = await send('COPY', '/a', { headers });
    expect([copied.status, copied.headers['x-oc-mtime']]).toEqual([201, 'accepted']);
    const moved = await send('MOVE', '/a', { headers });
    expect([moved.status, moved.headers['x-oc-mtime']]).toEqual([204, 'accepted']);
    expect((await stat('/b')).status).toBe(207);
    expect((await stat('/a')).status).toBe(404);
  });

  test('rclone reads a range with its Content-Range', async () => {
    await dav.file('/a', '0123456789');
    const part = await send('GET', '/a', { headers: { Depth: '0', Range: 'bytes=3-5' } });
    expect([part.status, part.headers['content-range'], part.text]).toEqual([206, 'bytes 3-5/10', '345']);
  });
});
