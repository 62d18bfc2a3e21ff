import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { driveUser } from '../support/drive-user.ts';
import { eventually } from '../support/eventually.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc, put as store } from '../support/service-client.ts';

// Names that are longer than the service takes: it has them as folders with parts of a name.

let service: TestService;
let gateway: TestGateway;
const closers: (() => unknown)[] = [];

beforeEach(async () => {
  service = await startTestService();
  closers.push(() => service.close());
  gateway = await startGateway();
});

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startGateway({ hasHistoryFolders = false } = {}): Promise<TestGateway> {
  const started = await startTestGateway({ service, hasHistoryFolders });
  closers.push(() => started.close());
  await started.following();
  return started;
}

function userOf({ url }: TestGateway) {
  const client = new GatewayClient(url);
  closers.push(() => client.close());
  return driveUser(() => client);
}

async function namesAtService(path: string): Promise<readonly string[]> {
  const { json } = await rpc(service, 'files/list_folder', { path });
  return (json as { entries: readonly { name: string }[] }).entries.map(({ name }) => name).sort();
}

const LONG = `${'long and '.repeat(40)}longer.txt`;
const OTHER = `${'long and '.repeat(40)}another.txt`;
const LONGEST = '＼é'.repeat(400);
const NAMES = [LONG, OTHER, LONGEST];
const PART = `${'a'.repeat(250)}␗`;
const IN_PART = 'a'.repeat(300);

describe('a name that is longer than the service takes', () => {
  test('names files and folders that are made, listed and read, here and at a gateway that has just started', async () => {
    const here = userOf(gateway);
    for (const name of NAMES) {
      await here.folder(`/${name}`);
      expect((await here.send('MKCOL', `/${name}`)).status).toBe(405);
      for (const file of [...NAMES, 'short']) await here.put(`/${name}/${file}`, file);
    }
    for (const user of [here, userOf(await startGateway())]) {
      expect([...(await user.namesIn('/'))].sort()).toEqual(NAMES.map((name) => `${name}/`).sort());
      for (const name of NAMES) {
        expect([...(await user.namesIn(`/${name}/`))].sort()).toEqual([...NAMES, 'short'].sort());
        for (const file of NAMES) expect(await user.textOf(`/${name}/${file}`)).toBe(file);
      }
      expect((await user.send('PROPFIND', '/', { headers: { depth: 'infinity' } })).status).toBe(207);
    }
  });

  test('is seen in a listing of a whole tree by a gateway that has just started', async () => {
    const here = userOf(gateway);
    await here.folder('/docs', `/docs/${LONG}`);
    await here.put(`/docs/${LONG}/${LONGEST}`, 'text');
    const there = userOf(await startGateway());
    const { text } = await there.send('PROPFIND', '/docs/', { headers: { depth: 'infinity' } });
    expect([...text.matchAll(/<D:href>([^<]*)/g)].map(([, href]) => decodeURI(href ?? ''))).toEqual([
      '/docs/',
      `/docs/${LONG}/`,
      `/docs/${LONG}/${LONGEST}`,
    ]);
  });

  test('is given and lost by MOVE, COPY and DELETE, also over another file with a long name', async () => {
    const { send, put, folder, copy, textOf, namesIn } = userOf(gateway);
    const move = (from: string, to: string) =>
      send('MOVE', from, { headers: { destination: encodeURI(to) } });
    await folder('/docs');
    await put(`/docs/${LONG}`, 'long');
    await put(`/docs/${OTHER}`, 'other');
    expect((await copy('/docs', `/${LONGEST}`)).status).toBe(201);
    expect((await move(`/docs/${LONG}`, `/docs/${OTHER}`)).status).toBe(204);
    expect((await move('/docs', `/${LONGEST}/${OTHER}s`)).status).toBe(201);
    expect((await send('DELETE', `/${LONGEST}/${LONG}`)).status).toBe(204);
    for (const user of [{ textOf, namesIn }, userOf(await startGateway())]) {
      expect(await user.namesIn('/')).toEqual([`${LONGEST}/`]);
      expect([...(await user.namesIn(`/${LONGEST}/`))].sort()).toEqual([OTHER, `${OTHER}s/`].sort());
      expect(await user.textOf(`/${LONGEST}/${OTHER}s/${OTHER}`)).toBe('long');
      expect(await user.textOf(`/${LONGEST}/${OTHER}`)).toBe('other');
      expect(await user.textOf(`/${LONGEST}/${LONG}`)).toBe('404');
    }
  });

  test('means the same file in another letter case', async () => {
    const { put, textOf, namesIn } = userOf(gateway);
    await put(`/${LONG}`, 'first');
    await put(`/${LONG.toUpperCase()}`, 'second');
    for (const user of [{ textOf, namesIn }, userOf(await startGateway())]) {
      expect(await user.namesIn('/')).toHaveLength(1);
      expect(await user.textOf(`/${LONG}`)).toBe('second');
    }
  });

  test('keeps older versions and a deleted file, which COPY restores', async () => {
    const { put, remove, copy, textOf, namesIn } = userOf(await startGateway({ hasHistoryFolders: true }));
    await put(`/${LONG}`, 'first');
    await put(`/${LONG}`, 'second');
    const [version] = await namesIn(`/.versions/${LONG}/`);
    expect(await textOf(`/.versions/${LONG}/${version}`)).toBe('first');
    await remove(`/${LONG}`);
    expect(await namesIn('/.trash/')).toEqual([LONG]);
    expect((await copy(`/.trash/${LONG}`, `/${LONG}`)).status).toBe(201);
    expect(await textOf(`/${LONG}`)).toBe('second');
  });
});

