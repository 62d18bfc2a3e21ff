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

describe('OPTIONS', () => {
  test.each([
    ['/a', 'OPTIONS, LOCK, GET, HEAD, PROPFIND, PROPPATCH, COPY, MOVE, DELETE, UNLOCK, PUT'],
    ['/f', 'OPTIONS, LOCK, GET, HEAD, PROPFIND, PROPPATCH, COPY, MOVE, DELETE, UNLOCK'],
    ['/none', 'OPTIONS, LOCK, PUT, MKCOL'],
    ['*', 'OPTIONS, LOCK, GET, HEAD, PROPFIND, PROPPATCH, COPY, MOVE, DELETE, UNLOCK'],
  ])('%s', async (target, allow) => {
    const { status, headers } = await dav.send('OPTIONS', target);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      allow,
      dav: '1, 2, 3',
      'ms-author-via': 'DAV',
      'accept-ranges': 'bytes',
      'content-length': '0',
    });
  });

  test('lets a client mount while the service is away', async () => {
    dav.files.failNext('stat', new FileError('offline', 'the service cannot be reached'));
    const { status, headers } = await dav.send('OPTIONS', '/');
    expect(status).toBe(200);
    expect(headers.allow).toContain('MKCOL');
  });

  test.each([
    ['POST', 405],
    ['PATCH', 405],
    ['REPORT', 405],
    ['SEARCH', 405],
    ['TRACE', 405],
    ['PURGE', 501],
    ['LINK', 501],
  ])('%s is no method of ours: %d', async (method, status) => {
    const answer = await dav.send(method, '/a');
    expect(answer.status).toBe(status);
    expect(answer.headers.allow).toContain('PROPFIND');
    expect(answer.text).toContain(method);
  });
});

describe('MKCOL', () => {
  test('makes a folder, with or without a slash', async () => {
    for (const [target, location] of [
      ['/new/', '/new/'],
      ['/f/other%20one', '/f/other%20one/'],
    ] as const) {
      const answer = await dav.send('MKCOL', target, { headers: { 'If-None-Match': 'JoplinIgnore-1' } });
      expect(answer.status).toBe(201);
      expect(answer.headers.location).toBe(location);
    }
    expect(dav.files.paths()).toEqual(['/a', '/f/', '/f/other one/', '/f/sub/', '/f/sub/y', '/f/x', '/new/']);
  });

  test.each([
    ['/f', 405, 'folder'],
    ['/F/', 405, 'folder'],
    ['/a', 405, 'file'],
    ['/', 405, 'folder'],
    ['/none/new', 409, 'no folder /none'],
    ['/a/new', 409, 'no folder /a'],
  ])('%s: %d', async (target, status, reason) => {
    const answer = await dav.send('MKCOL', target);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(reason);
    expect(answer.headers.allow !== undefined).toBe(status === 405);
    expect(dav.files.paths()).toEqual(ALL);
  });

  test('somebody else was quicker: 405 with Allow', async () => {
    dav.files.failNext('createFolder', new FileError('exists', 'there is a folder already'));
    const answer = await dav.send('MKCOL', '/new');
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBeDefined();
  });

  test('takes no body, but a type without one (kio) and no chunks', async () => {
    const refused = await dav.send('MKCOL', '/new', {
      body: '<x/>',
      headers: { 'Content-Type': 'text/xml' },
    });
    expect(refused.status).toBe(415);
    const chunked =
      'MKCOL /new HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect(await dav.raw(`${chunked}1\r\nx\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1.1 415 /);
    expect(dav.files.paths()).toEqual(ALL);
    expect(await dav.raw(`${chunked}0\r\n\r\n`)).toMatch(/^HTTP\/1.1 201 /);
    expect((await dav.send('MKCOL', '/kio', { headers: { 'Content-Type': 'text/xml' } })).status).toBe(201);
  });
});

