import { type Item, newFile } from './items.ts';
import { finished } from './jobs.ts';
import { endOfSave, launchSave } from './save-url.ts';
import type { TestService } from './service.ts';
import { type Answered, headerJson, rpc, send, upload } from './service-client.ts';

/** Forms of a path (service-api.md §5). */
export type Form = 'path' | 'ns' | 'id' | 'rev';

/** Forms that the pattern of reading functions allows. */
export const READ: readonly Form[] = ['path', 'ns', 'id', 'rev'];
const WRITE_OR_ID: readonly Form[] = ['path', 'ns', 'id'];
const WRITE: readonly Form[] = ['path', 'ns'];
const PLAIN: readonly Form[] = ['path'];

/** A field of a function that takes a path. */
export interface PathField {
  readonly route: string;
  readonly field: string;
  readonly allows: readonly Form[];
  /** The kind of item addressed; `new` is a free name in a folder. */
  readonly names: 'file' | 'image' | 'table' | 'folder' | 'new';
  /** Calls the function. Returns its answer, or that of a batch's entry. */
  readonly call: (service: TestService, address: string, item: Item) => Promise<Answered>;
  /** Whether an invalid form answers the 409 of an upload instead of 400. */
  readonly isUpload?: boolean;
}

/** Every path field of every function. */
export const PATH_FIELDS: readonly PathField[] = [
  ...['files/get_metadata', 'files/alpha/get_metadata', 'files/get_temporary_link'].map(
    (route): PathField => ({
      route,
      field: 'path',
      allows: READ,
      names: 'file',
      call: (service, path) => rpc(service, route, { path }),
    }),
  ),
  {
    route: 'files/copy_reference/get',
    field: 'path',
    allows: READ,
    names: 'file',
    call: async (service, path) => {
      const answered = await rpc(service, 'files/copy_reference/get', { path });
      // The reference and the time differ for each item.
      const { metadata } = (answered.json ?? {}) as { metadata?: unknown };
      return metadata ? { ...answered, json: metadata } : answered;
    },
  },
  {
    route: 'files/copy_reference/save',
    field: 'path',
    allows: PLAIN,
    names: 'new',
    call: async (service, path) => {
      const from = (await newFile(service)).path;
      const { json } = await rpc(service, 'files/copy_reference/get', { path: from });
      return rpc(service, 'files/copy_reference/save', { ...pick(json), path });
    },
  },
  {
    route: 'files/save_url',
    field: 'path',
    allows: PLAIN,
    names: 'new',
    call: async (service, path) => {
      const { path: from } = await newFile(service);
      const { json } = await rpc(service, 'files/get_temporary_link', { path: from });
      const launched = await launchSave(service, (json as { link: string }).link, path);
      return launched.status === 200 ? { ...launched, json: await endOfSave(service, launched) } : launched;
    },
  },
  ...['files/tags/add', 'files/tags/remove'].map(
    (route): PathField => ({
      route,
      field: 'path',
      allows: PLAIN,
      names: 'file',
      call: async (service, path, item) => {
        if (route === 'files/tags/remove')
          await rpc(service, 'files/tags/add', { path: item.path, tag_text: 'seen' });
        return rpc(service, route, { path, tag_text: 'seen' });
      },
    }),
  ),
  {
    route: 'files/tags/get',
    field: 'paths',
    allows: PLAIN,
    names: 'file',
    call: (service, path) => rpc(service, 'files/tags/get', { paths: [path] }),
  },
  {
    route: 'files/download',
    field: 'path',
    allows: READ,
    names: 'file',
    call: (service, path) => read(service, 'files/download', { path }),
  },
  {
    route: 'files/get_preview',
    field: 'path',
    allows: READ,
    names: 'table',
    call: (service, path) => read(service, 'files/get_preview', { path }),
  },
  {
    route: 'files/get_thumbnail',
    field: 'path',
    allows: READ,
    names: 'image',
    call: (service, path) => read(service, 'files/get_thumbnail', { path }),
  },
  {
    route: 'files/get_thumbnail_v2',
    field: 'resource.path',
    allows: READ,
    names: 'image',
    call: (service, path) => read(service, 'files/get_thumbnail_v2', { resource: { '.tag': 'path', path } }),
  },
  {
    route: 'files/get_thumbnail_batch',
    field: 'entries.path',
    allows: READ,
    names: 'image',
    call: async (service, path) =>
      entryOf(await rpc(service, 'files/get_thumbnail_batch', { entries: [{ path }] })),
  },
  {
    route: 'files/download_zip',
    field: 'path',
    allows: ['path', 'ns', 'id'],
    names: 'folder',
    call: (service, path) => read(service, 'files/download_zip', { path }),
  },
  {
    route: 'sharing/create_shared_link_with_settings',
    field: 'path',
    allows: READ,
    names: 'file',
    call: (service, path) => rpc(service, 'sharing/create_shared_link_with_settings', { path }),
  },
  {
    route: 'sharing/create_shared_link',
    field: 'path',
    allows: READ,
    names: 'file',
    call: (service, path) => rpc(service, 'sharing/create_shared_link', { path }),
  },
  {
    route: 'sharing/list_shared_links',
    field: 'path',
    allows: READ,
    names: 'file',
    call: (service, path) => rpc(service, 'sharing/list_shared_links', { path }),
  },
  ...['files/list_folder', 'files/list_folder/get_latest_cursor'].map(
    (route): PathField => ({
      route,
      field: 'path',
      allows: WRITE_OR_ID,
      names: 'folder',
      call: (service, path) => rpc(service, route, { path }),
    }),
  ),
  {
    route: 'files/search_v2',
    field: 'options.path',
    allows: WRITE_OR_ID,
    names: 'folder',
    call: (service, path) => rpc(service, 'files/search_v2', { query: 'x', options: { path } }),
  },
  {
    route: 'files/search',
    field: 'path',
    allows: WRITE_OR_ID,
    names: 'folder',
    call: (service, path) => rpc(service, 'files/search', { query: 'x', path }),
  },
  {
    route: 'files/list_revisions',
    field: 'path',
    allows: WRITE_OR_ID,
    names: 'file',
    call: (service, path) => rpc(service, 'files/list_revisions', { path }),
  },
  ...['files/upload', 'files/alpha/upload'].map(
    (route): PathField => ({
      route,
      field: 'path',
      allows: WRITE_OR_ID,
      names: 'new',
      isUpload: true,
      call: (service, path) => upload(service, route, { path }, { body: 'new' }),
    }),
  ),
  {
    route: 'files/upload_session/finish',
    field: 'commit.path',
    allows: WRITE_OR_ID,
    names: 'new',
    isUpload: true,
    call: async (service, path) => {
      const cursor = { session_id: await closedSession(service), offset: 3 };
      return upload(service, 'files/upload_session/finish', { cursor, commit: { path } });
    },
  },
  ...['upload_session/finish_batch', 'upload_session/finish_batch_v2'].map(
    (name): PathField => ({
      route: `files/${name}`,
      field: 'commit.path',
      allows: WRITE_OR_ID,
      names: 'new',
      isUpload: true,
      call: (service, path) => finishAll(service, name, path),
    }),
  ),
  {
    route: 'files/get_temporary_upload_link',
    field: 'commit_info.path',
    allows: WRITE_OR_ID,
    names: 'new',
    call: async (service, path) => {
      const answered = await rpc(service, 'files/get_temporary_upload_link', { commit_info: { path } });
      if (answered.status !== 200) return answered;
      const headers = { 'content-type': 'application/octet-stream' };
      return send((answered.json as { link: string }).link, { method: 'POST', headers, body: 'new' });
    },
  },
  ...['files/create_folder', 'files/create_folder_v2'].map(
    (route): PathField => ({
      route,
      field: 'path',
      allows: WRITE,
      names: 'new',
      call: (service, path) => rpc(service, route, { path }),
    }),
  ),
  {
    route: 'files/create_folder_batch',
    field: 'paths',
    allows: WRITE,
    names: 'new',
    call: (service, path) => batch(service, 'create_folder_batch', { paths: [path] }),
  },
  ...['files/delete', 'files/delete_v2', 'files/permanently_delete'].map(
    (route): PathField => ({
      route,
      field: 'path',
      allows: WRITE_OR_ID,
      names: 'file',
      call: (service, path) => rpc(service, route, { path }),
    }),
  ),
  {
    route: 'files/delete_batch',
    field: 'entries.path',
    allows: WRITE_OR_ID,
    names: 'file',
    call: (service, path) => batch(service, 'delete_batch', { entries: [{ path }] }),
  },
  {
    route: 'files/restore',
    field: 'path',
    allows: WRITE,
    names: 'file',
    call: (service, path, { rev }) => rpc(service, 'files/restore', { path, rev }),
  },
  ...['move', 'move_v2', 'copy', 'copy_v2'].flatMap((name): PathField[] => [
    {
      route: `files/${name}`,
      field: 'from_path',
      allows: WRITE_OR_ID,
      names: 'file',
      call: (service, path, item) =>
        rpc(service, `files/${name}`, { from_path: path, to_path: `${item.path}.to` }),
    },
    {
      route: `files/${name}`,
      field: 'to_path',
      allows: WRITE_OR_ID,
      names: 'new',
      call: async (service, path) =>
        rpc(service, `files/${name}`, { from_path: (await newFile(service)).path, to_path: path }),
    },
  ]),
  ...['move_batch', 'move_batch_v2', 'copy_batch', 'copy_batch_v2'].flatMap((name): PathField[] => [
    {
      route: `files/${name}`,
      field: 'from_path',
      allows: WRITE_OR_ID,
      names: 'file',
      call: (service, path, item) =>
        batch(service, name, { entries: [{ from_path: path, to_path: `${item.path}.to` }] }),
    },
    {
      route: `files/${name}`,
      field: 'to_path',
      allows: WRITE_OR_ID,
      names: 'new',
      call: async (service, path) =>
        batch(service, name, {
          entries: [{ from_path: (await newFile(service)).path, to_path: path }],
        }),
    },
  ]),
];

