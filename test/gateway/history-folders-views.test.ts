import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { driveUser } from '../support/drive-user.ts';
import { parseReport, sendReport } from '../support/follower.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { parseMultistatus } from '../support/multistatus.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put as store } from '../support/service-client.ts';
import { UpstreamCalls } from '../support/upstream-calls.ts';

// What listings, searches and users see of the folders `/.versions` and `/.trash` (`--history-folders`).

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  gateway = await startTestGateway({ service, hasHistoryFolders: true, views: VIEWS });
  await gateway.following();
  client = new GatewayClient(gateway.url);
});

afterEach(async () => {
  client.close();
  await gateway.close();
  await service.close();
});

const VIEWS = {
  ann: [{ at: '/', root: '/Homes/ann' }],
  reader: [{ at: '/', root: '/Homes/ann', isReadOnly: true }],
  limited: [{ at: '/', root: '/Homes/ann', quotaBytes: 20 }],
  ruled: [{ at: '/', root: '', folders: [{ path: '/Secret', right: 'hidden' as const }] }],
  both: [
    { at: '/Mine', root: '/Homes/ann' },
    { at: '/Shared', root: '/Shared' },
  ],
};

const { send, put, remove, folder, copy, namesIn, textOf } = driveUser(() => client);

describe('listings', () => {
  beforeEach(async () => {
    await folder('/docs');
    for (const text of ['first', 'second']) await put('/docs/a.txt', text);
    await put('/gone', 'gone');
    await remove('/gone');
  });

  test('PROPFIND with depth infinity is refused in the folders, and leaves them out above', async () => {
    for (const path of ['/.versions/', '/.trash/', '/.versions/docs/a.txt/']) {
      const { status, text } = await send('PROPFIND', path, { headers: { depth: 'infinity' } });
      expect([path, status, text]).toEqual([path, 403, expect.stringContaining('propfind-finite-depth')]);
    }
    const { text } = await send('PROPFIND', '/', { headers: { depth: 'infinity' } });
    const hrefs = (await parseMultistatus(text)).map(({ href }) => href);
    expect(hrefs).toEqual(['/', '/docs/', '/docs/a.txt']);
  });

  test('the folders are listed in the root of the drive, and only when they are on', async () => {
    expect(await namesIn('/')).toEqual(['.trash/', '.versions/', 'docs/']);
    expect((await send('GET', '/')).text).toContain('.versions');
    const without = await startTestGateway({ service });
    const other = new GatewayClient(without.url);
    const listed = await other.send('PROPFIND', '/', { headers: { depth: '1' } });
    expect(listed.body.toString()).not.toMatch(/\.versions|\.trash/);
    expect((await other.send('PROPFIND', '/.trash/', { headers: { depth: '0' } })).status).toBe(404);
    expect((await other.send('PUT', '/.trash', { body: Buffer.from('mine') })).status).toBe(201);
    other.close();
    await without.close();
    expect(await namesIn('/')).toEqual(['.trash/', '.versions/', 'docs/']);
  });

  test('listings and versions that were shown before cost no call, until something changes', async () => {
    const upstream = new UpstreamCalls(service.url);
    const look = async () => {
      for (const path of [
        '/.versions/',
        '/.versions/docs/',
        '/.versions/docs/a.txt/',
        '/.trash/',
        '/.trash/docs/',
      ])
        await namesIn(path);
      return upstream.take();
    };
    const cold = await look();
    expect(cold.filter((route) => route === 'list_revisions').length).toBeLessThanOrEqual(3);
    expect(await look()).toEqual([]);
    await put('/docs/a.txt', 'third');
    upstream.take();
    expect((await look()).filter((route) => route === 'list_revisions')).toHaveLength(2);
    expect(await namesIn('/.versions/docs/a.txt/')).toHaveLength(2);
    upstream.close();
  });

  test('a listing of many files below /.versions asks for no versions', async () => {
    for (let count = 0; count < 20; count++) await put(`/docs/${count}`, 'x');
    const upstream = new UpstreamCalls(service.url);
    expect(await namesIn('/.versions/docs/')).toHaveLength(21);
    expect(upstream.take()).not.toContain('list_revisions');
    upstream.close();
  });

  test('sync-collection, SEARCH and the archive leave the folders out', async () => {
    for (const level of ['1', 'infinite'] as const) {
      const { rows } = await parseReport(await sendReport(client, '/', '', { level }));
      expect(rows.map(([href]) => href)).toEqual(level === '1' ? ['/docs/'] : ['/docs/', '/docs/a.txt']);
    }
    const refused = await sendReport(client, '/.trash', '');
    expect(refused.status).toBe(404);
    for (const depth of ['1', 'infinity']) {
      const { text } = await send('SEARCH', '/', { body: searchIn('/', depth) });
      expect(text).toContain('/docs/');
      expect(text).not.toMatch(/\.trash|\.versions/);
    }
    expect((await send('SEARCH', '/', { body: searchIn('/.trash/', '1') })).status).toBe(409);
  });

  test('the sync-token of the root is the same with the folders, and the folders have none', async () => {
    const body = '<propfind xmlns="DAV:"><prop><sync-token/></prop></propfind>';
    const token = await send('PROPFIND', '/', { headers: { depth: '0' }, body });
    expect(token.text).toMatch(/<D:sync-token>[^<]+</);
    const none = await send('PROPFIND', '/.trash/', { headers: { depth: '0' }, body });
    expect(none.text).toContain('404');
  });
});

