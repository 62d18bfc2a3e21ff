import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DavRequest, type DavServer, startDav } from '../../../support/dav.ts';

/** Word 2016 opening a document by its URL (sabre-io/dav#961) and saving it. */
const AGENT = 'Microsoft Office Word 2014 (16.0.5083) Windows NT 10.0';
const LOCK =
  '<?xml version="1.0" encoding="utf-8" ?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>' +
  '<D:locktype><D:write/></D:locktype><D:owner><D:href>DESKTOP\\ann</D:href></D:owner></D:lockinfo>';
const PROPFIND =
  '<?xml version="1.0" encoding="utf-8" ?><D:propfind xmlns:D="DAV:" xmlns:Office="urn:schemas-microsoft-com:office:office">' +
  '<D:prop><D:resourcetype/><D:getetag/><D:getcontentlength/><Office:getmodifiedby/><D:creationdate/>' +
  '<D:getlastmodified/><D:lockdiscovery/><D:supportedlock/></D:prop></D:propfind>';
const TIMES =
  '<?xml version="1.0" encoding="utf-8" ?><D:propertyupdate xmlns:D="DAV:" xmlns:Z="urn:schemas-microsoft-com:"><D:set>' +
  '<D:prop><Z:Win32LastModifiedTime>Wed, 14 Oct 2020 08:00:00 GMT</Z:Win32LastModifiedTime></D:prop></D:set></D:propertyupdate>';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/Plan.docx', 'first draft');
});
afterEach(() => dav.close());

const send = (method: string, target: string, options: DavRequest = {}) =>
  dav.send(method, target, { agent: AGENT, ...options });

describe('Word', () => {
  test('Word opens a document for editing and saves under its lock', async () => {
    const options = await send('OPTIONS', '/');
    // Without these headers Word opens the document read-only.
    expect(options.headers).toMatchObject({
      dav: '1, 2, 3, extended-mkcol, sabredav-partialupdate',
      'ms-author-via': 'DAV',
    });
    expect(options.headers.allow).toContain('LOCK');
    expect((await send('HEAD', '/Plan.docx')).headers['content-type']).toMatch(/wordprocessingml/);
    const found = await send('PROPFIND', '/Plan.docx', {
      body: PROPFIND,
      headers: { Depth: '0', Translate: 'f', Brief: 't' },
    });
    expect(found.text).toContain('<D:lockdiscovery/>');
    expect(found.text).toContain('<D:lockscope><D:exclusive/></D:lockscope>');

    const locked = await send('LOCK', '/Plan.docx', {
      body: LOCK,
      headers: { Timeout: 'Second-180', Depth: '0' },
    });
    const token = String(locked.headers['lock-token']);
    expect(locked.text).toContain('<D:timeout>Second-180</D:timeout>');
    expect((await send('GET', '/Plan.docx')).text).toBe('first draft');
    await dav.clock.advance(45_000);
    const refreshed = await send('LOCK', '/Plan.docx', {
      headers: { If: `(${token})`, Timeout: 'Second-180' },
    });
    expect(refreshed.status).toBe(200);
    await dav.clock.advance(150_000);

    const saved = await send('PUT', '/Plan.docx', { body: 'second draft', headers: { If: `(${token})` } });
    expect(saved.status).toBe(204);
    // Word sends this without the token of its own lock.
    expect((await send('PROPPATCH', '/Plan.docx', { body: TIMES })).status).toBe(207);
    const headers = { 'Lock-Token': token };
    expect((await send('UNLOCK', '/Plan.docx', { headers })).status).toBe(204);
    expect(dav.content('/Plan.docx')).toBe('second draft');
  });

  test('Word is told who else is editing the document', async () => {
    await send('LOCK', '/Plan.docx', { body: LOCK, headers: { Depth: '0' } });
    const found = await send('PROPFIND', '/Plan.docx', {
      body: PROPFIND,
      headers: { Depth: '0' },
      user: 'ben',
    });
    expect(found.text).toContain('DESKTOP\\ann');
    const second = await send('LOCK', '/Plan.docx', { body: LOCK, user: 'ben' });
    expect(second.status).toBe(423);
    expect(second.text).toContain('<D:no-conflicting-lock>');
  });

  test('Word saves on a mapped drive by renaming the original aside and then the temporary file into place', async () => {
    const MOVE = async (from: string, to: string) => {
      const headers = { Destination: `${dav.url}${to}`, Overwrite: 'F' };
      return (await send('MOVE', from, { headers })).status;
    };
    expect((await send('PUT', '/~WRD0001.tmp', { body: 'second draft' })).status).toBe(201);
    expect(await MOVE('/Plan.docx', '/~WRL0002.tmp')).toBe(201);
    expect(await MOVE('/~WRD0001.tmp', '/Plan.docx')).toBe(201);
    expect((await send('DELETE', '/~WRL0002.tmp')).status).toBe(204);
    expect(dav.files.paths()).toEqual(['/Plan.docx']);
    expect(dav.content('/Plan.docx')).toBe('second draft');
  });
});
