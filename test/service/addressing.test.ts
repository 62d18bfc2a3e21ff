import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '../../src/service/routes/table.ts';
import { finished } from '../support/jobs.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, headerJson, put, rpc, send, upload } from '../support/service-client.ts';

// Each function that takes a path, by each form of address: what the pattern of the field allows works and means the
// same item; what it does not allow is refused before anything is done.

type Form = 'path' | 'ns' | 'id' | 'rev';

/** The forms that a pattern allows (service-api.md §5). */
const READ: readonly Form[] = ['path', 'ns', 'id', 'rev'];
const WRITE_OR_ID: readonly Form[] = ['path', 'ns', 'id'];
const WRITE: readonly Form[] = ['path', 'ns'];
const FORMS = READ;

/** A file or folder of its own for each test, and its addresses. */
interface Item {
  readonly path: string;
  readonly id: string;
  readonly rev: string;
}

interface Case {
  readonly route: string;
  readonly field: string;
  readonly allows: readonly Form[];
  /** What the address names; `new` is a name that is free, in a folder that has the id. */
  readonly names: 'file' | 'image' | 'folder' | 'new';
  /** Calls the function. Returns what it answered, and the entry of a batch with its own outcome. */
  readonly call: (address: string, item: Item) => Promise<Answered>;
  /** Whether a form that is not one is the upload's own 409, and not 400. */
  readonly isUpload?: boolean;
}

let service: TestService;
let namespace: string;
/** In the names of items, always of as many digits. */
let made = 1000;

beforeAll(async () => {
  service = await startTestService();
  const account = await rpc(service, 'users/get_current_account', null);
  namespace = (account.json as { root_info: { home_namespace_id: string } }).root_info.home_namespace_id;
});
afterAll(() => service.close());

const call = (name: string, argument: unknown) => rpc(service, name, argument);

/** A download-style call. */
function read(name: string, argument: unknown): Promise<Answered> {
  return send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'dropbox-api-arg': headerJson(argument) },
  });
}

/** Launches a batch of one and answers with its entry; a refused launch is the answer. */
async function batch(name: string, argument: object): Promise<Answered> {
  const launched = await call(`files/${name}`, argument);
  if (launched.status !== 200) return launched;
  const [entry] =
    (launched.json as { entries?: unknown[] }).entries ?? (await finished(service, name, launched));
  return { ...launched, json: entry, status: isFailure(entry) ? 409 : 200 };
}

const isFailure = (entry: unknown) => (entry as { '.tag': string })['.tag'] === 'failure';

/** The only entry of a batch that is answered at once, as an answer of its own. */
function entryOf(answered: Answered): Answered {
  const [entry] = (answered.json as { entries: unknown[] }).entries;
  return { ...answered, json: entry, status: isFailure(entry) ? 409 : 200 };
}

async function closedSession(): Promise<string> {
  const started = await upload(service, 'files/upload_session/start', { close: true }, { body: 'new' });
  return (started.json as { session_id: string }).session_id;
}

async function finishAll(name: string, path: string): Promise<Answered> {
  const cursor = { session_id: await closedSession(), offset: 3 };
  const entries = [{ cursor, commit: { path, mode: 'overwrite' } }];
  if (name !== 'upload_session/finish_batch_v2') return batch(name, { entries });
  return entryOf(await call(`files/${name}`, { entries }));
}