describe('conditions of MOVE and COPY', () => {
  test.each(['MOVE', 'COPY'])(
    '%s hands the revisions that its conditions were true of to the drive, and answers 412 when they changed',
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

describe('DELETE', () => {
  test('removes a file, or a folder with all below it', async () => {
    expect((await dav.send('DELETE', '/a')).status).toBe(204);
    expect((await dav.send('DELETE', '/f/', { headers: { Depth: 'infinity' } })).status).toBe(204);
    expect(dav.files.paths()).toEqual([]);
    expect((await dav.send('DELETE', '/f/')).status).toBe(404);
  });

  test('what a condition was true of is what is removed', async () => {
    const tag = (await dav.send('HEAD', '/a')).headers.etag ?? '';
    for (const headers of [{ 'If-Match': tag }, { If: `([${tag}])` }]) {
      dav.files.failNext('remove', new FileError('changed', 'somebody else has written it'));
      expect((await dav.send('DELETE', '/a', { headers })).status).toBe(412);
      const { options } = dav.files.calls.findLast(({ what }) => what === 'remove') ?? {};
      expect(options).toMatchObject({ rev: tag.slice(1, -1) });
    }
    expect((await dav.send('DELETE', '/a', { headers: { 'If-Match': '*' } })).status).toBe(204);
    expect(dav.files.calls.at(-1)?.options).not.toHaveProperty('rev');
  });

  test.each([
    ['/f', { Depth: '0' }, 400],
    ['/f', { Depth: '1' }, 400],
    ['/', {}, 403],
    ['/none', {}, 404],
    ['/a', { 'If-Match': '"other"' }, 412],
    ['/a', { 'If-None-Match': '*' }, 412],
    ['/a', { If: '(["other"])' }, 412],
  ])('%s with %j: %d', async (target, headers, status) => {
    expect((await dav.send('DELETE', target, { headers })).status).toBe(status);
    expect(dav.files.paths()).toEqual(ALL);
  });

  test('is for good, unless it follows a PUT that failed', async () => {
    const recoverable = async (target: string, user = 'ann') => {
      await dav.send('DELETE', target, { user });
      return dav.files.calls.at(-1)?.options;
    };
    const failPut = (target: string) =>
      dav.send('PUT', target, { body: 'new', headers: { 'If-Match': '"other"' } });

    await failPut('/A');
    expect(await recoverable('/a', 'ben')).toEqual({ recoverable: false });
    await dav.file('/a');
    expect(await recoverable('/a')).toEqual({ recoverable: true });

    await failPut('/f/x');
    await dav.send('PUT', '/f/x', { body: 'new' });
    expect(await recoverable('/f/x')).toEqual({ recoverable: false });

    await failPut('/f/sub/y');
    await dav.clock.advance(15 * 60_000);
    expect(await recoverable('/f/sub/y')).toEqual({ recoverable: false });
  });

  test.each([
    ['was cut off', 'half', 'content of a'],
    ['was committed, but its answer did not arrive', 'whole new', 'whole new'],
  ])('can be undone as well after a PUT that %s', async (_, body, content) => {
    let open = () => {};
    dav.files.commitGate = new Promise((resolve) => {
      open = resolve;
    });
    const socket = dav.socket();
    socket.write(`PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n${body}`);
    while (dav.files.writing === 0) await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    await dav.untilAlone();
    open();
    while (dav.files.writing > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(dav.content('/a')).toBe(content);
    await dav.send('DELETE', '/a');
    expect(dav.files.calls.at(-1)).toEqual({ what: 'remove', path: '/a', options: { recoverable: true } });
  });
});

describe.each(['COPY', 'MOVE'])('%s', (method) => {
  const to = (destination: string, headers: Record<string, string> = {}) => ({
    headers: { Destination: destination, ...headers },
  });
  const left = method === 'MOVE' ? [] : ['/a'];

  test('to a new name is 201 and says where', async () => {
    const answer = await dav.send(method, '/a', to(`${dav.url}/f/b%20c`));
    expect(answer.status).toBe(201);
    expect(answer.headers.location).toBe('/f/b%20c');
    expect(dav.content('/f/b c')).toBe('content of a');
    expect(dav.content('/a') === undefined).toBe(method === 'MOVE');
  });

  test('over something is 204, whatever kind it is', async () => {
    expect((await dav.send(method, '/a', to('/f', { Overwrite: 'T' }))).status).toBe(204);
    expect(dav.content('/f')).toBe('content of a');
    expect(dav.files.paths()).toEqual([...left, '/f'].sort());
  });

  test('of a folder takes all below it along', async () => {
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
  ])('%s to %j with %j: %d, and nothing happens', async (from, destination, headers, status) => {
    const answer = await dav.send(method, from, to(destination, headers));
    expect(answer.status).toBe(status);
    expect(answer.text).not.toBe('');
    expect(dav.files.paths()).toEqual(ALL);
  });

  test('without a destination is told what is missing', async () => {
    const answer = await dav.send(method, '/a');
    expect(answer.status).toBe(400);
    expect(answer.text).toContain('Destination');
  });

  test('somebody else was quicker: 412', async () => {
    const call = method === 'COPY' ? 'copy' : 'move';
    dav.files.failNext(call, new FileError('exists', 'there is something at /b'));
    expect((await dav.send(method, '/a', to('/b', { Overwrite: 'F' }))).status).toBe(412);
  });

  test('keeps the time that rclone sends along, and says so', async () => {
    const answer = await dav.send(method, '/a', to('/b', { 'X-OC-Mtime': '1600000000' }));
    expect(answer.headers['x-oc-mtime']).toBe('accepted');
    expect((await dav.files.stat(path('/b')))?.modifiedMs).toBe(1_600_000_000_000);
    dav.files.failNext('setModified', new FileError('busy', 'the service is busy'));
    const other = await dav.send(method, '/b', to('/c', { 'X-OC-Mtime': '1700000000' }));
    expect(other.status).toBe(201);
    expect(other.headers['x-oc-mtime']).toBeUndefined();
  });

  test('a body, as RFC 2518 had one, is passed over', async () => {
    const body = '<propertybehavior xmlns="DAV:"><keepalive>*</keepalive></propertybehavior>';
    expect((await dav.send(method, '/a', { ...to('/b'), body })).status).toBe(201);
  });

  describe('compares the host of a Destination', () => {
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
    ])('%s with %j: %d', async (destination, headers, status) => {
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
    ])('%s with %j, from a trusted proxy: %d', async (destination, headers, status) => {
      await dav.close();
      dav = await startDav({ trustedProxies: new Networks(['127.0.0.1']) });
      await dav.file('/a', 'text');
      expect((await dav.send(method, '/a', to(destination, headers))).status).toBe(status);
      expect(dav.content('/b') === undefined).toBe(status === 403);
    });

    test.each(['ftp', 'file', 'smb', 'x-unknown'])(
      'of the scheme %s: 400, whatever the host',
      async (scheme) => {
        const answer = await dav.send(method, '/a', to(`${scheme}://dav.example/b`, { Host: 'dav.example' }));
        expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('http or https')]);
        expect(dav.files.paths()).toEqual(ALL);
      },
    );

    test.each(['HTTPS', 'dav', 'davs', 'webdav', 'webdavs'])('of the scheme %s: 201', async (scheme) => {
      const answer = await dav.send(method, '/a', to(`${scheme}://dav.example/b`, { Host: 'dav.example' }));
      expect(answer.status).toBe(201);
    });

    test('an nginx that speaks HTTP/1.0 and puts its own Host is let through', async () => {
      const request = `${method} /a HTTP/1.0\r\nHost: inner\r\nDestination: https://dav.example/b\r\n\r\n`;
      expect(await dav.raw(request)).toMatch(/^HTTP\/1.1 201 /);
    });
  });
});

test('COPY with depth 0 makes an empty folder', async () => {
  const headers = { Destination: '/g', Depth: '0' };
  expect((await dav.send('COPY', '/f', { headers })).status).toBe(201);
  expect(dav.files.paths()).toEqual([...ALL, '/g/'].sort());
  expect(dav.files.calls.at(-1)?.options).toEqual({ to: '/g', overwrite: true, shallow: true });
});

test('MOVE changes only the letters of a name, also when it may not overwrite', async () => {
  const headers = { Destination: '/F', Overwrite: 'F' };
  expect((await dav.send('MOVE', '/f', { headers })).status).toBe(204);
  expect(dav.files.paths()).toEqual(['/F/', '/F/sub/', '/F/sub/y', '/F/x', '/a']);
  expect((await dav.send('COPY', '/a', { headers: { Destination: '/A' } })).status).toBe(403);
  expect((await dav.send('MOVE', '/', { headers: { Destination: '/x' } })).status).toBe(403);
});
