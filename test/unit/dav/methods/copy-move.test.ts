import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { Networks } from '../../../../src/util/networks.ts';
import { type DavServer, startDav } from '../../../support/dav.ts';
import { path } from '../../../support/paths.ts';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/a', 'content of a');
  await dav.file('/f/x', 'content of x');
  await dav.file('/f/sub/y', 'content of y');
});
afterEach(() => dav.close());

const ALL = ['/a', '/f/', '/f/sub/', '/f/sub/y', '/f/x'];

describe('conditions of MOVE and COPY', () => {
  test.each(['MOVE', 'COPY'])(
    '%s passes the revisions that met its conditions to the drive, and answers 412 when they have changed',
    async (method) => {
      await dav.file('/b', 'old');
      const tagOf = async (at: string) => (await dav.send('HEAD', at)).headers.etag ?? '';
      const [tag, target] = [await tagOf('/a'), await tagOf('/b')];
      const what = method === 'MOVE' ? 'move' : 'copy';
      const refused = async (headers: Record<string, string>) => {
        dav.files.failNext(what, new FileError('changed', 'somebody else has written it'));
        const sent = { Destination: `${dav.url}/b`, ...headers };
        expect((await dav.send(method, '/a', { headers: sent })).status).toBe(412);
        return dav.files.calls.findLast((call) => call.what === what)?.options;
      };
      const [rev, targetRev] = [tag.slice(1, -1), target.slice(1, -1)];
      expect(await refused({ 'If-Match': tag })).toMatchObject({ rev });
      expect(await refused({ 'If-Match': tag })).not.toHaveProperty('targetRev');
      expect(await refused({ If: `<${dav.url}/b> ([${target}])` })).toMatchObject({ targetRev });
      expect(await refused({ If: `<${dav.url}/b> ([${target}])` })).not.toHaveProperty('rev');
      expect(await refused({ 'If-Match': '*' })).not.toHaveProperty('rev');
      expect(await refused({ If: `([${tag}])` })).toMatchObject({ rev });
      expect(await refused({ If: `([${tag}])` })).not.toHaveProperty('targetRev');
    },
  );

  // RFC 4918 §10.4.2: untagged lists apply to the resource that the Request-URI identifies.
  test.each([
    ['(["A"])', 204],
    ['(["B"])', 412],
    ['(Not ["A"])', 412],
    ['(Not ["B"])', 204],
    ['(Not <LOCK-OF-A>) (["B"])', 412],
    ['(<LOCK-OF-A> ["A"])', 204],
    ['(<LOCK-OF-A> ["B"])', 412],
    ['<http://x/b> (["B"])', 204],
    ['<http://x/b> (["A"])', 412],
    ['<http://x/a> (["B"]) <http://x/b> (["A"])', 412],
  ])(
    'COPY of /a (locked, with the tag "A") to /b (with the tag "B") and If: %s answers %i',
    async (form, status) => {
      await dav.file('/b', 'old');
      const [a, b] = await Promise.all(
        ['/a', '/b'].map(async (at) => (await dav.send('HEAD', at)).headers.etag),
      );
      const body = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
      <D:locktype><D:write/></D:locktype></D:lockinfo>`;
      const token = (await dav.send('LOCK', '/a', { body })).headers['lock-token'] ?? '';
      const If = form
        .replaceAll('"A"', String(a))
        .replaceAll('"B"', String(b))
        .replaceAll('<LOCK-OF-A>', String(token));
      const answer = await dav.send('COPY', '/a', { headers: { Host: 'x', Destination: 'http://x/b', If } });
      expect(answer.status).toBe(status);
      expect(dav.content('/b')).toBe(status === 204 ? 'content of a' : 'old');
    },
  );
});

describe.each(['COPY', 'MOVE'])('%s', (method) => {
  const to = (destination: string, headers: Record<string, string> = {}) => ({
    headers: { Destination: destination, ...headers },
  });
  const left = method === 'MOVE' ? [] : ['/a'];

  test(`${method} to a new name answers 201 with Location`, async () => {
    const answer = await dav.send(method, '/a', to(`${dav.url}/f/b%20c`));
    expect(answer.status).toBe(201);
    expect(answer.headers.location).toBe('/f/b%20c');
    expect(dav.content('/f/b c')).toBe('content of a');
    expect(dav.content('/a') === undefined).toBe(method === 'MOVE');
  });

  test(`${method} over an existing resource answers 204, also when it is of another kind`, async () => {
    expect((await dav.send(method, '/a', to('/f', { Overwrite: 'T' }))).status).toBe(204);
    expect(dav.content('/f')).toBe('content of a');
    expect(dav.files.paths()).toEqual([...left, '/f'].sort());
  });

  test(`${method} of a folder includes everything below it`, async () => {
    expect((await dav.send(method, '/f/', to('/g/'))).status).toBe(201);
    expect(dav.content('/g/sub/y')).toBe('content of y');
    expect((await dav.files.stat(path('/f'))) === undefined).toBe(method === 'MOVE');
  });

  test.each([
    ['/a', '/f/x', { Overwrite: 'F' }, 412],
    ['/a', '/f/x', { Overwrite: 'f' }, 412],
    ['/a', '/f/x', { Overwrite: 'maybe' }, 400],
    ['/a', '/none/b', {}, 409],
    ['/a', '/f/x/b', {}, 409],
    ['/a', '/a', {}, 403],
    ['/f', '/f/', {}, 403],
    ['/f', '/f/sub/z', {}, 403],
    ['/f/sub', '/f', {}, 403],
    ['/a', '/', {}, 403],
    ['/none', '/b', {}, 404],
    ['/f', '/g', { Depth: '1' }, 400],
    ['/a', '', {}, 400],
    ['/a', 'b', {}, 400],
    ['/a', '/%zz', {}, 400],
    ['/a', '/f/%2e%2e/b', {}, 400],
    ['/a', '/f%2Fb', {}, 400],
    ['/a', '/b%00', {}, 400],
    ['/a', '/b#c', {}, 400],
    ['/a', '/b', { 'If-Match': '"other"' }, 412],
    ['/a', '/b', { If: '(["other"])' }, 412],
  ])(
    `${method} %s to %j with %j answers %d and changes nothing`,
    async (from, destination, headers, status) => {
      const answer = await dav.send(method, from, to(destination, headers));
      expect(answer.status).toBe(status);
      expect(answer.text).not.toBe('');
      expect(dav.files.paths()).toEqual(ALL);
    },
  );

  test(`${method} without Destination answers 400 and names the header`, async () => {
    const answer = await dav.send(method, '/a');
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('Destination');
  });

  test(`${method} answers 412 when another client creates the destination first`, async () => {
    const call = method === 'COPY' ? 'copy' : 'move';
    dav.files.failNext(call, new FileError('exists', 'there is something at /b'));
    expect((await dav.send(method, '/a', to('/b', { Overwrite: 'F' }))).status).toBe(412);
  });

  test(`${method} with X-OC-Mtime sets the time and answers accepted, or omits it when that fails`, async () => {
    const answer = await dav.send(method, '/a', to('/b', { 'X-OC-Mtime': '1600000000' }));
    expect(answer.headers['x-oc-mtime']).toBe('accepted');
    expect((await dav.files.stat(path('/b')))?.modifiedMs).toBe(1_600_000_000_000);
    dav.files.failNext('setModified', new FileError('busy', 'the service is busy'));
    const other = await dav.send(method, '/b', to('/c', { 'X-OC-Mtime': '1700000000' }));
    expect(other.status).toBe(201);
    expect(other.headers['x-oc-mtime']).toBeUndefined();
  });

  test(`${method} ignores a body, which RFC 2518 allowed`, async () => {
    const body = '<propertybehavior xmlns="DAV:"><keepalive>*</keepalive></propertybehavior>';
    expect((await dav.send(method, '/a', { ...to('/b'), body })).status).toBe(201);
  });

  describe('host of Destination', () => {
    test.each([
      ['http://dav.example/b', { Host: 'dav.example' }, 201],
      ['https://DAV.example:443/b', { Host: 'dav.example:8080' }, 201],
      ['http://user@dav.example./b', { Host: 'dav.example' }, 201],
      ['http://[::1]:80/b', { Host: '[::1]:8765' }, 201],
      ['https://dav.example/b', { Host: 'inner', 'X-Forwarded-Host': 'dav.example' }, 403],
      ['https://dav.example/b', { Host: 'inner', Forwarded: 'for=1.2.3.4;host=dav.example' }, 403],
      ['https://dav.example/b', { Host: 'inner', 'X-Forwarded-For': '192.0.2.1' }, 403],
      ['https://dav.example/b', { Host: 'inner', Via: '1.1 proxy' }, 403],
      ['http://elsewhere.example/b', { Host: 'dav.example' }, 403],
      ['http://dav.example.evil/b', { Host: 'dav.example' }, 403],
      ['http://elsewhere.example/b', { Host: 'inner', 'X-Forwarded-Host': 'dav.example' }, 403],
      ['ftp://elsewhere.example/b', { Host: 'dav.example' }, 403],
    ])(`${method} to %s with %j answers %d`, async (destination, headers, status) => {
      const answer = await dav.send(method, '/a', to(destination, headers));
      expect(answer.status).toBe(status);
      if (status === 403) expect(answer.text).toContain('another server');
      expect(dav.content('/b') === undefined).toBe(status === 403);
    });

    test.each([
      ['https://dav.example/b', { Host: 'inner:80', 'X-Forwarded-Host': 'x.example, dav.example' }, 201],
      ['https://dav.example/b', { Host: 'inner', Forwarded: 'for=1.2.3.4;host="dav.example:443"' }, 201],
      ['https://dav.example/b', { Host: 'inner', 'X-Forwarded-For': '192.0.2.1' }, 201],
      ['http://elsewhere.example/b', { Host: 'inner', 'X-Forwarded-Host': 'dav.example' }, 403],
    ])(`${method} to %s with %j from a trusted proxy answers %d`, async (destination, headers, status) => {
      await dav.close();
      dav = await startDav({ trustedProxies: new Networks(['127.0.0.1']) });
      await dav.file('/a', 'text');
      expect((await dav.send(method, '/a', to(destination, headers))).status).toBe(status);
      expect(dav.content('/b') === undefined).toBe(status === 403);
    });

    test.each(['ftp', 'file', 'smb', 'x-unknown'])(
      `${method} to a Destination with the scheme %s answers 400 for any host`,
      async (scheme) => {
        const answer = await dav.send(method, '/a', to(`${scheme}://dav.example/b`, { Host: 'dav.example' }));
        expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('http or https')]);
        expect(dav.files.paths()).toEqual(ALL);
      },
    );

    test.each(['HTTPS', 'dav', 'davs', 'webdav', 'webdavs'])(
      `${method} to a Destination with the scheme %s answers 201`,
      async (scheme) => {
        const answer = await dav.send(method, '/a', to(`${scheme}://dav.example/b`, { Host: 'dav.example' }));
        expect(answer.status).toBe(201);
      },
    );

    test(`${method} from a proxy that speaks HTTP/1.0 and replaces Host answers 201`, async () => {
      const request = `${method} /a HTTP/1.0\r\nHost: inner\r\nDestination: https://dav.example/b\r\n\r\n`;
      expect(await dav.raw(request)).toMatch(/^HTTP\/1.1 201 /);
    });
  });
});

test('COPY of a folder with depth 0 creates an empty folder', async () => {
  const headers = { Destination: '/g', Depth: '0' };
  expect((await dav.send('COPY', '/f', { headers })).status).toBe(201);
  expect(dav.files.paths()).toEqual([...ALL, '/g/'].sort());
  expect(dav.files.calls.at(-1)?.options).toEqual({ to: '/g', overwrite: true, shallow: true });
});

test('MOVE changes the letter case of a name, also with Overwrite: F', async () => {
  const headers = { Destination: '/F', Overwrite: 'F' };
  expect((await dav.send('MOVE', '/f', { headers })).status).toBe(204);
  expect(dav.files.paths()).toEqual(['/F/', '/F/sub/', '/F/sub/y', '/F/x', '/a']);
  expect((await dav.send('COPY', '/a', { headers: { Destination: '/A' } })).status).toBe(403);
  expect((await dav.send('MOVE', '/', { headers: { Destination: '/x' } })).status).toBe(403);
});
