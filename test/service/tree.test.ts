import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileShape, folderShape } from '../support/metadata-shapes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, refusal, refusalIn, rpc, upload } from '../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const call = (name: string, argument: unknown) => rpc(service, name, argument);

describe('files/create_folder_v2', () => {
  test('files/create_folder_v2 answers FolderMetadata without a tag', async () => {
    const answered = await call('files/create_folder_v2', { path: '/Made/Inner' });
    expect(answered.json).toEqual({ metadata: folderShape('/Made/Inner', 'Inner') });
  });

  test('files/create_folder_v2 with autorename takes a free name', async () => {
    await call('files/create_folder_v2', { path: '/Renamed' });
    const answered = await call('files/create_folder_v2', { path: '/Renamed', autorename: true });
    expect(answered.json).toMatchObject({ metadata: { name: 'Renamed (1)' } });
  });

  test.each([
    ['/Taken', 'path/conflict/folder', { '.tag': 'conflict', conflict: { '.tag': 'folder' } }],
    ['/Taken/f', 'path/conflict/file', { '.tag': 'conflict', conflict: { '.tag': 'file' } }],
    [
      '/Taken/f/g',
      'path/conflict/file_ancestor',
      { '.tag': 'conflict', conflict: { '.tag': 'file_ancestor' } },
    ],
    ['/Thumbs.db', 'path/disallowed_name', { '.tag': 'disallowed_name' }],
    ['/a/../b', 'path/malformed_path', { '.tag': 'malformed_path' }],
    ['/', 'path/malformed_path', { '.tag': 'malformed_path' }],
    ['ns:1/x', 'path/no_write_permission', { '.tag': 'no_write_permission' }],
  ])('files/create_folder_v2 refuses %s: %s', async (path, summary, error) => {
    await put(service, '/Taken/f', 'text');
    expect(refusalIn(await call('files/create_folder_v2', { path }))).toEqual(
      refusal(409, summary, { '.tag': 'path', path: error }),
    );
  });
});

describe.each(['files/delete_v2', 'files/permanently_delete'])('%s', (name) => {
  test.each([
    ['/nothing', 'not_found'],
    ['/', 'malformed_path'],
    ['/a/', 'malformed_path'],
    ['ns:1/x', 'not_found'],
  ])(`${name} of %s answers path_lookup/%s`, async (path, tag) => {
    expect(refusalIn(await call(name, { path }))).toEqual(
      refusal(409, `path_lookup/${tag}`, { '.tag': 'path_lookup', path_lookup: { '.tag': tag } }),
    );
  });

  test(`${name} with an old parent_rev answers path_write/conflict/file and keeps the file`, async () => {
    const { rev } = await put(service, '/guarded', 'one');
    await put(service, '/guarded', 'two');
    expect(refusalIn(await call(name, { path: '/guarded', parent_rev: rev }))).toEqual(
      refusal(409, 'path_write/conflict/file', {
        '.tag': 'path_write',
        path_write: { '.tag': 'conflict', conflict: { '.tag': 'file' } },
      }),
    );
    expect((await download(service, '/guarded')).text).toBe('two');
  });
});

test('files/delete_v2 answers the metadata of the deleted item, with a tag', async () => {
  await put(service, '/Removed/file', 'text');
  const file = await call('files/delete_v2', { path: '/removed/file' });
  expect(file.json).toEqual({ metadata: { '.tag': 'file', ...fileShape('/Removed/file', 'file') } });
  const folder = await call('files/delete_v2', { path: '/removed' });
  expect(folder.json).toEqual({ metadata: { '.tag': 'folder', ...folderShape('/Removed', 'Removed') } });
});

test('files/permanently_delete answers null and leaves no revision', async () => {
  const { rev } = await put(service, '/forever', 'text');
  const answered = await call('files/permanently_delete', { path: '/forever' });
  expect([answered.status, answered.text]).toEqual([200, 'null']);
  expect(answered.headers.get('content-type')).toBe('application/json');
  expect((await call('files/get_metadata', { path: `rev:${rev}` })).status).toBe(409);
});

