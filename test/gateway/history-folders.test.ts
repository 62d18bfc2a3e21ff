import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { driveUser, type Sending } from '../support/drive-user.ts';
import { eventually } from '../support/eventually.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { parseMultistatus } from '../support/multistatus.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc, put as store } from '../support/service-client.ts';

// The folders `/.versions` and `/.trash` of WebDAV clients (`--history-folders`).

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  gateway = await startTestGateway({ service, hasHistoryFolders: true });
  await gateway.following();
  client = new GatewayClient(gateway.url);
});

afterEach(async () => {
  client.close();
  await gateway.close();
  await service.close();
});

const { send, put, remove, folder, copy, rowsOf, namesIn, textOf } = driveUser(() => client);

describe('/.versions', () => {
  beforeEach(async () => {
    await folder('/docs');
    for (const text of ['first', 'second', 'third']) await put('/docs/a b.txt', text);
  });

  test('/.versions mirrors the tree, and a file is a folder of its older revisions, the newest first', async () => {
    await folder('/docs/in');
    expect(await namesIn('/.versions/')).toEqual(['docs/']);
    expect(await namesIn('/.versions/docs/')).toEqual(['a b.txt/', 'in/']);
    const names = await namesIn('/.versions/docs/a b.txt/');
    for (const name of names) expect(name).toMatch(/^\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ-[0-9a-f]+\.txt$/);
    const texts = await Promise.all(names.map((name) => textOf(`/.versions/docs/a b.txt/${name}`)));
    expect(texts).toEqual(['second', 'first']);
    expect(names.map((name) => name.slice(0, 20))).toEqual(
      names.map((name) => name.slice(0, 20)).sort((one, other) => (one < other ? 1 : -1)),
    );
  });

  test('GET of a version has its length, type and entity tag, and answers ranges and conditions', async () => {
    const [name] = await namesIn('/.versions/docs/a b.txt/');
    const path = `/.versions/docs/a b.txt/${name}`;
    const { headers } = await send('HEAD', path);
    expect(headers).toMatchObject({
      'content-length': '6',
      'content-type': expect.stringMatching(/^text\/plain/),
    });
    const etag = String(headers['etag']);
    expect(etag).toMatch(/^"[0-9a-f]+"$/);
    const part = await send('GET', path, { headers: { range: 'bytes=1-3' } });
    expect([part.status, part.text, part.headers['content-range']]).toEqual([206, 'eco', 'bytes 1-3/6']);
    expect((await send('GET', path, { headers: { range: 'bytes=9-' } })).status).toBe(416);
    expect((await send('GET', path, { headers: { 'if-none-match': etag } })).status).toBe(304);
    expect((await send('GET', path, { headers: { 'if-match': '"other"' } })).status).toBe(412);
  });

  describe('the report version-tree', () => {
    const NAMED =
      '<D:prop><D:version-name/><D:getcontentlength/><D:getlastmodified/><D:creator-displayname/></D:prop>';
    const report = (path: string, inside = NAMED) =>
      send('REPORT', path, { body: `<D:version-tree xmlns:D="DAV:">${inside}</D:version-tree>` });
    const reportsOf = async (path: string) => {
      const body = '<D:propfind xmlns:D="DAV:"><D:prop><D:supported-report-set/></D:prop></D:propfind>';
      const { text } = await send('PROPFIND', path, { headers: { depth: '0' }, body });
      return [...text.matchAll(/<D:report><D:([^/]+)\/>/g)].map(([, name]) => name);
    };

    test('version-tree of a file has a row for the file and one for each older version, whose hrefs have its content', async () => {
      const { status, text } = await report('/docs/a b.txt');
      expect(status).toBe(207);
      const rows = await parseMultistatus(text);
      const older = await namesIn('/.versions/docs/a b.txt/');
      const hrefs = rows.map(({ href }) => href);
      const folderHref = '/.versions/docs/a%20b.txt/';
      expect(hrefs).toEqual(['/docs/a%20b.txt', ...older.map((name) => `${folderHref}${name}`)]);
      expect(await Promise.all(hrefs.map((href) => textOf(decodeURI(href))))).toEqual([
        'third',
        'second',
        'first',
      ]);
      const shown = (name: string) => rows.map(({ properties }) => properties.get(`{DAV:}${name}`)?.text);
      expect(shown('getcontentlength')).toEqual(['5', '6', '5']);
      expect(shown('version-name').slice(1)).toEqual(older.map((name) => /Z-(.*)\.txt/.exec(name)?.[1]));
      expect(new Set(shown('version-name')).size).toBe(3);
      expect(rows[0]?.statuses).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 404 Not Found']);
    });

    test('version-tree is for files of the drive alone, and supported-report-set says so', async () => {
      const [name] = await namesIn('/.versions/docs/a b.txt/');
      for (const path of ['/docs', '/', '/.versions/docs/a b.txt', `/.versions/docs/a b.txt/${name}`]) {
        const { status, text } = await report(path);
        expect([path, status, text]).toEqual([path, 403, expect.stringContaining('<D:supported-report/>')]);
      }
      expect((await report('/docs/none')).status).toBe(404);
      expect(await reportsOf('/docs/a b.txt')).toEqual(['version-tree']);
      expect(await reportsOf('/docs')).toEqual(['sync-collection']);
      expect(await reportsOf('/.versions/docs/')).toEqual([]);
      expect(await reportsOf(`/.versions/docs/a b.txt/${name}`)).toEqual([]);
      const deep = { headers: { depth: '1' }, body: `<D:version-tree xmlns:D="DAV:"/>` };
      expect((await send('REPORT', '/docs/a b.txt', deep)).status).toBe(400);
    });

    test('version-tree without --history-folders answers 403 and names the option', async () => {
      const plain = await startTestGateway({ service });
      const other = new GatewayClient(plain.url);
      const body = Buffer.from('<D:version-tree xmlns:D="DAV:"/>');
      const answer = await other.send('REPORT', '/docs/a b.txt', { body });
      other.close();
      await plain.close();
      expect([answer.status, answer.body.toString()]).toEqual([
        403,
        expect.stringContaining('--history-folders'),
      ]);
    });
  });

  test('COPY of a version to the place of its file restores it, and the replaced content stays a version', async () => {
    const [, first] = await namesIn('/.versions/docs/a b.txt/');
    const answer = await copy(`/.versions/docs/a b.txt/${first}`, '/docs/a b.txt');
    expect(answer.status).toBe(204);
    expect(await textOf('/docs/a b.txt')).toBe('first');
    const names = await namesIn('/.versions/docs/a b.txt/');
    const texts = await Promise.all(names.map((name) => textOf(`/.versions/docs/a b.txt/${name}`)));
    expect(texts).toEqual(['third', 'second', 'first']);
  });

  test('COPY of a version anywhere else writes a file with its content and time', async () => {
    const time = { headers: { 'x-oc-mtime': '1000000000' } };
    await put('/timed', 'old', time);
    await put('/timed', 'new');
    const [name] = await namesIn('/.versions/timed/');
    expect((await copy(`/.versions/timed/${name}`, '/docs/copy')).status).toBe(201);
    const { headers, text } = await send('GET', '/docs/copy');
    expect([text, headers['last-modified']]).toEqual(['old', 'Sun, 09 Sep 2001 01:46:40 GMT']);
    expect(await textOf('/timed')).toBe('new');
  });

  test('COPY of a version heeds Overwrite, If-Match, and locks of the destination', async () => {
    const [name] = await namesIn('/.versions/docs/a b.txt/');
    const from = `/.versions/docs/a b.txt/${name}`;
    expect((await copy(from, '/docs/a b.txt', { headers: { overwrite: 'F' } })).status).toBe(412);
    expect((await copy(from, '/docs/a b.txt', { headers: { 'if-match': '"other"' } })).status).toBe(412);
    const stale = { if: '</docs/a%20b.txt> (["other"])' };
    expect((await copy(from, '/docs/a b.txt', { headers: stale })).status).toBe(412);
    expect((await send('LOCK', '/docs/a b.txt', { body: LOCK })).status).toBe(200);
    expect((await copy(from, '/docs/a b.txt')).status).toBe(423);
    expect(await textOf('/docs/a b.txt')).toBe('third');
  });

  test('a folder of versions is not copied, and a version replaces no folder', async () => {
    const [name] = await namesIn('/.versions/docs/a b.txt/');
    expect((await copy('/.versions/docs', '/copy')).status).toBe(403);
    expect((await copy('/.versions/docs/a b.txt', '/copy')).status).toBe(403);
    expect((await copy(`/.versions/docs/a b.txt/${name}`, '/docs')).status).toBe(403);
    expect(await namesIn('/')).toEqual(['.trash/', '.versions/', 'docs/']);
  });

  test('what is not there is 404, also in the letter case of another path', async () => {
    const [name = ''] = await namesIn('/.versions/docs/a b.txt/');
    for (const path of [
      '/.versions/none',
      '/.versions/docs/a b.txt/none',
      '/.versions/docs/a b.txt/none/none',
    ])
      expect([path, (await send('GET', path)).status]).toEqual([path, 404]);
    expect(await textOf(`/.VERSIONS/Docs/A B.txt/${name}`)).toBe('second');
  });

  test('in write-back mode a version is shown that was between two writes of the same content', async () => {
    const journaled = await startTestGateway({ service, hasHistoryFolders: true, writeBack: true });
    const its = new GatewayClient(journaled.url);
    const user = driveUser(() => its);
    try {
      await user.put('/again', 'same');
      expect(await user.namesIn('/.versions/again/')).toEqual([]);
      for (const text of ['between', 'same']) {
        await user.put('/again', text);
        await journaled.landed();
      }
      const names = await user.namesIn('/.versions/again/');
      const texts = await Promise.all(names.map((name) => user.textOf(`/.versions/again/${name}`)));
      expect(texts).toEqual(['between', 'same']);
    } finally {
      its.close();
      await journaled.close();
    }
  });

  test('a file that only this machine has shows no versions', async () => {
    await put('/docs/.DS_Store', 'local');
    expect(await namesIn('/.versions/docs/.DS_Store/')).toEqual([]);
  });
});

