import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { StateUnwritable } from '../../../../src/state/errors.ts';
import { JournalFull } from '../../../../src/state/journal.ts';
import { pseudoRandomBytes } from '../../../support/bytes.ts';
import { type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
});
afterEach(() => dav.close());

const md5 = (text: string) => createHash('md5').update(text).digest('base64');
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');

describe('PUT', () => {
  test('PUT of a new file answers 201 with Location, ETag and Last-Modified', async () => {
    const answer = await dav.send('PUT', '/a%20b.txt', { body: 'hello' });
    expect(answer.status).toBe(201);
    const file = await dav.files.stat(path('/a b.txt'));
    expect(answer.headers.etag).toBe(file?.kind === 'file' ? `"${file.rev}"` : 'no file');
    expect(answer.headers['last-modified']).toBe(new Date(dav.clock.now()).toUTCString());
    expect(answer.headers.location).toBe('/a%20b.txt');
    expect(dav.content('/a b.txt')).toBe('hello');
  });

  test('PUT over a file answers 204 with a new ETag', async () => {
    const first = await dav.send('PUT', '/a', { body: 'one' });
    const second = await dav.send('PUT', '/a', { body: 'two' });
    expect(second.status).toBe(204);
    expect(second.text).toBe('');
    expect(second.headers.location).toBeUndefined();
    expect(second.headers.etag).not.toBe(first.headers.etag);
    expect(dav.content('/a')).toBe('two');
  });

  test.each([0, 1, 65_536, 3_000_000])(
    'PUT stores %d bytes sent with a length or in chunks',
    async (sizeBytes) => {
      const bytes = pseudoRandomBytes(sizeBytes, 7);
      expect((await dav.send('PUT', '/whole', { body: bytes })).status).toBe(201);
      const body = Readable.from(sizeBytes === 0 ? [] : [bytes]);
      expect((await dav.send('PUT', '/chunks', { body })).status).toBe(201);
      expect(dav.files.contentAt(path('/whole'))?.equals(bytes)).toBe(true);
      expect(dav.files.contentAt(path('/chunks'))?.equals(bytes)).toBe(true);
    },
  );

  test('PUT with X-OC-Mtime stores that time and answers X-OC-Mtime: accepted', async () => {
    const answer = await dav.send('PUT', '/a', { body: 'x', headers: { 'X-OC-Mtime': '1600000000' } });
    expect(answer.headers['x-oc-mtime']).toBe('accepted');
    expect((await dav.files.stat(path('/a')))?.modifiedMs).toBe(1_600_000_000_000);
    expect(answer.headers['last-modified']).toBe('Sun, 13 Sep 2020 12:26:40 GMT');
  });

  test.each(['yesterday', '0x5f5e1000', '', '1e9', '9'.repeat(12)])(
    'PUT with the invalid X-OC-Mtime %j stores the current time and does not answer accepted',
    async (time) => {
      const answer = await dav.send('PUT', '/a', { body: 'x', headers: { 'X-OC-Mtime': time } });
      expect(answer.status).toBe(201);
      expect(answer.headers['x-oc-mtime']).toBeUndefined();
      expect((await dav.files.stat(path('/a')))?.modifiedMs).toBe(dav.clock.now());
    },
  );
});