describe('folders with parts of long names', () => {
  test('have all parts but the last, and are not shown in the drive', async () => {
    const { put, send, namesIn } = userOf(gateway);
    await put(`/${IN_PART}`, 'text');
    await put('/short', 'short');
    expect(await namesAtService('')).toEqual([PART, 'short']);
    expect(await namesAtService(`/${PART}`)).toEqual([`␗${'a'.repeat(50)}`]);
    expect((await send('PROPFIND', `/${PART}`)).status).toBe(404);
    expect((await send('DELETE', `/${IN_PART}`)).status).toBe(204);
    expect(await namesIn('/')).toEqual(['short']);
    expect(await userOf(await startGateway()).namesIn('/')).toEqual(['short']);
  });

  test('that are removed with their folder leave what was cached', async () => {
    const { put, folder, send, namesIn } = userOf(gateway);
    await folder('/docs', '/kept');
    await put(`/docs/${LONG}`, 'text');
    expect((await send('DELETE', '/docs/')).status).toBe(204);
    await store(service, '/kept/later', 'text');
    await eventually(async () => expect(await namesIn('/kept/')).toEqual(['later']));
    expect(gateway.warnings).toEqual([]);
  });

  test('take all their files along when another program removes them: none is listed a moment later', async () => {
    const { put, namesIn } = userOf(gateway);
    for (const name of [IN_PART, `${IN_PART}a`, 'b'.repeat(300)]) await put(`/${name}`, 'text');
    expect(await namesIn('/')).toHaveLength(3);
    await rpc(service, 'files/delete_v2', { path: `/${PART}` });
    await eventually(async () => expect(await namesIn('/')).toEqual(['b'.repeat(300)]));
  });

  test('show files that another gateway has put there, and skip what is no part of a name, with a warning', async () => {
    const { namesIn } = userOf(gateway);
    expect(await namesIn('/')).toEqual([]);
    await store(service, `/${PART}/␗${'a'.repeat(50)}`, 'text');
    await store(service, `/${PART}/other`, 'text');
    await eventually(async () => expect(await namesIn('/')).toEqual([IN_PART]));
    const later = await startGateway();
    expect(await userOf(later).namesIn('/')).toEqual([IN_PART]);
    expect(later.warnings).toMatchObject([{ reason: expect.stringContaining('no part of a name') }]);
  });
});

test('a name that cannot be written in parts is refused with 403 and the precondition name-allowed before it is acknowledged', async () => {
  const { send } = userOf(gateway);
  const path = `/e${'\u0316'.repeat(300)}`;
  const headers = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/19.0.0 (x86_64)' };
  for (const body of ['', 'text']) {
    const answer = await send('PUT', path, { headers, body });
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('<D:name-allowed/>')]);
  }
});
