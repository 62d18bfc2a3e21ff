import { afterAll, beforeAll, expect, test } from 'vitest';
import { SCOPES } from '../../src/service/accounts/scopes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc as call, download, put, send, sharedLink } from '../support/service-client.ts';

let service: TestService;
/** The service as each member calls it. */
let ann: TestService;
let bob: TestService;
let stranger: TestService;
let root: string;
let home: string;

beforeAll(async () => {
  service = await startTestService();
  ann = await member('ann@example.org', 'Ann', 'Crew');
  bob = await member('bob@example.org', 'Bob', 'Crew');
  stranger = await member('eve@example.org', 'Eve', undefined);
  const info = await rootInfo(ann);
  root = info.root_namespace_id;
  home = info.home_namespace_id;
});
afterAll(() => service.close());

async function member(email: string, givenName: string, team: string | undefined): Promise<TestService> {
  const person = { email, givenName, surname: '', mayDeletePermanently: true };
  const { id: accountId } = await service.service.addAccount(person, team);
  return { ...service, token: await service.service.grant({ accountId, scopes: SCOPES }) };
}

interface RootInfo {
  readonly root_namespace_id: string;
  readonly home_namespace_id: string;
  readonly home_path?: string;
}

async function rootInfo(who: TestService): Promise<RootInfo> {
  const { json } = await call(who, 'users/get_current_account', null);
  return (json as { root_info: RootInfo }).root_info;
}

const inRoot = (number: string) => ({
  headers: { 'dropbox-api-path-root': JSON.stringify({ '.tag': 'root', root: number }) },
});

/** Calls a function in the team's space. */
const above = (who: TestService, name: string, argument: unknown) => call(who, name, argument, inRoot(root));

interface Page {
  readonly entries: readonly {
    readonly '.tag': string;
    readonly path_display: string;
    readonly id?: string;
  }[];
  readonly cursor: string;
}

async function paths(answer: ReturnType<typeof call>): Promise<readonly string[]> {
  return ((await answer).json as Page).entries.map(({ path_display: path }) => path).sort();
}

const list = { path: '', recursive: true };

test('the members of a team have one root, and each a home of their own in it', async () => {
  expect(await rootInfo(ann)).toEqual({
    '.tag': 'team',
    root_namespace_id: root,
    home_namespace_id: home,
    home_path: '/Ann',
  });
  const other = await rootInfo(bob);
  expect([other.root_namespace_id, other.home_path]).toEqual([root, '/Bob']);
  expect(other.home_namespace_id).not.toBe(home);
  const alone = await rootInfo(stranger);
  expect(alone.root_namespace_id).toBe(alone.home_namespace_id);
});

test('a file in the home of a member is in their folder of the root, with the same id and revision', async () => {
  const file = await put(ann, '/Plan.txt', 'plan');
  const seen = (await above(ann, 'files/get_metadata', { path: '/ann/plan.TXT' })).json;
  expect(seen).toMatchObject({ id: file['id'], rev: file['rev'], path_display: '/Ann/Plan.txt' });
  expect(await paths(call(ann, 'files/list_folder', list))).toEqual(['/Plan.txt']);
});

test('a shared folder in the root is there for every member, and in no home', async () => {
  await call(bob, 'users/get_current_account', null);
  await above(ann, 'files/create_folder_v2', { path: '/Shared' });
  expect(await paths(above(bob, 'files/list_folder', { path: '' }))).toEqual(['/Ann', '/Bob', '/Shared']);
  expect(await paths(call(bob, 'files/list_folder', list))).toEqual([]);
});

test('an item outside of the home is not found from the home, not by its id either', async () => {
  const made = await above(ann, 'files/create_folder_v2', { path: '/Secret' });
  const { id } = (made.json as { metadata: { id: string } }).metadata;
  for (const [name, argument] of [
    ['files/get_metadata', { path: id }],
    ['files/delete_v2', { path: id }],
    ['files/move_v2', { from_path: id, to_path: '/Stolen' }],
    ['files/copy_v2', { from_path: id, to_path: '/Stolen' }],
    ['files/list_folder', { path: id }],
  ] as const)
    expect((await call(bob, name, argument)).text).toMatch(/"error_summary":"[^"]*not_found/);
  expect(await paths(call(bob, 'files/list_folder', list))).toEqual([]);
});

test('moves, copies, deletions and batches in a home stay in it and answer with its paths', async () => {
  await put(ann, '/a/one', '1');
  await call(ann, 'files/move_v2', { from_path: '/a/one', to_path: '/b/two' });
  const copied = await call(ann, 'files/copy_v2', { from_path: '/b', to_path: '/c' });
  expect(copied.json).toMatchObject({ metadata: { path_display: '/c' } });
  await call(ann, 'files/delete_v2', { path: '/a' });
  await call(ann, 'files/create_folder_batch', { paths: ['/d', '/e'] });
  const found = await paths(call(ann, 'files/list_folder', list));
  expect(found).toEqual(['/Plan.txt', '/b', '/b/two', '/c', '/c/two', '/d', '/e']);
  const space = await paths(above(ann, 'files/list_folder', { path: '/Ann', recursive: true }));
  expect(space).toEqual(['/Ann', ...found.map((path) => `/Ann${path}`)]);
  await call(ann, 'files/permanently_delete', { path: '/c' });
  expect(await paths(above(ann, 'files/list_folder', { path: '/Ann' }))).not.toContain('/Ann/c');
});