describe('/.trash', () => {
  beforeEach(async () => {
    await folder('/docs', '/docs/in', '/docs/in/deep', '/docs/in/empty');
    for (const path of ['/docs/a.txt', '/docs/kept', '/docs/in/b', '/docs/in/deep/c']) await put(path, path);
    await remove('/docs/a.txt');
    await remove('/docs/in');
  });

  test('/.trash has deleted files and folders by their paths, with the time of the deletion', async () => {
    expect(await namesIn('/.trash/')).toEqual(['docs/']);
    expect(await namesIn('/.trash/docs/')).toEqual(['a.txt', 'in/']);
    expect(await namesIn('/.trash/docs/in/')).toEqual(['b', 'deep/', 'empty/']);
    expect(await namesIn('/.trash/docs/in/deep/')).toEqual(['c']);
    expect(await textOf('/.trash/docs/in/deep/c')).toBe('/docs/in/deep/c');
    const before = Date.now();
    await put('/old', 'old', { headers: { 'x-oc-mtime': '1000000000' } });
    await remove('/old');
    const row = (await rowsOf('/.trash/')).find(({ href }) => href === '/.trash/old');
    expect(row?.properties.get('{DAV:}getlastmodified')?.text).toBe('Sun, 09 Sep 2001 01:46:40 GMT');
    const created = row?.properties.get('{DAV:}creationdate')?.text ?? '';
    // The service has whole seconds.
    expect(Date.parse(created)).toBeGreaterThanOrEqual(before - 1000);
    const body = '<propfind xmlns="DAV:"><prop><deleted xmlns="https://davgate.dev/ns"/></prop></propfind>';
    const { text } = await send('PROPFIND', '/.trash/old', { headers: { depth: '0' }, body });
    expect(text).toContain(`>${created}<`);
    expect(await textOf('/.trash/docs/kept')).toBe('404');
  });

  test('GET of a deleted file answers ranges and conditions', async () => {
    const { headers } = await send('HEAD', '/.trash/docs/a.txt');
    expect(headers['content-length']).toBe('11');
    const part = await send('GET', '/.trash/docs/a.txt', { headers: { range: 'bytes=-3' } });
    expect([part.status, part.text]).toEqual([206, 'txt']);
    const known = { headers: { 'if-none-match': String(headers['etag']) } };
    expect((await send('GET', '/.trash/docs/a.txt', known)).status).toBe(304);
  });

  test('COPY of a deleted file to its old place restores it, and the trash has it no longer', async () => {
    const answer = await copy('/.trash/docs/a.txt', '/docs/a.txt');
    expect([answer.status, answer.headers['location']]).toEqual([201, '/docs/a.txt']);
    expect(await textOf('/docs/a.txt')).toBe('/docs/a.txt');
    expect(await namesIn('/.trash/docs/')).toEqual(['in/']);
    expect((await copy('/.trash/docs/a.txt', '/docs/a.txt')).status).toBe(404);
  });

  test('COPY of a deleted folder to its old place restores it with everything that was deleted with it', async () => {
    expect((await copy('/.trash/docs/in/', '/docs/in/')).status).toBe(201);
    expect(await namesIn('/docs/in/')).toEqual(['b', 'deep/', 'empty/']);
    expect(await textOf('/docs/in/deep/c')).toBe('/docs/in/deep/c');
    expect(await namesIn('/.trash/docs/')).toEqual(['in/', 'a.txt']);
    expect(await namesIn('/.trash/docs/in/')).toEqual(['deep/', 'empty/']);
    expect(await namesIn('/.trash/docs/in/deep/')).toEqual([]);
  });

  test('COPY of a deleted folder anywhere else copies it with its content, and with Depth 0 without', async () => {
    expect((await copy('/.trash/docs/in', '/found')).status).toBe(201);
    expect(await namesIn('/found/')).toEqual(['b', 'deep/', 'empty/']);
    expect(await textOf('/found/deep/c')).toBe('/docs/in/deep/c');
    expect((await copy('/.trash/docs/in', '/shallow', { headers: { depth: '0' } })).status).toBe(201);
    expect(await namesIn('/shallow/')).toEqual([]);
    expect(await namesIn('/.trash/docs/')).toEqual(['a.txt', 'in/']);
  });

  test('COPY of a deleted file anywhere else writes it with the time that it had', async () => {
    await put('/old', 'old', { headers: { 'x-oc-mtime': '1000000000' } });
    await remove('/old');
    expect((await copy('/.trash/old', '/docs/kept')).status).toBe(204);
    const { headers, text } = await send('GET', '/docs/kept');
    expect([text, headers['last-modified']]).toEqual(['old', 'Sun, 09 Sep 2001 01:46:40 GMT']);
  });

  test('COPY of a deleted file whose folder is gone is 409 until the folder is there', async () => {
    expect((await copy('/.trash/docs/in/b', '/docs/in/b')).status).toBe(409);
    await folder('/docs/in');
    expect((await copy('/.trash/docs/in/b', '/docs/in/b')).status).toBe(201);
    expect(await textOf('/docs/in/b')).toBe('/docs/in/b');
    expect(await namesIn('/.trash/docs/in/')).toEqual(['deep/', 'empty/']);
  });

  test('a deletion by another program shows', async () => {
    expect(await namesIn('/.trash/')).toEqual(['docs/']);
    await store(service, '/elsewhere', 'e');
    await rpc(service, 'files/delete_v2', { path: '/elsewhere' });
    await eventually(async () => expect(await namesIn('/.trash/')).toEqual(['docs/', 'elsewhere']));
  });
});

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;

