import { afterEach, describe, expect, test } from 'vitest';
import { Networks } from '../../../src/util/networks.ts';
import { type DavServer, startDav } from '../../support/dav.ts';

const servers: DavServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** Starts a drive with `/a.txt` and `/sub/b.txt` that is served below `/team/drive`, behind trusted proxies on this machine. */
async function drive(options: Parameters<typeof startDav>[0] = {}): Promise<DavServer> {
  const server = await startDav({
    basePath: '/team/drive',
    trustedProxies: new Networks(['127.0.0.1']),
    ...options,
  });
  servers.push(server);
  await server.file('/a.txt', 'a');
  await server.file('/sub/b.txt', 'b');
  return server;
}

function hrefsIn(xml: string): string[] {
  return [...xml.matchAll(/<D:href>([^<]*)<\/D:href>/g)].map(([, href = '']) => href);
}

const LOCK_BODY =
  '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';

describe('--base-path', () => {
  test('GET, PUT, DELETE and MKCOL take the base path off, and Location has it', async () => {
    const { send, content } = await drive();
    expect((await send('GET', '/team/drive/a.txt')).text).toBe('a');
    const put = await send('PUT', '/team/drive/n%20ew.txt', { body: 'new' });
    expect([put.status, put.headers.location]).toEqual([201, '/team/drive/n%20ew.txt']);
    expect(content('/n ew.txt')).toBe('new');
    const made = await send('MKCOL', '/team/drive/folder/');
    expect([made.status, made.headers.location]).toEqual([201, '/team/drive/folder/']);
    expect((await send('DELETE', '/team/drive/a.txt')).status).toBe(204);
    expect(content('/a.txt')).toBeUndefined();
  });

  test.each([
    ['/team/drive', '0', ['/team/drive/']],
    ['/team/drive/', '1', ['/team/drive/', '/team/drive/a.txt', '/team/drive/sub/']],
    [
      '/team/drive/',
      'infinity',
      ['/team/drive/', '/team/drive/a.txt', '/team/drive/sub/', '/team/drive/sub/b.txt'],
    ],
    ['//team/%64rive//SUB/', '1', ['/team/drive/SUB/', '/team/drive/SUB/b.txt']],
  ])('PROPFIND %s with Depth %s answers hrefs with the base path', async (target, depth, hrefs) => {
    const { send } = await drive();
    const answer = await send('PROPFIND', target, { headers: { Depth: depth } });
    expect(answer.status).toBe(207);
    expect(hrefsIn(answer.text).sort()).toEqual(hrefs);
  });

  test('PROPPATCH answers an href with the base path', async () => {
    const { send } = await drive();
    const body = '<propertyupdate xmlns="DAV:"><set><prop><x xmlns="x">1</x></prop></set></propertyupdate>';
    expect(hrefsIn((await send('PROPPATCH', '/team/drive/a.txt', { body })).text)).toEqual([
      '/team/drive/a.txt',
    ]);
  });

  test('MOVE and COPY take the base path off a Destination that is a URL or a path', async () => {
    const { send, content } = await drive();
    const moved = await send('MOVE', '/team/drive/a.txt', {
      headers: { Host: 'dav.example', Destination: 'https://dav.example/team/drive/sub/a.txt' },
    });
    expect([moved.status, moved.headers.location]).toEqual([201, '/team/drive/sub/a.txt']);
    const copied = await send('COPY', '/team/drive/sub/', { headers: { Destination: '/team/drive/copy' } });
    expect([copied.status, copied.headers.location]).toEqual([201, '/team/drive/copy/']);
    expect([content('/sub/a.txt'), content('/copy/a.txt')]).toEqual(['a', 'a']);
  });

  test.each(['/a2.txt', '/team/a2.txt', 'http://dav.example/team/drives/a2.txt', '/team/drive/../a2.txt'])(
    'MOVE to the Destination %s outside of the drive is refused and changes nothing',
    async (destination) => {
      const { send, content } = await drive();
      const headers = { Host: 'dav.example', Destination: destination };
      const answer = await send('MOVE', '/team/drive/a.txt', { headers });
      expect(answer.status).toBe(destination.includes('..') ? 400 : 403);
      expect(content('/a.txt')).toBe('a');
    },
  );

  test('MOVE to a Destination outside of the drive says where the drive is', async () => {
    const { send } = await drive();
    const answer = await send('MOVE', '/team/drive/a.txt', { headers: { Destination: '/a2.txt' } });
    expect(answer.text).toBe('"/a2.txt" is outside of the drive, which is at /team/drive/\n');
  });

  test("COPY to davgate's own folder below the base path answers 403", async () => {
    const { send } = await drive();
    const headers = { Destination: '/team/drive/.davgate/x' };
    const answer = await send('COPY', '/team/drive/a.txt', { headers });
    expect([answer.status, answer.text]).toEqual([
      403,
      expect.stringContaining('choose another Destination'),
    ]);
  });

  test('a lock has its root below the base path, in LOCK, PROPFIND and refusals', async () => {
    const { send } = await drive();
    const locked = await send('LOCK', '/team/drive/sub/', { body: LOCK_BODY });
    expect(locked.text).toContain('<D:lockroot><D:href>/team/drive/sub/</D:href></D:lockroot>');
    const found = await send('PROPFIND', '/team/drive/sub/b.txt', { headers: { Depth: '0' } });
    expect(found.text).toContain('<D:lockroot><D:href>/team/drive/sub/</D:href></D:lockroot>');
    const refused = await send('PUT', '/team/drive/sub/b.txt', { body: 'x' });
    expect([refused.status, hrefsIn(refused.text)]).toEqual([423, ['/team/drive/sub/']]);
    const above = await send('LOCK', '/team/drive/', { body: LOCK_BODY });
    expect(hrefsIn(above.text)).toEqual(['/team/drive/sub/', '/team/drive/']);
  });

  test.each(['http://dav.example/team/drive/sub/', '/team/drive/sub/'])(
    'a tagged list of If for <%s> is about the resource below the base path',
    async (tag) => {
      const { send, content } = await drive();
      const locked = await send('LOCK', '/team/drive/sub/', { body: LOCK_BODY });
      const token = String(locked.headers['lock-token']);
      const headers = { If: `<${tag}> (${token})` };
      expect((await send('PUT', '/team/drive/sub/b.txt', { headers, body: 'new' })).status).toBe(204);
      expect(content('/sub/b.txt')).toBe('new');
    },
  );

  test('a tagged list of If without the base path matches nothing', async () => {
    const { send } = await drive();
    const locked = await send('LOCK', '/team/drive/sub/', { body: LOCK_BODY });
    const headers = { If: `</sub/> (${locked.headers['lock-token']})` };
    expect((await send('PUT', '/team/drive/sub/b.txt', { headers, body: 'new' })).status).toBe(412);
  });

  test('the plain page of a folder links to its files and its parent below the base path', async () => {
    const { send } = await drive();
    const page = (await send('GET', '/team/drive/sub')).text;
    expect(page).toContain('<a href="/team/drive/sub/b.txt">');
    expect(page).toContain('<a href="/team/drive/">Up one folder</a>');
  });

  test('"#" in a request target below the base path answers 400 and is not taken for the file before it', async () => {
    const { send, content } = await drive();
    expect((await send('DELETE', '/team/drive/a.txt#b')).status).toBe(400);
    expect(content('/a.txt')).toBe('a');
  });
});