const CASES: readonly Case[] = [
  ...['files/get_metadata', 'files/get_temporary_link'].map(
    (route): Case => ({
      route,
      field: 'path',
      allows: READ,
      names: 'file',
      call: (path) => call(route, { path }),
    }),
  ),
  {
    route: 'files/download',
    field: 'path',
    allows: READ,
    names: 'file',
    call: (path) => read('files/download', { path }),
  },
  {
    route: 'files/get_thumbnail_v2',
    field: 'resource.path',
    allows: READ,
    names: 'image',
    call: (path) => read('files/get_thumbnail_v2', { resource: { '.tag': 'path', path } }),
  },
  {
    route: 'files/get_thumbnail_batch',
    field: 'entries.path',
    allows: READ,
    names: 'image',
    call: async (path) => entryOf(await call('files/get_thumbnail_batch', { entries: [{ path }] })),
  },
  {
    route: 'files/download_zip',
    field: 'path',
    allows: ['path', 'ns', 'id'],
    names: 'folder',
    call: (path) => read('files/download_zip', { path }),
  },
  {
    route: 'sharing/create_shared_link_with_settings',
    field: 'path',
    allows: READ,
    names: 'file',
    call: (path) => call('sharing/create_shared_link_with_settings', { path }),
  },
  {
    route: 'sharing/list_shared_links',
    field: 'path',
    allows: READ,
    names: 'file',
    call: (path) => call('sharing/list_shared_links', { path }),
  },
  ...['files/list_folder', 'files/list_folder/get_latest_cursor'].map(
    (route): Case => ({
      route,
      field: 'path',
      allows: WRITE_OR_ID,
      names: 'folder',
      call: (path) => call(route, { path }),
    }),
  ),
  {
    route: 'files/search_v2',
    field: 'options.path',
    allows: WRITE_OR_ID,
    names: 'folder',
    call: (path) => call('files/search_v2', { query: 'x', options: { path } }),
  },
  {
    route: 'files/list_revisions',
    field: 'path',
    allows: WRITE_OR_ID,
    names: 'file',
    call: (path) => call('files/list_revisions', { path }),
  },
  {
    route: 'files/upload',
    field: 'path',
    allows: WRITE_OR_ID,
    names: 'new',
    isUpload: true,
    call: (path) => upload(service, 'files/upload', { path }, { body: 'new' }),
  },
  {
    route: 'files/upload_session/finish',
    field: 'commit.path',
    allows: WRITE_OR_ID,
    names: 'new',
    isUpload: true,
    call: async (path) => {
      const cursor = { session_id: await closedSession(), offset: 3 };
      return upload(service, 'files/upload_session/finish', { cursor, commit: { path } });
    },
  },
  ...['upload_session/finish_batch', 'upload_session/finish_batch_v2'].map(
    (name): Case => ({
      route: `files/${name}`,
      field: 'commit.path',
      allows: WRITE_OR_ID,
      names: 'new',
      isUpload: true,
      call: (path) => finishAll(name, path),
    }),
  ),
  {
    route: 'files/get_temporary_upload_link',
    field: 'commit_info.path',
    allows: WRITE_OR_ID,
    names: 'new',
    call: async (path) => {
      const answered = await call('files/get_temporary_upload_link', { commit_info: { path } });
      if (answered.status !== 200) return answered;
      const headers = { 'content-type': 'application/octet-stream' };
      return send((answered.json as { link: string }).link, { method: 'POST', headers, body: 'new' });
    },
  },
  {
    route: 'files/create_folder_v2',
    field: 'path',
    allows: WRITE,
    names: 'new',
    call: (path) => call('files/create_folder_v2', { path }),
  },
  {
    route: 'files/create_folder_batch',
    field: 'paths',
    allows: WRITE,
    names: 'new',
    call: (path) => batch('create_folder_batch', { paths: [path] }),
  },
  ...['files/delete_v2', 'files/permanently_delete'].map(
    (route): Case => ({
      route,
      field: 'path',
      allows: WRITE_OR_ID,
      names: 'file',
      call: (path) => call(route, { path }),
    }),
  ),
  {
    route: 'files/delete_batch',
    field: 'entries.path',
    allows: WRITE_OR_ID,
    names: 'file',
    call: (path) => batch('delete_batch', { entries: [{ path }] }),
  },
  {
    route: 'files/restore',
    field: 'path',
    allows: WRITE,
    names: 'file',
    call: (path, { rev }) => call('files/restore', { path, rev }),
  },
  ...['move', 'copy'].flatMap((verb): Case[] => [
    {
      route: `files/${verb}_v2`,
      field: 'from_path',
      allows: WRITE_OR_ID,
      names: 'file',
      call: (path, item) => call(`files/${verb}_v2`, { from_path: path, to_path: `${item.path}.to` }),
    },
    {
      route: `files/${verb}_v2`,
      field: 'to_path',
      allows: WRITE_OR_ID,
      names: 'new',
      call: async (path) => call(`files/${verb}_v2`, { from_path: (await file()).path, to_path: path }),
    },
    {
      route: `files/${verb}_batch_v2`,
      field: 'from_path',
      allows: WRITE_OR_ID,
      names: 'file',
      call: (path, item) =>
        batch(`${verb}_batch_v2`, { entries: [{ from_path: path, to_path: `${item.path}.to` }] }),
    },
    {
      route: `files/${verb}_batch_v2`,
      field: 'to_path',
      allows: WRITE_OR_ID,
      names: 'new',
      call: async (path) =>
        batch(`${verb}_batch_v2`, { entries: [{ from_path: (await file()).path, to_path: path }] }),
    },
  ]),
];

