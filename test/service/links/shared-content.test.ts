import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import {
  type Answered,
  headerJson,
  put,
  refusal,
  refusalIn,
  rpc,
  send,
} from '../../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;
/** Access token of an account that owns none of the links. */
let otherToken: string;

beforeAll(async () => {
  service = await startTestService({ clock });
  const { id } = await service.service.addAccount({
    email: 'stranger@example.org',
    givenName: 'S',
    surname: 'T',
    mayDeletePermanently: false,
  });
  const scopes = ['sharing.read', 'sharing.write', 'files.metadata.read'] as const;
  otherToken = await service.service.grant({ accountId: id, scopes });
});
afterAll(() => service.close());

interface LinkJson {
  readonly url: string;
  readonly link_permissions: Record<string, unknown>;
}

async function linkTo(path: string, settings?: object): Promise<LinkJson> {
  const answered = await rpc(service, 'sharing/create_shared_link_with_settings', { path, settings });
  if (answered.status !== 200) throw new Error(answered.text);
  return answered.json as LinkJson;
}

const basic = (key: string, secret: string) => `Basic ${Buffer.from(`${key}:${secret}`).toString('base64')}`;
const asApp = () => ({ authorization: basic(service.appKey, service.appSecret) });
const asOtherUser = () => ({ authorization: `Bearer ${otherToken}` });
const refused = (tag: string) => refusal(409, tag, { '.tag': tag });

describe('sharing/get_shared_link_file', () => {
  const file = (argument: object, headers: Record<string, string> = asOtherUser()): Promise<Answered> =>
    send(`${service.url}/2/sharing/get_shared_link_file`, {
      method: 'POST',
      headers: { 'dropbox-api-arg': headerJson(argument), ...headers },
    });

  test('get_shared_link_file answers the bytes, a range of them, and the link’s metadata as another account sees it', async () => {
    await put(service, '/Given/Ä.txt', '0123456789');
    const { url } = await linkTo('/Given/Ä.txt');
    const answered = await file({ url });
    expect([answered.status, answered.text]).toEqual([200, '0123456789']);
    expect(answered.headers.get('content-type')).toBe('application/octet-stream');
    const metadata = await rpc(service, 'sharing/get_shared_link_metadata', { url }, { token: otherToken });
    expect(metadata.json).toMatchObject({ '.tag': 'file', name: 'Ä.txt', size: 10 });
    expect(JSON.parse(answered.headers.get('dropbox-api-result') ?? '')).toEqual(metadata.json);
    const part = await file({ url }, { ...asOtherUser(), range: 'bytes=2-3' });
    expect([part.status, part.text, part.headers.get('content-range')]).toEqual([206, '23', 'bytes 2-3/10']);
  });

  test('get_shared_link_file answers an app without a user with a file inside a linked folder', async () => {
    await put(service, '/Given folder/sub/file', 'below');
    const { url } = await linkTo('/Given folder');
    const answered = await file({ url, path: '/sub/file' }, asApp());
    expect([answered.status, answered.text]).toEqual([200, 'below']);
    const metadata = await send(`${service.url}/2/sharing/get_shared_link_metadata`, {
      method: 'POST',
      headers: { ...asApp(), 'content-type': 'application/json' },
      body: JSON.stringify({ url }),
    });
    expect(metadata.json).toMatchObject({ '.tag': 'folder', name: 'Given folder' });
    expect(refusalIn(await file({ url }))).toEqual(refused('shared_link_is_directory'));
    for (const path of ['/none', '/../Given', '/sub/file/below'])
      expect(refusalIn(await file({ url, path }))).toEqual(refused('shared_link_not_found'));
  });

  test('get_shared_link_file needs the link’s password, and answers access denied where downloads are off', async () => {
    await put(service, '/Guarded', 'text');
    const { url } = await linkTo('/Guarded', { require_password: true, link_password: 'right' });
    for (const link_password of [undefined, 'wrong'])
      expect(refusalIn(await file({ url, link_password }))).toEqual(refused('shared_link_access_denied'));
    expect((await file({ url, link_password: 'right' })).text).toBe('text');
    await put(service, '/Only looked at', 'text');
    const looked = await linkTo('/Only looked at', { allow_download: false });
    expect(refusalIn(await file({ url: looked.url }))).toEqual(refused('shared_link_access_denied'));
  });

  test.each(['rubbish', 'https://x/scl/fi/a/b?rlkey=c'])(
    'get_shared_link_file of %s answers shared_link_not_found',
    async (url) => {
      expect(refusalIn(await file({ url }))).toEqual(refused('shared_link_not_found'));
    },
  );
});