describe('requests outside of the base path', () => {
  test.each([
    ['GET', '/'],
    ['GET', '/a.txt'],
    ['PUT', '/a.txt'],
    ['GET', '/team/'],
    ['MKCOL', '/team/new/'],
    ['DELETE', '/team/'],
    ['PROPFIND', '/team/drives/'],
    ['OPTIONS', '/other'],
    ['GET', '/.davgate/api/drive'],
    ['GET', '/team/.davgate/healthz'],
  ])('%s %s answers 404 and says where the drive is', async (method, target) => {
    const { send } = await drive();
    const answer = await send(method, target);
    expect([answer.status, answer.text]).toEqual([404, 'Nothing here: the drive is at /team/drive/.\n']);
  });

  test.each(['/.davgate/healthz', '/team/drive/.davgate/healthz'])(
    'the health check is answered at %s',
    async (target) => {
      const { send } = await drive();
      expect(JSON.parse((await send('GET', target)).text)).toEqual({ status: 'ok' });
    },
  );

  test.each(['/', '/team', '/team/', '*'])(
    'OPTIONS %s answers that WebDAV is there, as Windows asks before it connects to a folder',
    async (target) => {
      const { send } = await drive();
      const answer = await send('OPTIONS', target);
      expect(answer.status).toBe(200);
      expect(answer.headers).toMatchObject({
        dav: '1, 2, 3, extended-mkcol, sabredav-partialupdate',
        'ms-author-via': 'DAV',
      });
    },
  );

  test.each([
    ['/', '0', ['/']],
    ['/', '1', ['/', '/team/']],
    ['/team', '1', ['/team/', '/team/drive/']],
  ])('PROPFIND %s with Depth %s shows the way to the drive', async (target, depth, hrefs) => {
    const { send } = await drive();
    const answer = await send('PROPFIND', target, { headers: { Depth: depth } });
    expect([answer.status, hrefsIn(answer.text)]).toEqual([207, hrefs]);
    expect(answer.text).toContain('<D:collection/>');
    expect(answer.text).not.toContain('a.txt');
  });

  test('PROPFIND above the drive with Depth infinity answers 403 propfind-finite-depth', async () => {
    const { send } = await drive();
    const answer = await send('PROPFIND', '/', { headers: { Depth: 'infinity' } });
    expect([answer.status, answer.text]).toEqual([
      403,
      expect.stringContaining('<D:propfind-finite-depth/>'),
    ]);
  });
});