test('changes in the root reach the cursor of a home if they are in it, and a cursor works only where it was made', async () => {
  const cursorOf = async (answer: ReturnType<typeof call>) => ((await answer).json as Page).cursor;
  const latest = 'files/list_folder/get_latest_cursor';
  const atHome = await cursorOf(call(ann, latest, list));
  await above(ann, 'files/create_folder_v2', { path: '/Ann/from-above' });
  await above(ann, 'files/create_folder_v2', { path: '/elsewhere' });
  const next = 'files/list_folder/continue';
  expect(await paths(call(ann, next, { cursor: atHome }))).toEqual(['/from-above']);
  expect((await above(ann, next, { cursor: atHome })).status).toBe(400);
  const atRoot = await cursorOf(above(ann, latest, list));
  expect((await call(ann, next, { cursor: atRoot })).status).toBe(400);
});

test('a link to a file in a shared folder of the team opens it', async () => {
  await above(ann, 'files/copy_v2', { from_path: '/Ann/Plan.txt', to_path: '/Shared/Plan.txt' });
  const made = await above(ann, 'sharing/create_shared_link_with_settings', { path: '/Shared/Plan.txt' });
  const { url } = made.json as { url: string };
  expect((await send(url.replace('dl=0', 'raw=1'), {})).text).toBe('plan');
  expect((await send((await sharedLink(ann, '/Plan.txt')).replace('dl=0', 'raw=1'), {})).text).toBe('plan');
});

const METADATA = 'sharing/get_shared_link_metadata';

/** Makes a link with a function of a member. Returns its URL. */
async function linkBy(ask: typeof above, path: string): Promise<string> {
  const { json } = await ask(ann, 'sharing/create_shared_link_with_settings', { path });
  return (json as { url: string }).url;
}

test('the owner of a link gets its path where the paths of the call begin', async () => {
  await put(ann, '/Linked.txt', 'text');
  const url = await linkBy(call, '/Linked.txt');
  expect((await call(ann, METADATA, { url })).json).toHaveProperty('path_lower', '/linked.txt');
  expect((await above(ann, METADATA, { url })).json).toHaveProperty('path_lower', '/ann/linked.txt');
  expect((await call(bob, METADATA, { url })).json).not.toHaveProperty('path_lower');
  const argument = { path: '/linked.txt', direct_only: true };
  const listed = { links: [{ url, path_lower: '/linked.txt' }] };
  expect((await call(ann, 'sharing/list_shared_links', argument)).json).toMatchObject(listed);
});

test('a member lists and changes a link to an item of the team from the home, where it has no path', async () => {
  await above(ann, 'files/create_folder_v2', { path: '/Linked together' });
  const url = await linkBy(above, '/Linked together');
  const changed = { url, settings: { requested_visibility: 'public' } };
  const list = async (ask: typeof above) => {
    const { json } = await ask(ann, 'sharing/list_shared_links', {});
    return (json as { links: { url: string }[] }).links.find((link) => link.url === url);
  };
  expect(await list(above)).toHaveProperty('path_lower', '/linked together');
  for (const link of [
    await list(call),
    (await call(ann, METADATA, { url })).json,
    (await call(ann, 'sharing/modify_shared_link_settings', changed)).json,
  ]) {
    expect(link).toMatchObject({ url, name: 'Linked together' });
    expect(link).not.toHaveProperty('path_lower');
  }
});

test('a member saves a file of the team in the home by a copy reference, and no folder', async () => {
  await put(ann, '/Together.txt', 'text');
  const to_path = '/Saved together/one.txt';
  await above(ann, 'files/copy_v2', { from_path: '/Ann/Together.txt', to_path });
  const save = async (from: string, path: string) => {
    const { json } = await above(ann, 'files/copy_reference/get', { path: from });
    const { copy_reference } = json as { copy_reference: string };
    return await call(ann, 'files/copy_reference/save', { copy_reference, path });
  };
  expect((await save(to_path, '/Mine.txt')).json).toMatchObject({ metadata: { path_display: '/Mine.txt' } });
  expect((await save('/Ann/Together.txt', '/Moved.txt')).json).toMatchObject({
    metadata: { path_display: '/Moved.txt' },
  });
  expect((await download(ann, '/Mine.txt')).text).toBe('text');
  expect((await save('/Saved together', '/Mine')).text).toContain('"error_summary":"no_permission/');
});

test('the root of another team or of an account alone is refused as a path root', async () => {
  const refused = await call(stranger, 'files/list_folder', list, inRoot(root));
  expect([refused.status, refused.json]).toMatchObject([422, { error: { '.tag': 'invalid_root' } }]);
  const { json } = await call(ann, 'files/list_folder', list, inRoot(home));
  expect(json).toMatchObject({ error: { invalid_root: { '.tag': 'team', root_namespace_id: root } } });
});

test('the space of a team counts as used for every member', async () => {
  const usage = async (who: TestService) =>
    (await call(who, 'users/get_space_usage', null)).json as {
      used: number;
      allocation: { '.tag': string };
    };
  expect(await usage(bob)).toMatchObject({ used: (await usage(ann)).used, allocation: { '.tag': 'team' } });
});