/** Functions that name nothing by a path; what they work on is named by a cursor, a job, a session or a link. */
const WITHOUT_PATH = [
  'auth/token/revoke',
  'check/app',
  'check/user',
  'files/copy_batch/check_v2',
  'files/create_folder_batch/check',
  'files/delete_batch/check',
  'files/list_folder/continue',
  'files/list_folder/longpoll',
  'files/move_batch/check_v2',
  'files/search/continue_v2',
  'files/upload_session/append',
  'files/upload_session/append_batch',
  'files/upload_session/append_v2',
  'files/upload_session/finish_batch/check',
  'files/upload_session/start',
  'files/upload_session/start_batch',
  'sharing/get_shared_link_file',
  'sharing/get_shared_link_metadata',
  'sharing/modify_shared_link_settings',
  'sharing/revoke_shared_link',
  'users/get_current_account',
  'users/get_space_usage',
];

async function file(): Promise<Item> {
  const path = `/files/File ${made++}`;
  const { id, rev } = await put(service, path, `bytes of ${path}`);
  return { path, id: String(id), rev: String(rev) };
}

/** One red pixel. */
const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC',
  'base64',
);

async function image(): Promise<Item> {
  const path = `/images/Image ${made++}.png`;
  const { id, rev } = await put(service, path, DOT);
  return { path, id: String(id), rev: String(rev) };
}

async function folder(): Promise<Item> {
  const path = `/Folder ${made++}`;
  const { rev } = await put(service, `${path}/x`, `bytes of ${path}`);
  const answered = await call('files/get_metadata', { path });
  return { path, id: (answered.json as { id: string }).id, rev: String(rev) };
}

/** An item for a case, and what each form calls what the case names. */
async function itemFor({ names }: Case): Promise<{ item: Item; addresses: Record<Form, string> }> {
  const item = await (names === 'file' ? file() : names === 'image' ? image() : folder());
  const below = names === 'new' ? '/new' : '';
  const addresses = {
    path: item.path + below,
    ns: `ns:${namespace}${item.path}${below}`,
    id: item.id + below,
    rev: `rev:${item.rev}`,
  };
  return { item, addresses };
}

test('every function is in the table, or known to take no path', () => {
  const named = new Set([...CASES.map(({ route }) => route), ...WITHOUT_PATH]);
  expect([...named].sort()).toEqual([...ROUTES.keys()].sort());
});

/** Everything of an answer that does not tell one fresh item from another. */
function shapeOf({ status, json }: Answered, { path }: Item): unknown {
  const plain = JSON.stringify(json ?? null)
    .replaceAll(path.slice(1), 'ITEM')
    .replaceAll(path.slice(1).toLowerCase(), 'ITEM')
    .replaceAll(path.split('/').at(-1) ?? '', 'NAME')
    .replaceAll(/"(id|rev|cursor|content_hash|content-hash|link|url|\w+_modified)":"[^"]*"/g, '"$1":…');
  return { status, plain: plain.replaceAll(/ITEM|NAME|File \d+/g, 'IT') };
}