describe('refused PUT', () => {
  test('PUT on a folder answers 405 and writes nothing', async () => {
    await dav.folder('/f');
    const answer = await dav.send('PUT', '/f', { body: 'x' });
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).not.toMatch(/\bPUT\b/);
    expect(dav.files.paths()).toEqual(['/f/']);
  });

  test('PUT without a parent folder answers 409 and writes nothing', async () => {
    await dav.file('/file');
    for (const target of ['/none/a', '/file/a']) {
      const answer = await dav.send('PUT', target, { body: 'x' });
      expect(answer.status).toBe(409);
      expect(answer.text).toContain('no folder');
    }
    expect(dav.files.paths()).toEqual(['/file']);
  });

  test('PUT with a trailing slash answers 409 and writes nothing', async () => {
    const answer = await dav.send('PUT', '/a/', { body: 'x' });
    expect(answer.status).toBe(409);
    expect(answer.text).toContain('slash');
    expect(dav.files.paths()).toEqual([]);
  });

  test.each([
    ['Content-Range', 'bytes 0-0/9', 400],
    ['Content-Encoding', 'gzip', 415],
    ['Content-Encoding', 'identity, GZIP', 415],
  ])('PUT with %s: %s answers %d and writes nothing', async (name, value, status) => {
    await dav.file('/a', 'old');
    const answer = await dav.send('PUT', '/a', { body: 'x', headers: { [name]: value } });
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(name);
    expect(dav.content('/a')).toBe('old');
  });

  test.each([
    ['Content-MD5', md5('other')],
    ['OC-Checksum', `SHA1:${sha1('other')}`],
    ['OC-Checksum', `MD5:${'0'.repeat(32)} SHA1:${sha1('hello')}`],
    ['Digest', `md5=${md5('hello')}, sha-256=${Buffer.alloc(32).toString('base64')}`],
    ['Content-Digest', `sha-512=:${Buffer.alloc(64).toString('base64')}:`],
    ['Repr-Digest', `sha-256=:${Buffer.alloc(32).toString('base64')}:`],
    ['Content-MD5', 'not a checksum'],
    ['OC-Checksum', 'SHA1:abc'],
  ])('PUT with a wrong checksum in %s: %s writes nothing', async (name, value) => {
    await dav.file('/a', 'old');
    const answer = await dav.send('PUT', '/a', { body: 'hello', headers: { [name]: value } });
    expect(answer.status).toBe(400);
    expect(answer.text).toContain(name);
    expect(dav.content('/a')).toBe('old');
  });

  test.each([
    ['Content-MD5', md5('hello')],
    ['OC-Checksum', `SHA1:${sha1('hello')}`],
    ['OC-Checksum', 'ADLER32:062c0215'],
    ['Digest', `MD5=${md5('hello')},unixsum=30637`],
    ['Content-Digest', `sha-256=:${createHash('sha256').update('hello').digest('base64')}:`],
  ])('PUT with the right checksum in %s: %s stores the file', async (name, value) => {
    const answer = await dav.send('PUT', '/a', { body: 'hello', headers: { [name]: value } });
    expect(answer.status).toBe(201);
    expect(dav.content('/a')).toBe('hello');
  });

  test('PUT whose X-Expected-Entity-Length differs from its chunks writes nothing', async () => {
    await dav.file('/a', 'old');
    for (const expected of ['4', '6']) {
      const headers = { 'X-Expected-Entity-Length': expected };
      const answer = await dav.send('PUT', '/a', { body: Readable.from(['hello']), headers });
      expect(answer.status).toBe(400);
      expect(dav.content('/a')).toBe('old');
    }
    const headers = { 'X-Expected-Entity-Length': '5' };
    expect((await dav.send('PUT', '/a', { body: Readable.from(['hello']), headers })).status).toBe(204);
  });

  test.each([
    ['Content-Length: 10\r\n', 'hello'],
    ['Transfer-Encoding: chunked\r\n', '5\r\nhello\r\n'],
  ])('PUT whose connection ends before its body (%j) writes nothing', async (header, body) => {
    await dav.file('/a', 'old');
    const socket = dav.socket();
    const writing = untilWriting(dav);
    socket.write(`PUT /a HTTP/1.1\r\nHost: localhost\r\n${header}\r\n${body}`);
    await writing;
    socket.destroy();
    await untilFailed(dav);
    expect(dav.content('/a')).toBe('old');
  });
});

