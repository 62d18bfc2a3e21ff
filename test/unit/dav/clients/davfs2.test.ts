import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { type DavRequest, type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

/** davfs2 1.7 on neon (`src/webdav.c`, neon `ne_locks.c`). */
const AGENT = 'davfs2/1.7.0 neon/0.33.0';
const LOCK =
  '<?xml version="1.0" encoding="utf-8"?>\n<lockinfo xmlns=\'DAV:\'>\n <lockscope><exclusive/></lockscope>\n' +
  '<locktype><write/></locktype><owner><href>ann</href></owner></lockinfo>\n';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
});
afterEach(() => dav.close());

const send = (method: string, target: string, options: DavRequest = {}) =>
  dav.send(method, target, { agent: AGENT, ...options });

async function create(target: string): Promise<{ readonly token: string; readonly etag: string }> {
  const headers = {
    Depth: '0',
    Timeout: 'Second-1800',
    'If-None-Match': '*',
    'Content-Type': 'application/xml',
  };
  const locked = await send('LOCK', target, { body: LOCK, headers });
  expect(locked.status).toBe(201);
  const token = String(locked.headers['lock-token']);
  // neon considers the lock failed when the body lacks the token of the header.
  expect(locked.text).toContain(`<D:href>${token.slice(1, -1)}</D:href>`);
  const { etag = '' } = (await send('HEAD', target)).headers;
  return { token, etag };
}

describe('davfs2', () => {
  test('davfs2 creates a file: LOCK that creates, PUT of the content ten seconds later, UNLOCK', async () => {
    const { token, etag } = await create('/new.txt');
    await dav.clock.advance(10_000);
    const headers = { If: `<${dav.url}/new.txt> (${token})`, 'If-Match': etag };
    const put = await send('PUT', '/new.txt', { body: 'content', headers });
    expect(put.status).toBe(204);
    expect(put.headers.etag).toMatch(/^"[^"]+"$/);
    expect(put.headers['last-modified']).toBeDefined();
    expect((await send('UNLOCK', '/new.txt', { headers: { 'Lock-Token': token } })).status).toBe(204);
    expect(dav.content('/new.txt')).toBe('content');
    expect(dav.files.calls.filter(({ what }) => what === 'write')).toHaveLength(1);
  });

  test('davfs2 gets 412 for a LOCK that creates when another client created the file first', async () => {
    await dav.file('/new.txt', 'theirs');
    const locked = await send('LOCK', '/new.txt', {
      body: LOCK,
      headers: { 'If-None-Match': '*', Depth: '0' },
    });
    expect(locked.status).toBe(412);
    expect(dav.content('/new.txt')).toBe('theirs');
  });

  test('davfs2 does not overwrite a file that changed while it was in its cache', async () => {
    await dav.file('/a', 'old');
    const { etag = '' } = (await send('GET', '/a')).headers;
    await dav.file('/a', 'theirs');
    expect((await send('PUT', '/a', { body: 'mine', headers: { 'If-Match': etag } })).status).toBe(412);
    expect(dav.content('/a')).toBe('theirs');
  });

  test('davfs2 sends both conditions, and the entity tag takes precedence', async () => {
    await dav.file('/a', 'old');
    const { etag = '', 'last-modified': date = '' } = (await send('GET', '/a')).headers;
    const headers = { 'If-None-Match': etag, 'If-Modified-Since': date };
    expect((await send('GET', '/a', { headers })).status).toBe(304);
    await dav.file('/a', 'new');
    expect((await send('GET', '/a', { headers })).text).toBe('new');
  });

  test('davfs2 gets 504, on which it retries, when the service is busy', async () => {
    await dav.file('/a', 'old');
    dav.files.failNext('write', new FileError('busy', 'the service is busy'));
    expect((await send('PUT', '/a', { body: 'new' })).status).toBe(504);
    expect((await send('PUT', '/a', { body: 'new' })).status).toBe(204);
    expect(dav.content('/a')).toBe('new');
  });

  test('davfs2 renames and removes under its locks, with an If list for each resource', async () => {
    const { token } = await create('/from.txt');
    const headers = {
      Destination: `${dav.url}/to.txt`,
      Overwrite: 'T',
      If: `<${dav.url}/from.txt> (${token})`,
    };
    expect((await send('MOVE', '/from.txt', { headers })).status).toBe(201);
    expect((await dav.files.stat(path('/to.txt')))?.kind).toBe('file');
    expect((await send('DELETE', '/to.txt')).status).toBe(204);
  });
});