describe.each(CASES.map((one) => [one.route, one.field, one] as const))('%s, %s', (_route, _field, one) => {
  test.each(FORMS.filter((form) => one.allows.includes(form)))('by %s', async (form) => {
    const plain = await itemFor(one);
    const expected = shapeOf(await one.call(plain.addresses.path, plain.item), plain.item);
    const { item, addresses } = await itemFor(one);
    const answered = await one.call(addresses[form], item);
    expect(answered.status, answered.text).toBe(200);
    expect(shapeOf(answered, item)).toEqual(expected);
    if (one.names === 'new')
      expect((await call('files/get_metadata', { path: addresses.path })).status).toBe(200);
  });

  test.each(FORMS.filter((form) => !one.allows.includes(form)))('not by %s', async (form) => {
    const { item, addresses } = await itemFor(one);
    const answered = await one.call(addresses[form], item);
    if (one.isUpload) {
      expect([answered.status, JSON.stringify(answered.json)]).toEqual([
        409,
        expect.stringContaining('malformed_path'),
      ]);
    } else if (one.route === 'files/download_zip') {
      // The pattern allows it, but a revision is never a folder.
      expect(answered.json).toMatchObject({ error: { path: { '.tag': 'not_folder' } } });
    } else {
      expect([answered.status, answered.text]).toEqual([
        400,
        expect.stringContaining(`'${addresses[form]}' did not match pattern`),
      ]);
    }
    expect((await call('files/get_metadata', { path: item.path })).status).toBe(200);
  });

  test('nothing by the namespace or the id of another', async () => {
    const { item } = await itemFor(one);
    const below = one.names === 'new' ? '/new' : '';
    for (const address of [`ns:1${item.path}${below}`, `id:AAAAAAAAAAAAAAAAAAAAAA${below}`]) {
      if (address.startsWith('id:') && !one.allows.includes('id')) continue;
      const answered = await one.call(address, item);
      // A search in a folder that is not there finds nothing, as the real service's does.
      const isSearch = one.route === 'files/search_v2' && answered.status === 200;
      if (isSearch) expect(answered.json).toEqual({ matches: [], has_more: false });
      else
        expect([answered.status, answered.json ? JSON.stringify(answered.json) : answered.text]).toEqual([
          409,
          expect.stringMatching(/not_found|no_write_permission|malformed_path/),
        ]);
    }
    expect((await call('files/get_metadata', { path: item.path })).status).toBe(200);
  });
});

describe('Dropbox-API-Path-Root', () => {
  const users = [...ROUTES.values()].filter(({ auth }) => auth.endsWith('user'));

  test.each(users.map((route) => [route.name, route] as const))('%s', async (name, { style }) => {
    // The argument is none, which is complained of after the root.
    const statusUnder = async (root: object) => {
      const options = { headers: { 'dropbox-api-path-root': JSON.stringify(root) } };
      const account = await rpc(service, 'check/user', {}, options);
      const { status } = await (style === 'upload'
        ? upload(service, name, 'x', options)
        : send(`${service.url}/2/${name}`, {
            method: 'POST',
            headers: {
              authorization: `Bearer ${service.token}`,
              ...options.headers,
              ...(style === 'rpc' ? { 'content-type': 'application/json' } : { 'dropbox-api-arg': '"x"' }),
            },
            body: style === 'rpc' ? '"x"' : '',
          }));
      expect(account.status === 422).toBe(status === 422);
      return status;
    };
    for (const root of [
      { '.tag': 'home' },
      { '.tag': 'root', root: namespace },
      { '.tag': 'namespace_id', namespace_id: namespace },
    ])
      expect(await statusUnder(root)).toBe(400);
    for (const root of [
      { '.tag': 'root', root: '1' },
      { '.tag': 'namespace_id', namespace_id: '1' },
    ])
      expect(await statusUnder(root)).toBe(422);
  });
});
