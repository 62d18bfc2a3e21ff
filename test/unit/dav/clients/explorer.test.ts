import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DavRequest, type DavServer, startDav } from '../../../support/dav.ts';
import { MemoryDrive } from '../../../support/memory-drive.ts';
import { path } from '../../../support/paths.ts';

/** The Mini-Redirector of Windows 10, as traced in wsgidav#112, npm-WebDAV-Server#37 and sftpgo#207. */
const AGENT = 'Microsoft-WebDAV-MiniRedir/10.0.19045';
const LOCK =
  '<?xml version="1.0" encoding="utf-8" ?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>' +
  '<D:locktype><D:write/></D:locktype><D:owner><D:href>DESKTOP\\ann</D:href></D:owner></D:lockinfo>';
const win32 = (properties: string) =>
  '<?xml version="1.0" encoding="utf-8" ?><D:propertyupdate xmlns:D="DAV:" xmlns:Z="urn:schemas-microsoft-com:">' +
  `<D:set><D:prop>${properties}</D:prop></D:set></D:propertyupdate>`;
const TIMES = win32(
  '<Z:Win32CreationTime>Wed, 14 Oct 2020 08:00:00 GMT</Z:Win32CreationTime>' +
    '<Z:Win32LastAccessTime>Wed, 14 Oct 2020 08:00:00 GMT</Z:Win32LastAccessTime>' +
    '<Z:Win32LastModifiedTime>Wed, 14 Oct 2020 08:00:00 GMT</Z:Win32LastModifiedTime>' +
    '<Z:Win32FileAttributes>00000020</Z:Win32FileAttributes>',
);

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.folder('/docs');
});
afterEach(() => dav.close());

const send = (method: string, target: string, options: DavRequest = {}) =>
  dav.send(method, target, { agent: AGENT, ...options, headers: { translate: 'f', ...options.headers } });
const list = (target: string, depth: string) => send('PROPFIND', target, { headers: { Depth: depth } });

describe('Explorer', () => {
  test('Explorer browses from the root without a redirect', async () => {
    const discovery = await dav.send('OPTIONS', '/', { agent: 'DavClnt' });
    expect(discovery.status).toBe(200);
    expect(discovery.headers).toMatchObject({
      dav: '1, 2, 3, extended-mkcol, sabredav-partialupdate',
      'ms-author-via': 'DAV',
    });
    expect((await list('/', '0')).status).toBe(207);
    expect((await list('/docs', '1')).status).toBe(207);
    expect((await list('/docs/desktop.ini', '0')).status).toBe(404);
  });

  test('Explorer copies a file in: empty PUT, LOCK without Depth, times, PUT, times, UNLOCK', async () => {
    expect((await list('/docs/a.txt', '0')).status).toBe(404);
    expect((await list('/docs', '0')).status).toBe(207);
    expect((await send('PUT', '/docs/a.txt', { body: '' })).status).toBe(201);
    const locked = await send('LOCK', '/docs/a.txt', { body: LOCK, headers: { Timeout: 'Second-3600' } });
    expect(locked.status).toBe(200);
    expect(locked.text).toContain('<D:timeout>Second-3600</D:timeout>');
    const token = String(locked.headers['lock-token']);

    const If = `(${token})`;
    const times = await send('PROPPATCH', '/docs/a.txt', { body: TIMES, headers: { If } });
    expect(times.status).toBe(207);
    expect(times.text.match(/<D:status>[^<]*/g)).toEqual(['<D:status>HTTP/1.1 200 OK']);
    expect((await send('HEAD', '/docs/a.txt')).headers['content-length']).toBe('0');
    expect(dav.files.calls.filter(({ what }) => what === 'write')).toEqual([]);

    expect((await send('PUT', '/docs/a.txt', { body: 'the content', headers: { If } })).status).toBe(204);
    expect((await send('PROPPATCH', '/docs/a.txt', { body: TIMES, headers: { If } })).status).toBe(207);
    // Older builds omit the angle brackets.
    const headers = { 'Lock-Token': token.replace(/[<>]/g, '') };
    expect((await send('UNLOCK', '/docs/a.txt', { headers })).status).toBe(204);

    expect(dav.content('/docs/a.txt')).toBe('the content');
    expect((await dav.files.stat(path('/docs/a.txt')))?.modifiedMs).toBe(Date.UTC(2020, 9, 14, 8));
    expect(dav.files.calls.filter(({ what }) => what === 'write')).toHaveLength(1);
  });

  test('Explorer sets times under its own lock without its token', async () => {
    await dav.file('/docs/a.txt', 'x');
    await send('LOCK', '/docs/a.txt', { body: LOCK });
    expect((await send('PROPPATCH', '/docs/a.txt', { body: TIMES })).status).toBe(207);
    expect((await send('PROPPATCH', '/docs/a.txt', { body: TIMES, user: 'ben' })).status).toBe(423);
  });

  test('Explorer creates a folder and renames it, also in letter case only', async () => {
    expect((await send('MKCOL', '/New%20folder')).status).toBe(201);
    expect((await send('PROPPATCH', '/New%20folder', { body: TIMES })).status).toBe(207);
    for (const [from, to, status] of [
      ['/New%20folder', '/work', 201],
      ['/work', '/Work', 204],
    ] as const) {
      const headers = { Destination: `${dav.url}${to}`, Overwrite: 'F' };
      expect((await send('MOVE', from, { headers })).status).toBe(status);
    }
    expect(dav.files.paths()).toEqual(['/Work/', '/docs/']);
    const headers = { Destination: `${dav.url}/Docs`, Overwrite: 'F' };
    expect((await send('MOVE', '/Work', { headers })).status).toBe(412);
  });
});

test('Explorer sets the times of an empty file while davgate stores it at the service, and the file keeps them', async () => {
  const drive = await MemoryDrive.open();
  const { files } = drive;
  const { properties } = files.state;
  const change: typeof properties.change = async (...words) => {
    await files.commitPlaceholder(path('/a.txt'));
    await properties.change(...words);
  };
  const state = { ...files.state, properties: { ...properties, change } };
  await dav.close();
  dav = await startDav({ wrap: () => ({ files, state }) });
  expect((await send('PUT', '/a.txt', { body: '' })).status).toBe(201);
  expect((await send('PROPPATCH', '/a.txt', { body: TIMES })).status).toBe(207);
  expect(drive.remote.paths).toEqual(['/a.txt']);
  expect((await list('/a.txt', '0')).text).toMatch(/Win32CreationTime[^>]*>Wed, 14 Oct 2020 08:00:00 GMT</);
  await drive.close();
});