/** Functions without a path field. They work on a cursor, a job, a session or a link. */
export const WITHOUT_PATH = [
  'auth/token/revoke',
  'check/app',
  'check/user',
  'file_properties/templates/list_for_user',
  'files/copy_batch/check',
  'files/copy_batch/check_v2',
  'files/create_folder_batch/check',
  'files/delete_batch/check',
  'files/list_folder/continue',
  'files/list_folder/longpoll',
  'files/move_batch/check',
  'files/move_batch/check_v2',
  'files/save_url/check_job_status',
  'files/search/continue_v2',
  'files/upload_session/append',
  'files/upload_session/append_batch',
  'files/upload_session/append_v2',
  'files/upload_session/finish_batch/check',
  'files/upload_session/start',
  'files/upload_session/start_batch',
  'sharing/get_shared_link_file',
  'sharing/get_shared_link_metadata',
  // An unknown path answers no links; `sdk/first-version.test.ts` tests its forms.
  'sharing/get_shared_links',
  'sharing/list_folders',
  'sharing/modify_shared_link_settings',
  'sharing/revoke_shared_link',
  'users/features/get_values',
  'users/get_account',
  'users/get_account_batch',
  'users/get_current_account',
  'users/get_space_usage',
];

/** Returns the fields of copy_reference/get that copy_reference/save takes. */
function pick(json: unknown): object {
  const { copy_reference } = json as { copy_reference: string };
  return { copy_reference };
}

