import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

// PUT with Content-Range, and PATCH with X-Update-Range: they append to a file.

const TYPE = 'application/x-sabredav-partialupdate';

let dav: DavServer;
beforeEach(async () => {
  dav = await startDav();
  await dav.file('/log', 'first line\n');
});
afterEach(() => dav.close());

const put = (target: string, range: string, body: string, headers: Record<string, string> = {}) =>
  dav.send('PUT', target, { body, headers: { 'Content-Range': range, ...headers } });
const patch = (target: string, range: string, body: string, headers: Record<string, string> = {}) =>
  dav.send('PATCH', target, {
    body,
    headers: { 'Content-Type': TYPE, 'X-Update-Range': range, ...headers },
  });
const etagOf = async (target: string) => String((await dav.send('HEAD', target)).headers.etag);
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');

describe('append', () => {
  test.each([
    ['PUT', 'bytes 11-15/16'],
    ['PUT', 'bytes 11-15/*'],
    ['PATCH', 'append'],
    ['PATCH', 'bytes=11-'],
    ['PATCH', 'bytes=11-15'],
  ])(
    '%s with the range %s appends to a file of 11 bytes and answers 204 with the new ETag',
    async (method, range) => {
      const before = await etagOf('/log');
      const answer = await (method === 'PUT' ? put : patch)('/log', range, 'more\n');
      expect([answer.status, dav.content('/log')]).toEqual([204, 'first line\nmore\n']);
      expect(answer.headers.etag).not.toBe(before);
      expect(answer.headers.etag).toBe(await etagOf('/log'));
    },
  );

  test('PUT with a Content-Range of the whole file creates or replaces it', async () => {
    expect((await put('/new', 'bytes 0-2/3', 'new')).status).toBe(201);
    expect((await put('/log', 'bytes 0-2/3', 'new')).status).toBe(204);
    expect([dav.content('/new'), dav.content('/log')]).toEqual(['new', 'new']);
  });

  test('PATCH of a body with a length that only its end tells appends all of it', async () => {
    const headers = { 'Content-Type': TYPE, 'X-Update-Range': 'append' };
    const answer = await dav.send('PATCH', '/log', { headers, body: Readable.from(['mo', 're']) });
    expect([answer.status, dav.content('/log')]).toEqual([204, 'first line\nmore']);
  });

  test('OPTIONS of a file names PATCH and the partial update', async () => {
    const { headers } = await dav.send('OPTIONS', '/log');
    expect(headers.allow).toContain('PATCH');
    expect(headers['dav']).toContain('sabredav-partialupdate');
  });

  test('an append to a file that is locked needs the token of the lock', async () => {
    const body =
      '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';
    const { headers } = await dav.send('LOCK', '/log', { body });
    expect((await patch('/log', 'append', 'more')).status).toBe(423);
    expect((await patch('/log', 'append', 'more', { If: `(${headers['lock-token']})` })).status).toBe(204);
    expect(dav.content('/log')).toBe('first line\nmore');
  });
});