describe('conditional PUT', () => {
  test.each([
    [{ 'If-Match': '"nothing"' }, 412],
    [{ 'If-Match': 'unquoted' }, 412],
    [{ 'If-None-Match': '*' }, 412],
    [{ 'If-Match': '*' }, 204],
    [{ 'If-None-Match': '"nothing"' }, 204],
    [{ 'If-None-Match': 'JoplinIgnore-1234' }, 204],
    [{ 'If-Unmodified-Since': 'Fri, 01 Jan 2010 00:00:00 GMT' }, 412],
    [{ 'If-Unmodified-Since': 'Fri, 01 Jan 2100 00:00:00 GMT' }, 204],
    [{ 'If-Unmodified-Since': 'some day' }, 204],
    [{ 'If-Modified-Since': 'Fri, 01 Jan 2100 00:00:00 GMT' }, 204],
    [{ If: '(["nothing"])' }, 412],
    [{ If: '(Not ["nothing"])' }, 204],
  ])('PUT with %j on a file answers %d', async (headers, status) => {
    await dav.file('/a', 'old');
    expect((await dav.send('PUT', '/a', { body: 'new', headers })).status).toBe(status);
    expect(dav.content('/a')).toBe(status === 204 ? 'new' : 'old');
  });

  test.each([
    [{ 'If-Match': '*' }, 412],
    [{ 'If-Match': '"nothing"' }, 412],
    [{ 'If-None-Match': '*' }, 201],
    [{ 'If-Unmodified-Since': 'Fri, 01 Jan 2100 00:00:00 GMT' }, 412],
  ])('PUT with %j on an unmapped URL answers %d', async (headers, status) => {
    expect((await dav.send('PUT', '/a', { body: 'new', headers })).status).toBe(status);
    expect(dav.content('/a')).toBe(status === 201 ? 'new' : undefined);
  });

  test.each(['%s', 'W/%s', '"other", %s', '"a,b" , W/%s'])(
    'PUT with If-Match: %s matches the current entity tag',
    async (form) => {
      const { headers } = await dav.send('PUT', '/a', { body: 'old' });
      const ifMatch = form.replace('%s', String(headers.etag));
      const answer = await dav.send('PUT', '/a', { body: 'new', headers: { 'If-Match': ifMatch } });
      expect(answer.status).toBe(204);
    },
  );

  test.each([
    ['If-Match', (tag: string) => tag],
    ['If', (tag: string) => `([${tag}])`],
  ])('a PUT whose %s was met before another PUT committed answers 412', async (name, condition) => {
    const { headers } = await dav.send('PUT', '/a', { body: 'old' });
    const finish = await begunPut(`${name}: ${condition(String(headers.etag))}`);
    await dav.file('/a', 'meanwhile');
    expect(await finish()).toMatch(/^HTTP\/1.1 412 /);
    expect(dav.content('/a')).toBe('meanwhile');
  });

  test('a PUT with If-Match: * whose file is deleted while the body arrives answers 412 and creates nothing', async () => {
    await dav.file('/a', 'old');
    const finish = await begunPut('If-Match: *');
    expect((await dav.send('DELETE', '/a')).status).toBe(204);
    expect(await finish()).toMatch(/^HTTP\/1.1 412 /);
    expect(dav.content('/a')).toBeUndefined();
  });

  test('of two concurrent PUTs with If-None-Match: * only one creates the file', async () => {
    const socket = dav.socket();
    const answered = new Promise<string>((resolve) => socket.on('data', (data) => resolve(String(data))));
    socket.write('PUT /a HTTP/1.1\r\nHost: x\r\nIf-None-Match: *\r\nContent-Length: 3\r\n\r\none');
    const second = await dav.send('PUT', '/a', { body: 'two', headers: { 'If-None-Match': '*' } });
    const first = Number((await answered).slice(9, 12));
    expect([first, second.status].sort()).toEqual([201, 412]);
    expect(dav.content('/a')).toBe(first === 201 ? 'one' : 'two');
    socket.destroy();
  });
});

