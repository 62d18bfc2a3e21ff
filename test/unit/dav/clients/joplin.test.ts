import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../../support/dav.ts';

/** Joplin (`packages/lib/WebDavApi.js`): a malformed entity tag in all requests but GET and HEAD, because of iOS caches. */
const AGENT = 'Joplin/1.0';
const JUNK = { 'If-None-Match': 'JoplinIgnore-1637493021', 'Cache-Control': 'no-store' };
const PROPFIND =
  '<?xml version="1.0" encoding="UTF-8"?><d:propfind xmlns:d="DAV:"><d:prop xmlns:oc="http://owncloud.org/ns">' +
  '<d:getlastmodified/><d:resourcetype/></d:prop></d:propfind>';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
});
afterEach(() => dav.close());

test('Joplin synchronises with a malformed entity tag in every request', async () => {
  const send = (method: string, target: string, body?: string, headers: Record<string, string> = {}) =>
    dav.send(method, target, {
      agent: AGENT,
      headers: { ...JUNK, ...headers },
      ...(body !== undefined && { body }),
    });
  expect((await send('MKCOL', '/notes/')).status).toBe(201);
  expect((await send('MKCOL', '/notes/')).status).toBe(405);
  expect((await send('MKCOL', '/notes/locks/')).status).toBe(201);
  const text = { 'Content-Type': 'text/plain' };
  expect((await send('PUT', '/notes/info.json', '{"version":3}', text)).status).toBe(201);
  expect((await send('PUT', '/notes/info.json', '{"version":4}', text)).status).toBe(204);
  const stat = await send('PROPFIND', '/notes/info.json', PROPFIND, { Depth: '0' });
  expect(stat.status).toBe(207);
  expect(stat.text).toMatch(/<D:getlastmodified>[^<]+GMT<\/D:getlastmodified>/);
  expect(
    (await send('PROPFIND', '/notes/', PROPFIND, { Depth: '1' })).text.match(/<D:response>/g),
  ).toHaveLength(3);
  const destination = { Destination: `${dav.url}/notes/info2.json`, Overwrite: 'T' };
  expect((await send('MOVE', '/notes/info.json', undefined, destination)).status).toBe(201);
  expect((await dav.send('GET', '/notes/info2.json', { agent: AGENT })).text).toBe('{"version":4}');
  expect((await send('DELETE', '/notes/info2.json')).status).toBe(204);
  expect((await send('DELETE', '/notes/info2.json')).status).toBe(404);
});