describe('X-Forwarded-Prefix', () => {
  const behind = { 'X-Forwarded-Prefix': '/cloud' };

  test('hrefs, Location and Destination have the path that a trusted proxy has taken off', async () => {
    const { send, content } = await drive({ basePath: '' });
    const listed = await send('PROPFIND', '/sub/', { headers: { ...behind, Depth: '1' } });
    expect(hrefsIn(listed.text)).toEqual(['/cloud/sub/', '/cloud/sub/b.txt']);
    const headers = { ...behind, Destination: '/cloud/b2.txt' };
    expect((await send('MOVE', '/sub/b.txt', { headers })).headers.location).toBe('/cloud/b2.txt');
    expect(content('/b2.txt')).toBe('b');
  });

  test('a folder of the drive may have the name of the prefix', async () => {
    const { send, file, content } = await drive({ basePath: '' });
    await file('/cloud/a.txt', 'inner');
    const listed = await send('PROPFIND', '/cloud/', { headers: { ...behind, Depth: '1' } });
    expect(hrefsIn(listed.text)).toEqual(['/cloud/cloud/', '/cloud/cloud/a.txt']);
    expect((await send('DELETE', '/cloud/a.txt', { headers: behind })).status).toBe(204);
    expect([content('/a.txt'), content('/cloud/a.txt')]).toEqual(['a', undefined]);
  });

  test('the prefix of the proxy stands before the base path', async () => {
    const { send } = await drive();
    const listed = await send('PROPFIND', '/team/drive/sub', { headers: { ...behind, Depth: '0' } });
    expect(hrefsIn(listed.text)).toEqual(['/cloud/team/drive/sub/']);
    const above = await send('PROPFIND', '/team', { headers: { ...behind, Depth: '1' } });
    expect(hrefsIn(above.text)).toEqual(['/cloud/team/', '/cloud/team/drive/']);
  });

  test('a cached listing is right through a proxy, through another and without one', async () => {
    const { send } = await drive({ basePath: '' });
    const cases: { 'X-Forwarded-Prefix'?: string }[] = [
      {},
      behind,
      { 'X-Forwarded-Prefix': '/other/' },
      {},
      behind,
    ];
    for (const headers of cases) {
      const prefix = (headers['X-Forwarded-Prefix'] ?? '').replace(/\/$/, '');
      for (const depth of ['1', 'infinity']) {
        const listed = await send('PROPFIND', '/sub/', { headers: { ...headers, Depth: depth } });
        expect(hrefsIn(listed.text)).toEqual([`${prefix}/sub/`, `${prefix}/sub/b.txt`]);
      }
    }
  });

  test('X-Forwarded-Prefix of a client that is not a trusted proxy is ignored', async () => {
    const { send } = await drive({ basePath: '', trustedProxies: new Networks(['10.0.0.0/8']) });
    const listed = await send('PROPFIND', '/sub/', { headers: { ...behind, Depth: '0' } });
    expect(hrefsIn(listed.text)).toEqual(['/sub/']);
  });

  test.each(['cloud', '//evil.example', '/a/../b'])('the malformed prefix %j answers 400', async (prefix) => {
    const { send } = await drive({ basePath: '' });
    const answer = await send('GET', '/a.txt', { headers: { 'X-Forwarded-Prefix': prefix } });
    expect([answer.status, answer.text]).toEqual([
      400,
      'X-Forwarded-Prefix is not a path like /drive; correct it in the reverse proxy.\n',
    ]);
  });
});