describe('Expect: 100-continue', () => {
  const ask = (target: string, more = '') =>
    `PUT ${target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n${more}\r\n`;

  test('PUT with Expect: 100-continue gets 100, sends its body and creates the file', async () => {
    const socket = dav.socket();
    const pieces: string[] = [];
    const next = () =>
      new Promise<void>((resolve) => socket.once('data', (piece) => resolve(void pieces.push(`${piece}`))));
    const leave = next();
    socket.write(ask('/a'));
    await leave;
    expect(pieces.join('')).toBe('HTTP/1.1 100 Continue\r\n\r\n');
    const answer = next();
    socket.write('hello');
    await answer;
    expect(pieces[1]).toMatch(/^HTTP\/1.1 201 /);
    expect(dav.content('/a')).toBe('hello');
    socket.destroy();
  });

  test('a refused PUT with Expect: 100-continue gets no 100, and its connection is closed', async () => {
    expect(await dav.raw(ask('/none/a'))).toMatch(/^HTTP\/1.1 409 [\s\S]*Connection: close/);
    await dav.file('/a', 'old');
    expect(await dav.raw(ask('/a', 'If-None-Match: *\r\n'))).toMatch(/^HTTP\/1.1 412 /);
    expect(await dav.raw(ask('/%zz'))).toMatch(/^HTTP\/1.1 400 /);
    expect(dav.content('/a')).toBe('old');
  });
});

describe('unread bodies', () => {
  const SIZE_BYTES = 8 * 1024 * 1024;

  test('a refused PUT is answered although the client first sends all of a large body', async () => {
    const answer = await dav.send('PUT', '/none/a', { body: Buffer.alloc(SIZE_BYTES) });
    expect(answer.status).toBe(409);
    expect(answer.headers.connection).toBe('close');
  });

  test('a refused PUT with a small unread body keeps its connection', async () => {
    const refused = 'PUT /none/a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello';
    const next = 'OPTIONS / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
    expect(await dav.raw(refused + next)).toMatch(/^HTTP\/1.1 409 [\s\S]*HTTP\/1.1 200 OK/);
  });

  test('a PUT is answered with 507 when the drive fails in the middle of the body', async () => {
    dav.files.failNext('write', new FileError('no-space', 'the drive is full'));
    const answer = await dav.send('PUT', '/a', { body: Buffer.alloc(SIZE_BYTES) });
    expect(answer.status).toBe(507);
    expect(answer.text).toContain('the drive is full');
  });
});

/** Sends a PUT of `/a` without the last byte of its body. Returns a function that sends it and returns the answer. */
async function begunPut(header: string): Promise<() => Promise<string>> {
  const socket = dav.socket();
  const answered = new Promise<string>((resolve) => socket.on('data', (data) => resolve(String(data))));
  const writing = untilWriting(dav);
  socket.write(`PUT /a HTTP/1.1\r\nHost: x\r\n${header}\r\nContent-Length: 3\r\n\r\nne`);
  await writing;
  return async () => {
    socket.write('w');
    const answer = await answered;
    socket.destroy();
    return answer;
  };
}

/** Waits until a write begins that had not begun when this was called. */
async function untilWriting({ files }: DavServer): Promise<void> {
  const before = files.calls.length;
  while (!files.calls.slice(before).some(({ what }) => what === 'write')) await tick();
}

/** Waits until no write is running. */
async function untilFailed({ files }: DavServer): Promise<void> {
  while (files.writing > 0) await tick();
}

function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

test.each([
  ['PUT', 'write', new JournalFull('the disk is full')],
  ['PUT', 'write', new StateUnwritable('/state', 'the disk is full')],
  ['MKCOL', 'createFolder', new StateUnwritable('/state', 'the disk is full')],
  ['LOCK', 'keepPlaceholder', new JournalFull('the disk is full')],
] as const)('%s answers 507 when the disk is full (%s: %s)', async (method, call, error) => {
  dav.files.failNext(call, error);
  const lock =
    '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';
  const body = { PUT: 'text', MKCOL: '', LOCK: lock }[method];
  expect((await dav.send(method, '/full', { body })).status).toBe(507);
});