describe('sharing/modify_shared_link_settings', () => {
  const modify = (url: string, settings: object, more: object = {}, token = service.token) =>
    rpc(service, 'sharing/modify_shared_link_settings', { url, settings, ...more }, { token });
  const inAnHour = () => `${new Date(clock.now() + 3_600_000).toISOString().slice(0, 19)}Z`;

  test('modify_shared_link_settings sets and removes the expiry, and changes nothing else', async () => {
    await put(service, '/Modified/end', 'text');
    const link = await linkTo('/Modified/end', { allow_download: false });
    const expires = inAnHour();
    const answered = await modify(link.url, { expires });
    expect([answered.status, answered.json]).toEqual([200, { ...link, expires }]);
    expect(link.link_permissions).toMatchObject({ can_set_expiry: true, allow_download: false });
    expect((await modify(link.url, {}, { remove_expiration: true })).json).toEqual(link);
    await clock.advance(3_600_001);
    expect((await fetch(link.url)).status).toBe(200);
  });

  test('modify_shared_link_settings sets, changes and removes a password', async () => {
    await put(service, '/Modified/password', 'text');
    const { url } = await linkTo('/Modified/password');
    const opens = async (link_password?: string) =>
      (await rpc(service, 'sharing/get_shared_link_metadata', { url, link_password }, { token: otherToken }))
        .status;
    const set = await modify(url, { require_password: true, link_password: 'one' });
    expect(set.json).toMatchObject({
      link_permissions: { resolved_visibility: { '.tag': 'password' }, require_password: true },
    });
    expect([await opens(), await opens('one')]).toEqual([409, 200]);
    await modify(url, { link_password: 'two' });
    expect([await opens('one'), await opens('two')]).toEqual([409, 200]);
    await modify(url, { audience: 'public' });
    expect(await opens()).toBe(409);
    await modify(url, { audience: 'no_one' });
    expect(await opens('two')).toBe(409);
    await modify(url, { audience: 'public' });
    expect(await opens('two')).toBe(200);
    expect((await modify(url, { require_password: false })).json).toMatchObject({
      link_permissions: { resolved_visibility: { '.tag': 'public' } },
    });
    expect(await opens()).toBe(200);
  });

  test('modify_shared_link_settings turns downloads off and on', async () => {
    await put(service, '/Modified/downloads', 'text');
    const { url } = await linkTo('/Modified/downloads');
    await modify(url, { allow_download: false });
    expect((await fetch(url.replace('dl=0', 'dl=1'))).status).toBe(403);
    await modify(url, { allow_download: true });
    expect((await fetch(url.replace('dl=0', 'dl=1'))).status).toBe(200);
  });

  test.each<[string, object, object?]>([
    ['invalid_settings', {}],
    ['invalid_settings', { expires: '2001-01-01T00:00:00Z' }],
    ['invalid_settings', { expires: '2099-01-01T00:00:00Z' }, { remove_expiration: true }],
    ['invalid_settings', { require_password: true }],
    ['invalid_settings', { link_password: 'for none' }],
    ['invalid_settings', { require_password: false, link_password: 'x' }],
    ['invalid_settings', { requested_visibility: 'public', require_password: true, link_password: 'x' }],
    ['not_authorized', { audience: 'team' }],
    ['not_authorized', { access: 'editor' }],
  ])('modify_shared_link_settings answers %s to %j', async (tag, settings, more) => {
    await put(service, '/Modified/errors', 'text');
    const listed = await rpc(service, 'sharing/list_shared_links', {
      path: '/Modified/errors',
      direct_only: true,
    });
    const [link] = (listed.json as { links: LinkJson[] }).links;
    const { url } = link ?? (await linkTo('/Modified/errors'));
    expect(refusalIn(await modify(url, settings, more))).toEqual(
      refusal(409, `settings_error/${tag}`, { '.tag': 'settings_error', settings_error: { '.tag': tag } }),
    );
  });

  test('modify_shared_link_settings refuses a link of another account, a malformed one and one to a deleted file', async () => {
    await put(service, '/Modified/mine', 'text');
    const { url } = await linkTo('/Modified/mine');
    const settings = { allow_download: false };
    expect(refusalIn(await modify(url, settings, {}, otherToken))).toEqual(
      refused('shared_link_access_denied'),
    );
    expect(refusalIn(await modify('rubbish', settings))).toEqual(refused('shared_link_not_found'));
    await rpc(service, 'files/delete_v2', { path: '/Modified/mine' });
    expect(refusalIn(await modify(url, settings))).toEqual(refused('shared_link_not_found'));
  });
});

