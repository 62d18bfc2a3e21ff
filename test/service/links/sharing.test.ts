import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { linkPermissions } from '../../support/metadata-shapes.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, refusal, refusalIn, rpc } from '../../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;

beforeAll(async () => {
  service = await startTestService({ clock });
});
afterAll(() => service.close());

const call = (name: string, argument: unknown, token = service.token) =>
  rpc(service, `sharing/${name}`, argument, { token });
const create = (argument: object) => call('create_shared_link_with_settings', argument);

interface LinkJson {
  readonly url: string;
  readonly name: string;
}

async function createdUrl(argument: object): Promise<string> {
  return ((await create(argument)).json as LinkJson).url;
}

async function otherToken(email: string): Promise<string> {
  const account = await service.service.addAccount({
    email,
    givenName: 'O',
    surname: 'T',
    mayDeletePermanently: false,
  });
  const scopes = ['sharing.read', 'sharing.write', 'files.content.write'] as const;
  return service.service.grant({ accountId: account.id, scopes });
}

const FILE_URL = expect.stringMatching(
  /^http:\/\/127\.0\.0\.1:\d+\/scl\/fi\/[0-9a-f]{32}\/[^/?]+\?rlkey=[0-9a-f]{32}&dl=0$/,
);

describe('sharing/create_shared_link_with_settings', () => {
  test('create_shared_link_with_settings of a file answers its link', async () => {
    const file = await put(service, '/Shared/A b.txt', 'text');
    const answered = await create({ path: '/shared/a B.txt', settings: { requested_visibility: 'public' } });
    expect([answered.status, answered.json]).toEqual([
      200,
      {
        '.tag': 'file',
        url: FILE_URL,
        id: file['id'],
        name: 'A b.txt',
        path_lower: '/shared/a b.txt',
        link_permissions: linkPermissions('public'),
        client_modified: file['client_modified'],
        server_modified: file['server_modified'],
        rev: file['rev'],
        size: 4,
      },
    ]);
  });

  test('create_shared_link_with_settings of a folder by its id, without settings, answers a public link', async () => {
    await put(service, '/Folder/x', 'text');
    const { id } = (await rpc(service, 'files/get_metadata', { path: '/Folder' })).json as { id: string };
    const answered = await create({ path: id });
    expect([answered.status, answered.json]).toEqual([
      200,
      {
        '.tag': 'folder',
        url: expect.stringMatching(/\/scl\/fo\/[0-9a-f]{32}\/h\?rlkey=[0-9a-f]{32}&dl=0$/),
        id,
        name: 'Folder',
        path_lower: '/folder',
        link_permissions: linkPermissions('public'),
      },
    ]);
  });

  test('create_shared_link_with_settings takes a password, an expiry, audience no_one and allow_download', async () => {
    for (const name of ['password', 'expires', 'none', 'kept']) await put(service, `/Set/${name}`, 'text');
    const password = { requested_visibility: 'password', link_password: 'secret' };
    expect((await create({ path: '/Set/password', settings: password })).json).toMatchObject({
      link_permissions: linkPermissions('password'),
    });
    const expires = '2030-01-01T00:00:00Z';
    expect((await create({ path: '/Set/expires', settings: { expires } })).json).toMatchObject({ expires });
    expect((await create({ path: '/Set/none', settings: { audience: 'no_one' } })).json).toMatchObject({
      link_permissions: linkPermissions('no_one'),
    });
    expect((await create({ path: '/Set/kept', settings: { allow_download: false } })).json).toMatchObject({
      link_permissions: { allow_download: false },
    });
  });

  test.each<[object, string]>([
    [{}, 'invalid_settings'],
    [{ expires: null }, 'invalid_settings'],
    [{ expires: '2001-01-01T00:00:00Z' }, 'invalid_settings'],
    [{ requested_visibility: 'password' }, 'invalid_settings'],
    [{ require_password: true, link_password: '' }, 'invalid_settings'],
    [{ requested_visibility: 'public', link_password: 'x' }, 'invalid_settings'],
    [{ requested_visibility: 'team_only' }, 'not_authorized'],
    [{ audience: { '.tag': 'team' } }, 'not_authorized'],
    [{ access: 'editor' }, 'not_authorized'],
  ])('create_shared_link_with_settings with settings %j answers %s', async (settings, tag) => {
    await put(service, '/Settings', 'text');
    expect(refusalIn(await create({ path: '/Settings', settings }))).toEqual(
      refusal(409, `settings_error/${tag}`, { '.tag': 'settings_error', settings_error: { '.tag': tag } }),
    );
  });

  test('create_shared_link_with_settings of an item with a link answers shared_link_already_exists, with the link if its settings are the same', async () => {
    await put(service, '/Twice', 'text');
    const first = (await create({ path: '/Twice' })).json;
    expect(refusalIn(await create({ path: '/Twice' }))).toEqual(
      refusal(409, 'shared_link_already_exists/metadata', {
        '.tag': 'shared_link_already_exists',
        shared_link_already_exists: { '.tag': 'metadata', metadata: first },
      }),
    );
    const settings = { expires: '2030-01-01T00:00:00Z' };
    expect(refusalIn(await create({ path: '/Twice', settings }))).toEqual(
      refusal(409, 'shared_link_already_exists', { '.tag': 'shared_link_already_exists' }),
    );
  });

  test('two create_shared_link_with_settings calls at once make one link', async () => {
    await put(service, '/Race', 'text');
    const settings = { requested_visibility: 'password', link_password: 'x' };
    const both = await Promise.all([
      create({ path: '/Race', settings }),
      create({ path: '/Race', settings }),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 409]);
  });

  test.each([
    ['/nothing', 'not_found'],
    ['/a/', 'malformed_path'],
  ])('create_shared_link_with_settings of %s answers path/%s', async (path, tag) => {
    expect(refusalIn(await create({ path }))).toEqual(
      refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } }),
    );
  });
});