describe('refused append', () => {
  test.each([
    ['PUT', 'bytes 5-9/10'],
    ['PUT', 'bytes 20-24/25'],
    ['PATCH', 'bytes=5-'],
    ['PATCH', 'bytes=0-4'],
  ])(
    '%s with the range %s on a file of 11 bytes answers 416 with its size and changes nothing',
    async (method, range) => {
      const answer = await (method === 'PUT' ? put : patch)('/log', range, 'other');
      expect([answer.status, answer.headers['content-range']]).toEqual([416, 'bytes */11']);
      expect(answer.text).toContain('only appends');
      expect(dav.content('/log')).toBe('first line\n');
    },
  );

  test.each([
    ['bytes 11-15/99', 'more\n'],
    ['bytes 15-11/16', 'more\n'],
    ['lines 11-15/16', 'more\n'],
    ['bytes 11-15/16', 'longer than that'],
    ['bytes 11-15/16', 'shor'],
  ])('PUT with the Content-Range %s and the body %j answers 400 and changes nothing', async (range, body) => {
    expect((await put('/log', range, body)).status).toBe(400);
    expect(dav.content('/log')).toBe('first line\n');
  });

  test.each(['', 'bytes=-5', 'bytes=11-12', 'lines=1-', 'bytes=1-2,4-5'])(
    'PATCH with the X-Update-Range %j answers 400 and says what is possible',
    async (range) => {
      const answer = await patch('/log', range, 'other');
      expect(answer.status).toBe(400);
      expect(answer.text).toContain('append');
      expect(dav.content('/log')).toBe('first line\n');
    },
  );

  test('PATCH with another type answers 415, on a folder 405, and without a file 404', async () => {
    await dav.folder('/folder');
    expect((await patch('/log', 'append', 'x', { 'Content-Type': 'text/plain' })).status).toBe(415);
    expect((await patch('/folder', 'append', 'x')).status).toBe(405);
    expect((await patch('/none', 'append', 'x')).status).toBe(404);
    expect(dav.files.paths()).toEqual(['/folder/', '/log']);
  });

  test('an append answers 412 if the file was changed before it, or while its bytes arrive', async () => {
    const stale = await etagOf('/log');
    await dav.file('/log', 'other text');
    expect((await patch('/log', 'append', 'more', { 'If-Match': stale })).status).toBe(412);
    let open: () => void = () => {};
    dav.files.commitGate = new Promise((resolve) => {
      open = resolve;
    });
    const late = put('/log', 'bytes 10-13/14', 'more');
    while (dav.files.writing === 0) await new Promise((resolve) => setImmediate(resolve));
    dav.files.commitGate = undefined;
    await dav.file('/log', 'newest');
    open();
    expect((await late).status).toBe(412);
    expect(dav.content('/log')).toBe('newest');
  });
});

test('an append to no file answers 412 when another client creates the file while its bytes arrive', async () => {
  let open: () => void = () => {};
  dav.files.commitGate = new Promise((resolve) => {
    open = resolve;
  });
  const late = put('/new', 'bytes 0-3/*', 'more');
  while (dav.files.writing === 0) await new Promise((resolve) => setImmediate(resolve));
  dav.files.commitGate = undefined;
  await dav.file('/new', 'theirs');
  open();
  expect((await late).status).toBe(412);
  expect(dav.content('/new')).toBe('theirs');
});

describe('X-Recalculate-Hash', () => {
  const checksumsIn = async () => {
    const body =
      '<D:propfind xmlns:D="DAV:" xmlns:oc="http://owncloud.org/ns"><D:prop><oc:checksums/></D:prop></D:propfind>';
    return (await dav.send('PROPFIND', '/log', { headers: { Depth: '0' }, body })).text;
  };

  test('PATCH with X-Recalculate-Hash answers the checksum of the content, which listings show from then on', async () => {
    const answer = await dav.send('PATCH', '/log', { headers: { 'X-Recalculate-Hash': 'sha1' } });
    const checksum = `SHA1:${sha1('first line\n')}`;
    expect([answer.status, answer.headers['oc-checksum']]).toEqual([204, checksum]);
    expect(await checksumsIn()).toContain(checksum);
    const second = await dav.send('PATCH', '/log', { headers: { 'X-Recalculate-Hash': 'md5' } });
    expect(second.headers['oc-checksum']).toMatch(/^MD5:[0-9a-f]{32}$/);
    expect(await checksumsIn()).toContain(`${checksum} ${second.headers['oc-checksum']}`);
  });

  test('PATCH with X-Recalculate-Hash answers a checksum that the client gave without reading the file', async () => {
    const body = 'hello';
    await dav.send('PUT', '/log', { body, headers: { 'OC-Checksum': `SHA1:${sha1(body)}` } });
    dav.files.readCutBytes = 0;
    const answer = await dav.send('PATCH', '/log', { headers: { 'X-Recalculate-Hash': 'SHA1' } });
    expect([answer.status, answer.headers['oc-checksum']]).toEqual([204, `SHA1:${sha1(body)}`]);
  });

  test('an append leaves no checksum of the former content or of the appended bytes', async () => {
    await dav.send('PUT', '/log', { body: 'hello', headers: { 'OC-Checksum': `SHA1:${sha1('hello')}` } });
    await patch('/log', 'append', ' world', { 'OC-Checksum': `SHA1:${sha1(' world')}` });
    expect((await dav.files.stat(path('/log')))?.kind).toBe('file');
    expect(await checksumsIn()).not.toContain('SHA1');
  });

  test('PATCH with an unknown X-Recalculate-Hash answers 400', async () => {
    const answer = await dav.send('PATCH', '/log', { headers: { 'X-Recalculate-Hash': 'crc' } });
    expect(answer.status).toBe(400);
  });
});