test('files/permanently_delete answers 400 to an account without that right', async () => {
  const account = await service.service.addAccount({
    email: 'basic@example.org',
    givenName: 'B',
    surname: 'A',
    mayDeletePermanently: false,
  });
  const token = await service.service.grant({
    accountId: account.id,
    scopes: ['files.permanent_delete', 'files.content.write'],
  });
  await upload(service, 'files/upload', { path: '/kept' }, { body: 'text', token });
  const answered = await rpc(service, 'files/permanently_delete', { path: '/kept' }, { token });
  expect([answered.status, answered.text]).toEqual([
    400,
    'Error in call to API function "files/permanently_delete": Your API app is not allowed to call this function.',
  ]);
  expect((await rpc(service, 'files/delete_v2', { path: '/kept' }, { token })).status).toBe(200);
});

describe.each(['files/move_v2', 'files/copy_v2'])('%s', (name) => {
  const relocate = (from: string, to: string) => call(name, { from_path: from, to_path: to });

  test(`${name} answers Metadata with a tag`, async () => {
    await put(service, `/${name}/A`, 'text');
    const file = await relocate(`/${name}/a`, `/${name}/New/B`);
    expect(file.json).toEqual({ metadata: { '.tag': 'file', ...fileShape(`/${name}/New/B`, 'B') } });
    const folder = await relocate(`/${name}/new`, `/${name}/Other`);
    expect(folder.json).toEqual({
      metadata: { '.tag': 'folder', ...folderShape(`/${name}/Other`, 'Other') },
    });
  });

  const conflict = (tag: string) => ({ '.tag': 'conflict', conflict: { '.tag': tag } });
  test.each([
    ['/from/nothing', '/to', 'from_lookup/not_found', 'from_lookup', { '.tag': 'not_found' }],
    ['/from/a/', '/to', 'from_lookup/malformed_path', 'from_lookup', { '.tag': 'malformed_path' }],
    ['/', '/to', 'from_lookup/malformed_path', 'from_lookup', { '.tag': 'malformed_path' }],
    ['ns:1/x', '/to', 'from_lookup/not_found', 'from_lookup', { '.tag': 'not_found' }],
    ['/from/a', '/from/b', 'to/conflict/file', 'to', conflict('file')],
    ['/from/a', '/from/c', 'to/conflict/folder', 'to', conflict('folder')],
    ['/from/a', '/from/b/x', 'to/conflict/file_ancestor', 'to', conflict('file_ancestor')],
    ['/from/a', '/from/x/', 'to/malformed_path', 'to', { '.tag': 'malformed_path' }],
    ['/from/a', '/', 'to/malformed_path', 'to', { '.tag': 'malformed_path' }],
    ['/from/a', '/desktop.ini', 'to/disallowed_name', 'to', { '.tag': 'disallowed_name' }],
    ['/from/a', 'ns:1/x', 'to/no_write_permission', 'to', { '.tag': 'no_write_permission' }],
  ])(`${name} of %s to %s answers %s`, async (from, to, summary, member, error) => {
    await put(service, '/from/a', 'text');
    await put(service, '/from/b', 'text');
    await put(service, '/from/c/d', 'text');
    expect(refusalIn(await relocate(from, to))).toEqual(
      refusal(409, summary, { '.tag': member, [member]: error }),
    );
  });

  test(`${name} of a folder into itself is refused`, async () => {
    await put(service, '/self/a', 'text');
    const answered = refusalIn(await relocate('/self', '/self/inner'));
    expect(answered['status']).toBe(409);
    expect(['cant_move_folder_into_itself', 'duplicated_or_nested_paths']).toContain(answered['summary']);
    expect(answered['error']).toEqual({ '.tag': answered['summary'] });
  });
});

test('files/copy_v2 gives the copy a new id, and files/move_v2 keeps the id', async () => {
  const { id } = await put(service, '/ids/a', 'text');
  const copied = await call('files/copy_v2', { from_path: '/ids/a', to_path: '/ids/b' });
  expect(copied.json).not.toMatchObject({ metadata: { id } });
  const moved = await call('files/move_v2', { from_path: '/ids/a', to_path: '/ids/c' });
  expect(moved.json).toMatchObject({ metadata: { id } });
});