describe('sharing/list_shared_links', () => {
  const urls = async (argument: object) =>
    ((await call('list_shared_links', argument)).json as { links: LinkJson[] }).links.map(({ url }) => url);

  test('list_shared_links of a path answers its links, and without direct_only those of the folders above', async () => {
    await put(service, '/Above/Middle/File', 'text');
    const above = await createdUrl({ path: '/Above' });
    const file = await createdUrl({ path: '/Above/Middle/File' });
    const path = '/above/middle/file';
    expect((await call('list_shared_links', { path, direct_only: true })).json).toEqual({
      links: [expect.objectContaining({ '.tag': 'file', url: file })],
      has_more: false,
    });
    expect(await urls({ path })).toEqual([file, above]);
    expect(await urls({ path: '/Above/Middle', direct_only: true })).toEqual([]);
  });

  test('list_shared_links of an account answers the links whose files exist, in pages', async () => {
    const token = await otherToken('many@example.org');
    const other = { ...service, token };
    await Promise.all(Array.from({ length: 205 }, (_, index) => put(other, `/many/${index}`, 'x')));
    for (let index = 0; index < 205; index++)
      await call('create_shared_link_with_settings', { path: `/many/${index}` }, token);
    await rpc(other, 'files/delete_v2', { path: '/many/0' });
    const first = (await call('list_shared_links', {}, token)).json as {
      links: LinkJson[];
      cursor: string;
      has_more: boolean;
    };
    expect([first.links.length, first.has_more]).toEqual([199, true]);
    const { cursor } = first;
    const second = (await call('list_shared_links', { cursor }, token)).json as { links: LinkJson[] };
    expect(second).toEqual({ links: expect.any(Array), has_more: false });
    const names = [...first.links, ...second.links].map(({ name }) => Number(name));
    expect(names.sort((one, other_) => one - other_)).toEqual(
      Array.from({ length: 204 }, (_, index) => index + 1),
    );
  });

  test('list_shared_links answers path/not_found for no file and reset for a malformed cursor', async () => {
    expect(refusalIn(await call('list_shared_links', { path: '/nothing' }))).toMatchObject({
      summary: 'path/not_found',
    });
    expect(refusalIn(await call('list_shared_links', { cursor: 'rubbish' }))).toEqual(
      refusal(409, 'reset', { '.tag': 'reset' }),
    );
  });

  test('a shared link follows its file when that is moved', async () => {
    await put(service, '/Moves/old', 'text');
    const url = await createdUrl({ path: '/Moves/old' });
    await rpc(service, 'files/move_v2', { from_path: '/Moves/old', to_path: '/Moves/new name' });
    const [moved] = await urls({ path: '/Moves/new name', direct_only: true });
    expect(moved).toBe(url.replace('/old?', '/new%20name?'));
    expect((await fetch(url.replace('dl=0', 'dl=1'))).status).toBe(200);
  });

  test('create_shared_link_with_settings of an old revision links to the current file, and answers not_found after its deletion', async () => {
    const { rev } = await put(service, '/Revised', 'text');
    const path = `rev:${rev}`;
    await rpc(service, 'files/move_v2', { from_path: '/Revised', to_path: '/Revised and moved' });
    const now = (await rpc(service, 'files/get_metadata', { path: '/Revised and moved' })).json as object;
    const { json } = await create({ path });
    expect(json).toMatchObject({ path_lower: '/revised and moved', rev: (now as { rev: string }).rev });
    expect(await urls({ path, direct_only: true })).toEqual([(json as LinkJson).url]);
    await rpc(service, 'files/delete_v2', { path: '/Revised and moved' });
    expect(refusalIn(await create({ path }))).toEqual(
      refusal(409, 'path/not_found', { '.tag': 'path', path: { '.tag': 'not_found' } }),
    );
  });

  test('list_shared_links leaves out an expired link, and a new link can be made', async () => {
    await put(service, '/Ends', 'text');
    const expires = `${new Date(clock.now() + 60_000).toISOString().slice(0, 19)}Z`;
    const url = await createdUrl({ path: '/Ends', settings: { expires } });
    expect(await urls({ path: '/Ends' })).toEqual([url]);
    await clock.advance(60_000);
    expect(await urls({ path: '/Ends' })).toEqual([]);
    expect((await fetch(url)).status).toBe(410);
    expect((await create({ path: '/Ends' })).status).toBe(200);
  });
});