const PROPPATCH = `<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><x xmlns="y">1</x></D:prop></D:set></D:propertyupdate>`;

describe('changes', () => {
  test('every change below the folders, and of them, is 403 with a DAV:error body', async () => {
    for (const text of ['first', 'second']) await put('/a.txt', text);
    await put('/gone', 'gone');
    await remove('/gone');
    const [version] = await namesIn('/.versions/a.txt/');
    const changes: readonly (readonly [string, Sending])[] = [
      ['PUT', { body: 'new' }],
      ['PATCH', { body: 'new', headers: { 'x-update-range': 'append' } }],
      ['DELETE', {}],
      ['MKCOL', {}],
      ['PROPPATCH', { body: PROPPATCH }],
      ['LOCK', { body: LOCK }],
      ['MOVE', { headers: { destination: '/moved' } }],
    ];
    const paths = [
      '/.trash',
      '/.trash/gone',
      '/.versions/new',
      '/.versions/a.txt',
      `/.versions/a.txt/${version}`,
    ];
    for (const path of paths)
      for (const [method, how] of changes) {
        const { status, text } = await send(method, path, how);
        expect([method, path, status, text]).toEqual([
          method,
          path,
          403,
          expect.stringContaining('<D:error'),
        ]);
      }
    for (const method of ['COPY', 'MOVE']) {
      const { status, text } = await send(method, '/a.txt', { headers: { destination: '/.trash/a.txt' } });
      expect([method, status, text]).toEqual([method, 403, expect.stringContaining('<D:need-privileges/>')]);
    }
    expect(await namesIn('/')).toEqual(['.trash/', '.versions/', 'a.txt']);
    expect(await namesIn('/.trash/')).toEqual(['gone']);
  });

  test('clients see that the folders are read-only', async () => {
    const body =
      '<propfind xmlns="DAV:"><prop><supportedlock/><current-user-privilege-set/></prop></propfind>';
    const { text } = await send('PROPFIND', '/.trash/', { headers: { depth: '0' }, body });
    expect(text).not.toMatch(/lockentry|<D:write\/>/);
    const { headers } = await send('OPTIONS', '/.trash/');
    expect(headers['allow']).toBe('OPTIONS, GET, HEAD, PROPFIND, COPY');
    expect((await send('OPTIONS', '/')).headers['allow']).toMatch(/MOVE/);
  });

  test('the web application changes nothing below the folders', async () => {
    const call = (name: string, values: Readonly<Record<string, string>>) =>
      send('POST', `/.davgate/api/${name}`, {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(values),
      });
    expect((await call('undelete', { path: '/.trash/a' })).status).toBe(403);
    expect((await call('restore', { path: '/.versions/a', rev: '1' })).status).toBe(403);
  });
});
