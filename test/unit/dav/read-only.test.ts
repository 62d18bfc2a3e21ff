import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../support/dav.ts';

// A user who may only read: below /open, this one may write.

let dav: DavServer;

beforeEach(async () => {
  const isReadOnly = (path: string) => !path.startsWith('/open');
  dav = await startDav({ wrap: (drive) => ({ ...drive, isReadOnly }) });
  await dav.file('/closed/a', 'content');
  await dav.file('/open/b', 'content');
});
afterEach(() => dav.close());

const LOCK_BODY =
  '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';
const PATCH_BODY =
  '<propertyupdate xmlns="DAV:"><set><prop><x xmlns="urn:x">1</x></prop></set></propertyupdate>';

test.each([
  ['PUT', '/closed/a', { body: 'other' }],
  ['PUT', '/closed/new', { body: 'other' }],
  ['PUT', '/closed/none/new', { body: 'other' }],
  ['DELETE', '/closed/a', {}],
  ['DELETE', '/', {}],
  ['MKCOL', '/closed/new', {}],
  ['PROPPATCH', '/closed/a', { body: PATCH_BODY }],
  ['LOCK', '/closed/a', { body: LOCK_BODY }],
  ['LOCK', '/closed/new', { body: LOCK_BODY }],
  ['UNLOCK', '/closed/a', { headers: { 'Lock-Token': '<urn:uuid:x>' } }],
  ['MOVE', '/closed/a', { headers: { Destination: '/open/a' } }],
  ['MOVE', '/open/b', { headers: { Destination: '/closed/b' } }],
  ['COPY', '/open/b', { headers: { Destination: '/closed/b' } }],
])(
  '%s %s by a read-only user answers 403 with the reason, and changes nothing',
  async (method, target, options) => {
    const { status, text: said } = await dav.send(method, target, options);
    expect([status, said]).toEqual([
      403,
      expect.stringMatching(/^read-only: you may read \/.*, but not change it/),
    ]);
    expect(['/closed/a', '/open/b'].map(dav.content)).toEqual(['content', 'content']);
    expect(['/closed/new', '/closed/b', '/open/a'].map(dav.content)).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
  },
);

test('PUT by davfs2 of a read-only user answers 423 and keeps the old content', async () => {
  const { status } = await dav.send('PUT', '/closed/a', { body: 'other', agent: 'davfs2/1.7.0' });
  expect([status, dav.content('/closed/a')]).toEqual([423, 'content']);
});

test('COPY from a read-only folder into a writable one succeeds', async () => {
  const { status } = await dav.send('COPY', '/closed/a', { headers: { Destination: '/open/a' } });
  expect([status, dav.content('/open/a')]).toEqual([201, 'content']);
});

test('PUT by a read-only user is refused before its body is sent', async () => {
  const socket = dav.socket();
  socket.write(
    'PUT /closed/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\nExpect: 100-continue\r\n\r\n',
  );
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  expect(answer).not.toContain('100 Continue');
});

test('PUT by a read-only user is refused while its body is still arriving', async () => {
  const socket = dav.socket();
  socket.write('PUT /closed/a HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\nfirst bytes');
  const [first] = await once(socket, 'data');
  expect(String(first)).toMatch(/^HTTP\/1\.1 403 /);
  socket.destroy();
  await dav.untilAlone();
});

test('reading works for a read-only user', async () => {
  expect((await dav.send('GET', '/closed/a')).text).toBe('content');
  expect((await dav.send('HEAD', '/closed/a')).status).toBe(200);
  expect((await dav.send('PROPFIND', '/closed/', { headers: { Depth: '1' } })).status).toBe(207);
});

test('OPTIONS offers no locks to Finder of a read-only user', async () => {
  const { headers } = await dav.send('OPTIONS', '/closed/a', { agent: 'WebDAVFS/3.0.0 Darwin/24.4.0' });
  expect(headers).toMatchObject({ dav: '1, 3', allow: 'OPTIONS, GET, HEAD, PROPFIND, REPORT, SEARCH' });
  expect(headers).not.toHaveProperty('ms-author-via');
  const elsewhere = await dav.send('OPTIONS', '/open/b', { agent: 'WebDAVFS/3.0.0 Darwin/24.4.0' });
  expect(elsewhere.headers).toMatchObject({ dav: '1, 2, 3, extended-mkcol, sabredav-partialupdate' });
});

test('OPTIONS offers locks to other clients of a read-only user', async () => {
  const { headers } = await dav.send('OPTIONS', '/closed/a', { agent: 'davfs2/1.7.0' });
  expect(headers).toMatchObject({ dav: '1, 2, 3', allow: 'OPTIONS, GET, HEAD, PROPFIND, REPORT, SEARCH' });
});

/** Returns the XML of a property of a file, as Depth 0 and in its folder's listing. */
async function shown(name: string, namespace: string, path: string): Promise<readonly string[]> {
  const body = `<propfind xmlns="DAV:"><prop><x:${name} xmlns:x="${namespace}"/></prop></propfind>`;
  const folder = path.slice(0, path.lastIndexOf('/') + 1);
  const own = await dav.send('PROPFIND', path, { headers: { Depth: '0' }, body });
  const listed = await dav.send('PROPFIND', folder, { headers: { Depth: '1' }, body });
  const row = listed.text.split('<D:response>').find((one) => one.includes(`<D:href>${path}</D:href>`));
  return [own.text, row ?? ''];
}

test('current-user-privilege-set has only the read privileges where the user is read-only, and write elsewhere', async () => {
  for (const xml of await shown('current-user-privilege-set', 'DAV:', '/closed/a')) {
    expect(xml).toContain('<D:privilege><D:read/></D:privilege>');
    expect(xml).not.toMatch(/<D:(write|bind|unbind)/);
  }
  for (const xml of await shown('current-user-privilege-set', 'DAV:', '/open/b'))
    expect(xml).toMatch(/<D:read\/>.*<D:write\/>.*<D:unbind\/>/);
});

test('a read-only user is offered no lock, and permissions has only the letter G', async () => {
  for (const xml of await shown('supportedlock', 'DAV:', '/closed/a')) {
    expect(xml).toContain('<D:supportedlock/>');
    expect(xml).not.toContain('lockentry');
  }
  for (const xml of await shown('supportedlock', 'DAV:', '/open/b')) expect(xml).toContain('lockentry');
  for (const xml of await shown('permissions', 'http://owncloud.org/ns', '/closed/a'))
    expect(xml).toMatch(/permissions[^>]*>G</);
});