describe('sharing/revoke_shared_link', () => {
  test('revoke_shared_link revokes the link, also by another host and dl value', async () => {
    await put(service, '/Revoked', 'text');
    const url = await createdUrl({ path: '/Revoked' });
    // revoke_shared_link ignores the host and `dl`.
    const elsewhere = url.replace(service.url, 'https://files.example').replace('dl=0', 'dl=1');
    const answered = await call('revoke_shared_link', { url: elsewhere });
    expect([answered.status, answered.text]).toEqual([200, 'null']);
    expect((await fetch(url)).status).toBe(404);
    expect(refusalIn(await call('revoke_shared_link', { url }))).toEqual(
      refusal(409, 'shared_link_not_found', { '.tag': 'shared_link_not_found' }),
    );
    expect(await createdUrl({ path: '/Revoked' })).not.toBe(url);
  });

  test('revoke_shared_link refuses a wrong rlkey and an account that does not own the link', async () => {
    await put(service, '/Owned', 'text');
    const url = await createdUrl({ path: '/Owned' });
    const guessed = url.replace(/rlkey=[0-9a-f]+/, `rlkey=${'0'.repeat(32)}`);
    expect(refusalIn(await call('revoke_shared_link', { url: guessed }))).toMatchObject({
      summary: 'shared_link_not_found',
    });
    const token = await otherToken('thief@example.org');
    expect(refusalIn(await call('revoke_shared_link', { url }, token))).toEqual(
      refusal(409, 'shared_link_access_denied', { '.tag': 'shared_link_access_denied' }),
    );
    expect((await fetch(url)).status).toBe(200);
  });

  test.each([
    '',
    'no url',
    'https://files.example/',
    'https://files.example/scl/fi/x/y',
    'https://x/scl/fi/%zz/y?rlkey=1',
  ])('revoke_shared_link of %j answers shared_link_malformed', async (url) => {
    expect(refusalIn(await call('revoke_shared_link', { url }))).toEqual(
      refusal(409, 'shared_link_malformed', { '.tag': 'shared_link_malformed' }),
    );
  });
});