describe('files/list_folder with shared_link', () => {
  const list = (argument: object, headers: Record<string, string> = asOtherUser(), name = 'list_folder') =>
    send(`${service.url}/2/files/${name}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(argument),
    });
  type Page = { entries: { name: string }[]; cursor: string; has_more: boolean };

  test('list_folder of a link answers pages and changes of the folder without any path', async () => {
    for (const name of ['a', 'b', 'c']) await put(service, `/Listed/sub/${name}`, 'text');
    const { url } = await linkTo('/Listed');
    const top = await list({ path: '', shared_link: { url } });
    const { id } = (await rpc(service, 'files/get_metadata', { path: '/Listed/sub' })).json as { id: string };
    expect([top.status, top.json]).toEqual([
      200,
      {
        entries: [{ '.tag': 'folder', name: 'sub', id }],
        cursor: expect.any(String),
        has_more: false,
      },
    ]);
    const first = (await list({ path: '/sub', shared_link: { url }, limit: 2 })).json as Page;
    const { cursor } = first;
    expect([first.entries.map(({ name }) => name), first.has_more]).toEqual([['a', 'b'], true]);
    const second = (await list({ cursor }, asOtherUser(), 'list_folder/continue')).json as Page;
    expect(second).toMatchObject({ entries: [{ name: 'c' }], has_more: false });
    await put(service, '/Listed/sub/d', 'text');
    const poll = await rpc(service, 'files/list_folder/longpoll', { cursor: second.cursor }, { token: null });
    expect(poll.json).toEqual({ changes: true });
    const since = (await list({ cursor: second.cursor }, asOtherUser(), 'list_folder/continue')).json as Page;
    expect(since.entries).toMatchObject([{ name: 'd' }]);
    expect(JSON.stringify([first, second, since])).not.toContain('path_');
  });

  test('list_folder of a link serves an app without a user, and refuses an app the cursor of a user', async () => {
    await put(service, '/Listed by app/x', 'text');
    const { url } = await linkTo('/Listed by app');
    const argument = { path: '', shared_link: { url } };
    const listed = await list(argument, asApp());
    expect(listed.json).toMatchObject({ entries: [{ name: 'x' }] });
    expect((await list(argument, asApp(), 'list_folder/get_latest_cursor')).status).toBe(400);
    const latest = await list(argument, asOtherUser(), 'list_folder/get_latest_cursor');
    const { cursor } = latest.json as Page;
    const next = (who: Record<string, string>) => list({ cursor }, who, 'list_folder/continue');
    expect((await next(asOtherUser())).json).toMatchObject({ entries: [] });
    // The cursor belongs to the user.
    expect(refusalIn(await next(asApp()))).toEqual(refused('reset'));
    const plain = await list({ path: '' }, asApp());
    expect([plain.status, plain.text]).toEqual([400, expect.stringContaining('only with shared_link')]);
  });

  test('list_folder/continue answers reset after its link was revoked', async () => {
    await put(service, '/Listed, then not/x', 'text');
    const { url } = await linkTo('/Listed, then not');
    const { cursor } = (await list({ path: '', shared_link: { url } })).json as Page;
    await rpc(service, 'sharing/revoke_shared_link', { url });
    expect(refusalIn(await list({ cursor }, asOtherUser(), 'list_folder/continue'))).toEqual(
      refused('reset'),
    );
  });

  test.each<[string, (from: string) => Promise<unknown>]>([
    ['was deleted', (path) => rpc(service, 'files/delete_v2', { path })],
    [
      'was moved',
      (path) => rpc(service, 'files/move_v2', { from_path: path, to_path: `${path}, elsewhere` }),
    ],
  ])(
    'list_folder/continue of a link whose folder %s answers reset and nothing of the folder that takes its place',
    async (how, change) => {
      const path = `/Listed until it ${how}`;
      await put(service, `${path}/shared`, 'text');
      const { url } = await linkTo(path);
      const { cursor } = (await list({ path: '', shared_link: { url } })).json as Page;
      await change(path);
      await put(service, `${path}/secret`, 'text');
      const answered = await list({ cursor }, asOtherUser(), 'list_folder/continue');
      expect(refusalIn(answered)).toEqual(refused('reset'));
      expect(answered.text).not.toContain('secret');
    },
  );

  test('list_folder/continue answers reset after the password of its link was changed', async () => {
    await put(service, '/Listed with a password/x', 'text');
    const settings = { require_password: true, link_password: 'one' };
    const { url } = await linkTo('/Listed with a password', settings);
    const { cursor } = (await list({ path: '', shared_link: { url, password: 'one' } })).json as Page;
    await rpc(service, 'sharing/modify_shared_link_settings', { url, settings: { link_password: 'two' } });
    expect(refusalIn(await list({ cursor }, asOtherUser(), 'list_folder/continue'))).toEqual(
      refused('reset'),
    );
  });

  test('list_folder of a link with include_has_explicit_shared_members answers that field, also after a cursor', async () => {
    await put(service, '/Asked in link/a', 'text');
    await put(service, '/Asked in link/b', 'text');
    const { url } = await linkTo('/Asked in link');
    const include_has_explicit_shared_members = true;
    const argument = { path: '', shared_link: { url }, limit: 1, include_has_explicit_shared_members };
    const first = (await list(argument, asApp())).json as Page;
    const second = (await list({ cursor: first.cursor }, asApp(), 'list_folder/continue')).json as Page;
    const has_explicit_shared_members = false;
    expect([...first.entries, ...second.entries]).toMatchObject([
      { name: 'a', has_explicit_shared_members },
      { name: 'b', has_explicit_shared_members },
    ]);
  });

  test('list_folder of a link refuses invalid links, passwords and paths', async () => {
    await put(service, '/Listed file', 'text');
    await put(service, '/Listed guarded/x', 'text');
    const { url } = await linkTo('/Listed file');
    const guarded = await linkTo('/Listed guarded', { require_password: true, link_password: 'right' });
    const lookup = (tag: string) => refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } });
    const refusalOf = async (shared_link: object, path = '') => refusalIn(await list({ path, shared_link }));
    expect(await refusalOf({ url })).toEqual(lookup('not_folder'));
    expect(await refusalOf({ url: 'rubbish' })).toEqual(lookup('not_found'));
    expect(await refusalOf({ url: guarded.url })).toEqual(lookup('restricted_content'));
    const opened = { url: guarded.url, password: 'right' };
    expect((await list({ path: '', shared_link: opened })).status).toBe(200);
    expect(await refusalOf(opened, '/none')).toEqual(lookup('not_found'));
    for (const argument of [{ path: '', recursive: true }, { path: 'id:x' }, { path: '/' }, { path: 'ns:1' }])
      expect((await list({ ...argument, shared_link: opened })).status).toBe(400);
  });
});

describe('check/app', () => {
  const check = (authorization: string) =>
    send(`${service.url}/2/check/app`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json' },
      body: JSON.stringify({ query: 'here?' }),
    });

  test('check/app answers an app with a valid secret with the query', async () => {
    const { status, json } = await check(basic(service.appKey, service.appSecret));
    expect([status, json]).toEqual([200, { result: 'here?' }]);
  });

  test('check/app answers a wrong secret with 401, and a token or a misplaced secret with 400', async () => {
    for (const authorization of [basic(service.appKey, 'wrong'), basic('none', service.appSecret), 'Basic ?'])
      expect(refusalIn(await check(authorization))).toEqual(
        refusal(401, 'invalid_access_token', { '.tag': 'invalid_access_token' }),
      );
    const token = await check(`Bearer ${service.token}`);
    expect([token.status, token.text]).toEqual([400, expect.stringContaining('Expecting "Basic …".')]);
    expect(token.text).not.toContain(service.token);
    const app = await send(`${service.url}/2/check/user`, {
      method: 'POST',
      headers: { ...asApp(), 'content-type': 'application/json' },
      body: '{}',
    });
    expect([app.status, app.text]).toEqual([400, expect.stringContaining('"Basic". Expecting "Bearer …".')]);
  });
});
