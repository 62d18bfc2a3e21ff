import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { driveUser } from '../support/drive-user.ts';
import { eventually } from '../support/eventually.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { REFUSED_NAME } from '../support/odd-names.ts';
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

type User = ReturnType<typeof userOf>;

function report({ send }: User, token: string) {
  const asked = `<D:sync-token>${token}</D:sync-token><D:sync-level>infinite</D:sync-level><D:prop/>`;
  return send('REPORT', '/', {
    body: `<D:sync-collection xmlns:D="DAV:">${asked}</D:sync-collection>`,
  });
}

/** Returns the paths that a client with `token` is told of, and its next token. */
async function changesOf(
  user: User,
  token: string,
): Promise<{ readonly token: string; readonly paths: readonly string[] }> {
  const { status, text } = await report(user, token);
  expect(status).toBe(207);
  const next = /<D:sync-token>([^<]+)/.exec(text)?.[1] ?? '';
  const paths = [...text.matchAll(/<D:href>([^<]*)/g)].map(([, href]) => decodeURI(href ?? ''));
  if (!text.includes(' 507 ')) return { token: next, paths };
  const rest = await changesOf(user, next);
  return { token: rest.token, paths: [...paths.filter((path) => path !== '/'), ...rest.paths] };
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

test('a file with a long name is in the trash of its folder, also when that was deleted and made again', async () => {
  const { put, folder, send, remove, namesIn, copy, textOf } = userOf(
    await startGateway({ hasHistoryFolders: true }),
  );
  await folder('/docs');
  for (const name of [LONG, LONGEST, 'short']) await put(`/docs/${name}`, name);
  await remove('/docs/');
  await folder('/docs');
  expect([...(await namesIn('/.trash/docs/'))].sort()).toEqual([LONG, LONGEST, 'short'].sort());
  expect((await copy(`/.trash/docs/${LONGEST}`, `/docs/${LONGEST}`)).status).toBe(201);
  expect(await textOf(`/docs/${LONGEST}`)).toBe(LONGEST);
  expect((await send('PROPFIND', `/docs/${LONG}`)).status).toBe(404);
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

  test('that come back where they were deleted or moved away spoil neither the change feed nor the tokens of clients', async () => {
    const user = userOf(gateway);
    const { put, folder, send, namesIn } = user;
    const changedSince = (token: string) => changesOf(user, token);
    const move = (from: string, to: string) => send('MOVE', from, { headers: { destination: to } });
    await folder('/docs');
    await put(`/docs/${LONG}`, 'text');
    const { token } = await changedSince('');
    expect((await send('DELETE', '/docs/')).status).toBe(204);
    await folder('/docs');
    await put(`/docs/${OTHER}`, 'text');
    const again = await changedSince(token);
    expect(again.paths).toEqual(['/docs', '/docs/', `/docs/${OTHER}`]);
    expect((await move('/docs/', '/away/')).status).toBe(201);
    expect((await move('/away/', '/docs/')).status).toBe(201);
    expect((await move('/docs/', '/DOCS/')).status).toBe(204);
    expect((await changedSince(again.token)).paths).toContain(`/DOCS/${OTHER}`);
    expect(await namesIn('/docs/')).toEqual([OTHER]);
    await store(service, '/later', 'text');
    await eventually(async () => expect(await namesIn('/')).toContain('later'));
    expect(gateway.warnings).toEqual([]);
  });

  test('take all their files along when another program removes them: none is listed a moment later', async () => {
    const user = userOf(gateway);
    const { put, folder, namesIn } = user;
    const names = [IN_PART, `${IN_PART}a`, 'b'.repeat(300)];
    await folder('/docs');
    for (const name of names) for (const at of ['', '/docs']) await put(`${at}/${name}`, 'text');
    expect(await namesIn('/')).toHaveLength(4);
    expect(await namesIn('/docs/')).toHaveLength(3);
    const { token } = await changesOf(user, '');
    for (const at of ['', '/docs']) await rpc(service, 'files/delete_v2', { path: `${at}/${PART}` });
    await eventually(async () => expect(await namesIn('/docs/')).toEqual(['b'.repeat(300)]));
    await eventually(async () =>
      expect([...(await namesIn('/'))].sort()).toEqual(['b'.repeat(300), 'docs/']),
    );
    expect(gateway.warnings).toEqual([]);
    const refused = await report(user, token);
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('<D:valid-sync-token/>')]);
  });

  test('are listed however many there are', async () => {
    const { put, folder, namesIn } = userOf(gateway);
    const names = Array.from({ length: 30 }, (_, at) =>
      `${String(at).repeat(150)} and ${'more '.repeat(30)}`.trim(),
    );
    await folder('/docs');
    for (const name of [...names, 'short']) await put(`/docs/${name}`, 'text');
    const there = userOf(await startGateway());
    expect([...(await there.namesIn('/docs/'))].sort()).toEqual([...names, 'short'].sort());
    expect([...(await namesIn('/docs/'))].sort()).toEqual([...names, 'short'].sort());
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

test('a name that is as long as a request can be is kept', async () => {
  const { put, namesIn, textOf } = userOf(gateway);
  const names = ['n'.repeat(15_000), 'é'.repeat(2_500)];
  for (const name of names) await put(`/${name}`, name);
  expect([...(await namesIn('/'))].sort()).toEqual(names);
  for (const name of names) expect(await textOf(`/${name}`)).toBe(name);
});

test('a name that cannot be written in parts is refused with 403 and the precondition name-allowed before it is acknowledged', async () => {
  const { send } = userOf(gateway);
  const path = `/${REFUSED_NAME}`;
  const headers = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/19.0.0 (x86_64)' };
  for (const body of ['', 'text']) {
    const answer = await send('PUT', path, { headers, body });
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('<D:name-allowed/>')]);
  }
});