describe('sharing/get_shared_link_metadata', () => {
  test('get_shared_link_metadata answers the owner with the path, and other accounts without it', async () => {
    await put(service, '/Told/below/file', 'text');
    const link = (await create({ path: '/Told' })).json as LinkJson;
    expect((await call('get_shared_link_metadata', { url: link.url })).json).toEqual(link);
    const token = await otherToken('reader@example.org');
    const argument = { url: link.url, path: '/below/file' };
    const { json } = await call('get_shared_link_metadata', argument, token);
    expect(json).toMatchObject({ '.tag': 'file', name: 'file', link_permissions: { can_revoke: false } });
    expect(json).not.toHaveProperty('path_lower');
  });

  test('get_shared_link_metadata refuses wrong passwords, malformed links and paths outside the link', async () => {
    await put(service, '/Locked', 'text');
    await put(service, '/Beside', 'text');
    const settings = { require_password: true, link_password: 'right' };
    const url = await createdUrl({ path: '/Locked', settings });
    const token = await otherToken('guesser@example.org');
    for (const link_password of [undefined, 'wrong'])
      expect(refusalIn(await call('get_shared_link_metadata', { url, link_password }, token))).toMatchObject({
        status: 409,
        summary: 'shared_link_access_denied',
      });
    const right = await call('get_shared_link_metadata', { url, link_password: 'right' }, token);
    expect(right.status).toBe(200);
    for (const argument of [
      { url: url.replace('?rlkey=', '?key=') },
      { url: 'rubbish' },
      { url, path: '/Beside' },
    ])
      expect(refusalIn(await call('get_shared_link_metadata', argument))).toMatchObject({ status: 409 });
    const missing = { url: url.replace(/rlkey=./, 'rlkey=') };
    expect(refusalIn(await call('get_shared_link_metadata', missing))).toMatchObject({
      summary: 'shared_link_not_found',
    });
  });
});

test.each([
  'https://files.example/',
  // A path may have the sign that separates a user from a host.
  'https://files.example/ann@example.org',
])('shared links begin with the publicUrl %s', async (publicUrl) => {
  const other = await startTestService({ publicUrl });
  try {
    await put(other, '/x', 'text');
    const answered = await rpc(other, 'sharing/create_shared_link_with_settings', { path: '/x' });
    const { url } = answered.json as LinkJson;
    expect(url).toContain(`${publicUrl.replace(/\/$/, '')}/scl/fi/`);
    expect((await rpc(other, 'sharing/revoke_shared_link', { url })).status).toBe(200);
  } finally {
    await other.close();
  }
});

test.each([
  'files.example',
  'https://files.example/?x',
  'https://a:b@files.example',
  'ftp://files.example',
  '',
])('publicUrl %j is refused with an example of a valid one', async (publicUrl) => {
  await expect(startTestService({ publicUrl })).rejects.toThrow(/is not a public URL; give one like https:/);
});

test('shared links work after a restart of the service on another port', async () => {
  const first = await startTestService();
  await put(first, '/lasting', 'text');
  const made = await rpc(first, 'sharing/create_shared_link_with_settings', { path: '/lasting' });
  const { url } = made.json as LinkJson;
  await first.service.close();
  const second = await startTestService({ dataDirectory: first.dataDirectory });
  try {
    const moved = url.replace(first.url, second.url);
    expect(await (await fetch(moved.replace('dl=0', 'dl=1'))).text()).toBe('text');
    const listed = await rpc(second, 'sharing/list_shared_links', { path: '/lasting', direct_only: true });
    expect(listed.json).toMatchObject({ links: [{ url: moved }] });
  } finally {
    await second.close();
    await first.close();
  }
});
