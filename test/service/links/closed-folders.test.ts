import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../support/service.ts';
import {
  type Answered,
  headerJson,
  put,
  refusalIn,
  rpc,
  send,
  sharedLink,
} from '../../support/service-client.ts';

let service: TestService;
/** Access token of an account that owns none of the links. */
let otherToken: string;

beforeAll(async () => {
  service = await startTestService();
  const stranger = {
    email: 'stranger@example.org',
    givenName: 'S',
    surname: 'T',
    mayDeletePermanently: false,
  };
  const { id } = await service.service.addAccount(stranger);
  const scopes = ['sharing.read', 'files.metadata.read', 'files.content.read'] as const;
  otherToken = await service.service.grant({ accountId: id, scopes });
});
afterAll(() => service.close());

const embedded = (url: string) => send(`${service.url}/embed?${new URLSearchParams({ link: url })}`, {});
const inside = (url: string, path: string) => url.replace('/h?', `/h${path}?`);
const sendPassword = (url: string, password: string) =>
  send(url, { method: 'POST', body: new URLSearchParams({ password }) });
const call = (name: string, argument: object) => rpc(service, name, argument, { token: otherToken });
const content = (name: string, argument: object) =>
  send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: { 'dropbox-api-arg': headerJson(argument), authorization: `Bearer ${otherToken}` },
  });

/** Ways to ask for an item below a folder link. */
const WAYS: readonly (readonly [string, (url: string, path: string) => Promise<Answered>])[] = [
  ['GET of the page', (url, path) => send(inside(url, path), {})],
  ['GET of the bytes', (url, path) => send(inside(url, path).replace('dl=0', 'raw=1'), {})],
  ['POST to the page', (url, path) => sendPassword(inside(url, path), 'wrong')],
  ['/embed', (url, path) => embedded(inside(url, path))],
  ['get_shared_link_metadata', (url, path) => call('sharing/get_shared_link_metadata', { url, path })],
  ['list_folder', (url, path) => call('files/list_folder', { path, shared_link: { url } })],
  ['get_shared_link_file', (url, path) => content('sharing/get_shared_link_file', { url, path })],
  [
    'get_thumbnail_v2',
    (url, path) =>
      content('files/get_thumbnail_v2', { resource: { '.tag': 'link', url, path, password: 'wrong' } }),
  ],
];

/** Returns what an answer shows, with the path of its request replaced. */
const shown = (answered: Answered, path: string) =>
  answered.json ? refusalIn(answered) : [answered.status, answered.text.replaceAll(path, '/NAME')];

test.each([
  ['with a password', { require_password: true, link_password: 'right' }],
  ['with audience no_one', { audience: 'no_one' }],
])(
  'a folder link %s answers the same for items that exist and that are missing below it',
  async (title, settings) => {
    await put(service, `/Secret ${title}/there/x.png`, 'text');
    const url = await sharedLink(service, `/Secret ${title}`, settings);
    for (const [way, ask] of WAYS) {
      const missing = await ask(url, '/gone');
      expect([way, [403, 409].includes(missing.status)]).toEqual([way, true]);
      expect([way, shown(await ask(url, '/there'), '/there')]).toEqual([way, shown(missing, '/gone')]);
    }
  },
);

test('the owner of a folder link with audience no_one lists all pages of its folder, and nobody else does', async () => {
  for (const name of ['a', 'b']) await put(service, `/Closed/${name}`, 'text');
  const url = await sharedLink(service, '/Closed', { audience: 'no_one' });
  const listing = { path: '', shared_link: { url }, limit: 1 };
  const { json: first } = await rpc(service, 'files/list_folder', listing);
  const { cursor } = first as { cursor: string };
  expect(first).toMatchObject({ entries: [{ name: 'a' }], has_more: true });
  const second = await rpc(service, 'files/list_folder/continue', { cursor });
  expect(second.json).toMatchObject({ entries: [{ name: 'b' }], has_more: false });
  expect((await call('files/list_folder/continue', { cursor })).text).toContain('"error_summary":"reset/');
});

test('list_folder/continue answers a visitor reset after the link got the audience no_one', async () => {
  await put(service, '/Closed later/a', 'text');
  const url = await sharedLink(service, '/Closed later');
  const { json } = await call('files/list_folder', { path: '', shared_link: { url } });
  const { cursor } = json as { cursor: string };
  const settings = { audience: 'no_one' };
  await rpc(service, 'sharing/modify_shared_link_settings', { url, settings });
  expect((await call('files/list_folder/continue', { cursor })).text).toContain('"error_summary":"reset/');
});

test('a folder link with a password answers 404 where nothing is when it has been opened, or is deleted', async () => {
  const settings = { require_password: true, link_password: 'right' };
  await put(service, '/Opened/there', 'text');
  const url = await sharedLink(service, '/Opened', settings);
  const answered = await sendPassword(inside(url, '/gone'), 'right');
  expect(answered.status).toBe(303);
  const cookie = answered.headers.get('set-cookie')?.split(';')[0] ?? '';
  const statusOf = async (path: string) => (await send(inside(url, path), { headers: { cookie } })).status;
  expect([await statusOf('/there'), await statusOf('/gone')]).toEqual([200, 404]);
  await rpc(service, 'files/delete_v2', { path: '/Opened' });
  for (const path of ['', '/there'])
    expect([path, (await send(inside(url, path), {})).status]).toEqual([path, 404]);
});
