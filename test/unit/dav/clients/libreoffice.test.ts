import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../../support/dav.ts';

/** LibreOffice 7 (`webdavcontent.cxx`, `SerfLockStore.cxx`). */
const AGENT = 'LibreOffice 7.6.4.1 denylistedbackend/8.5.0 OpenSSL/3.2.0';
const LOCK =
  '<?xml version="1.0" encoding="UTF-8"?><lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype>' +
  '<owner><href>LibreOffice - http://www.libreoffice.org/</href></owner></lockinfo>';
const PROPFIND =
  '<?xml version="1.0" encoding="UTF-8"?><propfind xmlns="DAV:"><prop><resourcetype xmlns="DAV:"/>' +
  '<IsReadOnly xmlns="http://ucb.openoffice.org/dav/props/"/><getcontenttype xmlns="DAV:"/><supportedlock xmlns="DAV:"/></prop></propfind>';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/Brief.odt', 'first draft');
});
afterEach(() => dav.close());

test('LibreOffice edits a document for longer than its lock timeout by refreshing the lock', async () => {
  const send = (method: string, headers: Record<string, string> = {}, body?: string) =>
    dav.send(method, '/Brief.odt', { agent: AGENT, headers, ...(body !== undefined && { body }) });
  expect((await send('OPTIONS')).headers['dav']).toContain('2');
  const found = await send('PROPFIND', { Depth: '0' }, PROPFIND);
  expect(found.status).toBe(207);
  expect(found.text).toContain('<D:lockentry>');

  const locked = await send('LOCK', { Depth: '0', Timeout: 'Second-180' }, LOCK);
  expect(locked.status).toBe(200);
  const token = String(locked.headers['lock-token']);
  expect(locked.text).toContain('LibreOffice - http://www.libreoffice.org/');
  // LibreOffice refreshes when half a minute is left, and every second if the timeout is shorter than it asked for.
  for (let saves = 0; saves < 4; saves++) {
    await dav.clock.advance(150_000);
    const refreshed = await send('LOCK', { If: `(${token})`, Timeout: 'Second-180' });
    expect(refreshed.text).toContain('<D:timeout>Second-180</D:timeout>');
  }
  expect((await send('GET')).text).toBe('first draft');
  expect((await send('PUT', { If: `(${token})` }, 'second draft')).status).toBe(204);
  expect((await send('HEAD')).headers['content-length']).toBe('12');
  expect((await send('UNLOCK', { 'Lock-Token': token })).status).toBe(204);
  expect(dav.content('/Brief.odt')).toBe('second draft');
});

test('LibreOffice saves under a new name: LOCK that creates the file, PUT, UNLOCK', async () => {
  const send = (method: string, headers: Record<string, string>, body?: string) =>
    dav.send(method, '/New.odt', { agent: AGENT, headers, ...(body !== undefined && { body }) });
  expect((await send('PROPFIND', { Depth: '0' }, PROPFIND)).status).toBe(404);
  const locked = await send('LOCK', { Depth: '0', Timeout: 'Second-180' }, LOCK);
  expect(locked.status).toBe(201);
  const token = String(locked.headers['lock-token']);
  expect((await send('PUT', { If: `(${token})` }, 'content')).status).toBe(204);
  expect((await send('UNLOCK', { 'Lock-Token': token })).status).toBe(204);
  expect(dav.content('/New.odt')).toBe('content');
});