function searchIn(href: string, depth: string): string {
  return `<D:searchrequest xmlns:D="DAV:"><D:basicsearch><D:select><D:prop><D:getcontentlength/></D:prop></D:select>
    <D:from><D:scope><D:href>${href}</D:href><D:depth>${depth}</D:depth></D:scope></D:from></D:basicsearch></D:searchrequest>`;
}

describe('users', () => {
  beforeEach(async () => {
    for (const path of ['/Homes/ann/a.txt', '/Shared/s.txt', '/Secret/x', '/above'])
      await store(service, path, 'old');
    for (const path of ['/Homes/ann/a.txt', '/Shared/s.txt', '/Secret/x', '/above']) await put(path, 'new');
    await store(service, '/Homes/ann/gone', 'ann');
    for (const path of ['/Homes/ann/gone', '/Shared/s.txt', '/Secret/x', '/above']) await remove(path);
  });

  test('a user with a root folder sees only the past below it, restores, and reads no path above it', async () => {
    const ann = { user: 'ann' };
    expect(await namesIn('/', ann)).toEqual(['.trash/', '.versions/', 'a.txt']);
    expect(await namesIn('/.trash/', ann)).toEqual(['gone']);
    expect(await textOf('/.trash/gone', ann)).toBe('ann');
    const [version] = await namesIn('/.versions/a.txt/', ann);
    expect(await textOf(`/.versions/a.txt/${version}`, ann)).toBe('old');
    expect((await copy(`/.versions/a.txt/${version}`, '/a.txt', ann)).status).toBe(204);
    expect((await copy('/.trash/gone', '/gone', ann)).status).toBe(201);
    expect([await textOf('/Homes/ann/a.txt'), await textOf('/Homes/ann/gone')]).toEqual(['old', 'ann']);
    const missing = await send('GET', '/.trash/above', ann);
    expect([missing.status, missing.text]).toEqual([404, expect.not.stringMatching(/Homes/)]);
  });

  test('a user with several drives sees the past of each below its folder, and copies out of one into the other', async () => {
    const both = { user: 'both' };
    expect(await namesIn('/', both)).toEqual(['.trash/', '.versions/', 'Mine/', 'Shared/']);
    expect(await namesIn('/.trash/', both)).toEqual(['Mine/', 'Shared/']);
    expect(await namesIn('/.trash/Mine/', both)).toEqual(['gone']);
    expect(await namesIn('/.trash/Shared/', both)).toEqual(['s.txt']);
    expect(await namesIn('/.versions/Mine/', both)).toEqual(['a.txt/']);
    expect((await copy('/.trash/Shared/s.txt', '/Mine/s.txt', both)).status).toBe(201);
    expect(await textOf('/Homes/ann/s.txt')).toBe('new');
    expect((await copy('/.trash/Shared/s.txt', '/Shared/s.txt', both)).status).toBe(201);
    expect(await textOf('/Shared/s.txt')).toBe('new');
  });

  test('a read-only user reads the past and restores nothing', async () => {
    const reader = { user: 'reader' };
    expect(await textOf('/.trash/gone', reader)).toBe('ann');
    expect((await copy('/.trash/gone', '/gone', reader)).status).toBe(403);
    const [version] = await namesIn('/.versions/a.txt/', reader);
    expect((await copy(`/.versions/a.txt/${version}`, '/a.txt', reader)).status).toBe(403);
  });

  test('the past of a hidden folder is hidden', async () => {
    const ruled = { user: 'ruled' };
    expect(await namesIn('/.trash/', ruled)).toEqual(['Homes/', 'Shared/', 'above']);
    expect(await textOf('/.trash/Secret/x', ruled)).toBe('404');
    expect((await copy('/.trash/Secret/x', '/x', ruled)).status).toBe(404);
  });

  test('a restored version and a deleted file count in the quota, and the folders do not', async () => {
    const limited = { user: 'limited' };
    await put('/Homes/ann/a.txt', 'much too long for it');
    await put('/Homes/ann/a.txt', 'x');
    const [version] = await namesIn('/.versions/a.txt/', limited);
    await put('/fill', 'y'.repeat(15), limited);
    const answer = await copy(`/.versions/a.txt/${version}`, '/a.txt', limited);
    expect([answer.status, answer.text]).toEqual([507, expect.stringContaining('quota-not-exceeded')]);
    expect((await copy(`/.versions/a.txt/${version}`, '/other', limited)).status).toBe(507);
    const body = '<propfind xmlns="DAV:"><prop><quota-used-bytes/></prop></propfind>';
    const { text } = await send('PROPFIND', '/', { ...limited, headers: { depth: '0' }, body });
    expect(text).toContain('<D:quota-used-bytes>16<');
  });
});