/** Makes a download-style call. */
function read(service: TestService, name: string, argument: unknown): Promise<Answered> {
  return send(`${service.url}/2/${name}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${service.token}`, 'dropbox-api-arg': headerJson(argument) },
  });
}

/** Runs a batch of one entry. Returns that entry as an answer, or the refusal of the launch. */
async function batch(service: TestService, name: string, argument: object): Promise<Answered> {
  const launched = await rpc(service, `files/${name}`, argument);
  if (launched.status !== 200) return launched;
  const [entry] =
    (launched.json as { entries?: unknown[] }).entries ?? (await finished(service, name, launched));
  return { ...launched, json: entry, status: isFailure(entry) ? 409 : 200 };
}

const isFailure = (entry: unknown) => (entry as { '.tag': string })['.tag'] === 'failure';

/** Returns the only entry of a batch as an answer. */
function entryOf(answered: Answered): Answered {
  const [entry] = (answered.json as { entries: unknown[] }).entries;
  return { ...answered, json: entry, status: isFailure(entry) ? 409 : 200 };
}

async function closedSession(service: TestService): Promise<string> {
  const started = await upload(service, 'files/upload_session/start', { close: true }, { body: 'new' });
  return (started.json as { session_id: string }).session_id;
}

async function finishAll(service: TestService, name: string, path: string): Promise<Answered> {
  const cursor = { session_id: await closedSession(service), offset: 3 };
  const entries = [{ cursor, commit: { path, mode: 'overwrite' } }];
  if (name !== 'upload_session/finish_batch_v2') return batch(service, name, { entries });
  return entryOf(await rpc(service, `files/${name}`, { entries }));
}
