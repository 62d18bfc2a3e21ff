import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DavServer, startDav } from '../../support/dav.ts';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/a', 'old');
});
afterEach(async () => {
  expect(dav.files.paths()).toEqual(['/a']);
  expect(dav.content('/a')).toBe('old');
  expect(dav.errors).toEqual([]);
  await dav.close();
});

const TARGETS: readonly (readonly [string, number, string])[] = [
  ['/%zz', 400, '%zz'],
  ['/%', 400, '"%"'],
  ['/../etc/passwd', 400, '".."'],
  ['/a/..', 400, '".."'],
  ['/%2e%2e/%2e%2e/etc/passwd', 400, '".."'],
  ['/%2e%2e%2fetc%2fpasswd', 400, '%2F'],
  ['/a%2Fb', 400, '%2F'],
  ['/a%00.txt', 400, 'NUL'],
  [`/${'x/'.repeat(300)}y`, 414, '256'],
];

const METHODS = 'OPTIONS GET HEAD PUT DELETE MKCOL COPY MOVE PROPFIND PROPPATCH LOCK UNLOCK'.split(' ');

describe.each(TARGETS)('the path %s', (target, status, reason) => {
  test.each(METHODS)(
    `%s of the path ${target.slice(0, 40).replaceAll('%', '%%')} answers ${status} with a reason`,
    async (method) => {
      const headers = { Destination: '/b', 'Lock-Token': '<urn:x>' };
      const body = method === 'PUT' ? { body: 'new' } : {};
      const answer = await dav.send(method, target, { headers, ...body });
      expect(answer.status).toBe(status);
      if (method !== 'HEAD') expect(answer.text).toContain(reason);
    },
  );

  test.each(['COPY', 'MOVE'])(
    `%s to the Destination ${target.slice(0, 40).replaceAll('%', '%%')} is refused`,
    async (method) => {
      for (const destination of [target, `http://127.0.0.1:${dav.port}${target}`]) {
        const answer = await dav.send(method, '/a', { headers: { Destination: destination } });
        expect(answer.status).toBe(status);
        expect(answer.text).toContain(reason);
      }
    },
  );
});

test('an absolute request target of any host is a path in the drive', async () => {
  const answer = await dav.raw(
    'GET http://evil.example/../a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  );
  expect(answer).toMatch(/^HTTP\/1.1 400 /);
  const other = await dav.raw('GET http://evil.example/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(other).toMatch(/^HTTP\/1.1 200 [\s\S]*old$/);
});

test('an untagged If header does not end the process', async () => {
  for (const method of METHODS.filter((name) => !['OPTIONS', 'UNLOCK', 'PROPFIND'].includes(name))) {
    const headers = { If: '(<urn:uuid:none>)', Destination: '/b' };
    const target = method === 'MKCOL' ? '/new' : '/a';
    const body =
      method === 'PROPPATCH'
        ? {
            body: '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><x xmlns="y"/></D:prop></D:set></D:propertyupdate>',
          }
        : {};
    expect([method, (await dav.send(method, target, { headers, ...body })).status]).toEqual([method, 412]);
  }
});

describe('unexpected bodies', () => {
  test.each(['DELETE', 'GET', 'COPY', 'MOVE', 'UNLOCK'])(
    '%s with a body of 2 MB answers 413',
    async (method) => {
      const headers = { Destination: '/b', 'Lock-Token': '<urn:x>' };
      const answer = await dav.send(method, '/a', { headers, body: Buffer.alloc(2_000_000) });
      expect(answer.status).toBe(413);
      expect(answer.text).toContain(method);
    },
  );

  test('DELETE with an endless chunked body answers 413 and closes the connection', async () => {
    const socket = dav.socket();
    const answered = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))));
    socket.on('error', () => {});
    socket.write('DELETE /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const more = () => {
      while (!socket.destroyed && socket.write(chunk));
    };
    socket.on('drain', more);
    more();
    expect(await answered).toMatch(/^HTTP\/1.1 413 [\s\S]*Connection: close/);
    socket.destroy();
  });
});

describe('body lengths', () => {
  test.each(['-1', 'x', '1, 2', '1e3', '9'.repeat(30)])(
    'a request with Content-Length: %s is refused',
    async (length) => {
      const request = `PUT /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${length}\r\n\r\nnew`;
      expect(await dav.raw(request)).toMatch(/^HTTP\/1.1 4\d\d /);
    },
  );

  test('a request with two lengths, or a length and chunks, is refused', async () => {
    for (const two of [
      'Content-Length: 3\r\nContent-Length: 4',
      'Content-Length: 3\r\nTransfer-Encoding: chunked',
    ]) {
      const request = `PUT /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${two}\r\n\r\nnew`;
      expect(await dav.raw(request)).toMatch(/^HTTP\/1.1 400 /);
    }
  });

  test('a request with a malformed chunk is refused', async () => {
    const request = 'PUT /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nnew\r\n0\r\n\r\n';
    expect(await dav.raw(request)).not.toMatch(/^HTTP\/1.1 2/);
  });
});
