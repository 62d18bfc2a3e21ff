import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../../support/dav.ts';

/** Zotero (`xpcom/storage/webdav.js`): its test of a server, then one item. */
const AGENT = 'Mozilla/5.0 (X11; Linux x86_64; rv:115.0) Gecko/20100101 Zotero/7.0.3';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.folder('/zotero');
});
afterEach(() => dav.close());

test('Zotero accepts the server in its test and syncs a file', async () => {
  const send = (method: string, target: string, body?: string, headers: Record<string, string> = {}) =>
    dav.send(method, target, { agent: AGENT, headers, ...(body !== undefined && { body }) });
  const options = await send('OPTIONS', '/zotero/');
  expect(options.status).toBe(200);
  expect(options.headers['dav']).toBeDefined();
  const propfind = '<propfind xmlns="DAV:"><prop><getcontentlength/></prop></propfind>';
  const found = await send('PROPFIND', '/zotero/', propfind, {
    Depth: '0',
    'Content-Type': 'text/xml; charset=utf-8',
  });
  expect(found.status).toBe(207);
  expect((await send('GET', '/zotero/nonexistent.prop')).status).toBe(404);
  expect((await send('PUT', '/zotero/zotero-test-file.prop', ' ')).status).toBe(201);
  expect((await send('GET', '/zotero/zotero-test-file.prop')).status).toBe(200);
  expect((await send('DELETE', '/zotero/zotero-test-file.prop')).status).toBe(204);

  expect((await send('DELETE', '/zotero/ABCD2345.prop')).status).toBe(404);
  expect((await send('PUT', '/zotero/ABCD2345.zip', 'PK')).status).toBe(201);
  const prop = '<properties version="1"><mtime>1</mtime><hash>x</hash></properties>';
  expect((await send('PUT', '/zotero/ABCD2345.prop', prop)).status).toBe(201);
  const listed = await send('PROPFIND', '/zotero/', propfind, { Depth: '1' });
  expect(listed.text).toContain('<D:href>/zotero/ABCD2345.zip</D:href>');
});
