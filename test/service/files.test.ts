import { statfs } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, refusal, refusalIn, rpc, upload } from '../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
const ID = expect.stringMatching(/^id:[\w-]{22}$/);
const REV = expect.stringMatching(/^[0-9a-f]{9,31}$/);
/** SHA-256 of the SHA-256 of the four bytes `text`. */
const TEXT_HASH = 'aa10070a4e571b204bbdf6de20978f0f0c7710516dfd9b2721975b6ffcc693dc';

function fileShape(path: string, name: string): Record<string, unknown> {
  return {
    name,
    path_lower: path.toLowerCase(),
    path_display: path,
    id: ID,
    client_modified: TIME,
    server_modified: TIME,
    rev: REV,
    size: 4,
    is_downloadable: true,
    content_hash: TEXT_HASH,
  };
}

function folderShape(path: string, name: string): Record<string, unknown> {
  return { name, path_lower: path.toLowerCase(), path_display: path, id: ID };
}

const call = (name: string, argument: unknown) => rpc(service, name, argument);

describe('files/upload', () => {
  const send = (argument: object, body = 'text') => upload(service, 'files/upload', argument, { body });

  test('answers FileMetadata without a tag', async () => {
    const answered = await send({ path: '/Ab/C.txt' });
    expect(answered.status).toBe(200);
    expect(answered.headers.get('content-type')).toBe('application/json');
    expect(answered.json).toEqual(fileShape('/Ab/C.txt', 'C.txt'));
  });

  test('keeps client_modified', async () => {
    const answered = await send({ path: '/dated', client_modified: '2001-02-03T04:05:06Z' });
    expect(answered.json).toMatchObject({ client_modified: '2001-02-03T04:05:06Z' });
  });

  test.each(['', 'no-slash', 'rev:a1c10ce0dd78', 'ns:x/y', '/a//b', '/..', '/a/../b', '/end/', '/\0'])(
    'refuses the path %j as malformed_path, with a session id',
    async (path) => {
      expect(refusalIn(await send({ path }))).toEqual(
        refusal(409, 'path/malformed_path', {
          '.tag': 'path',
          reason: { '.tag': 'malformed_path' },
          upload_session_id: expect.stringMatching(/^pid_upload_session:[\w-]+$/),
        }),
      );
    },
  );

  test.each([
    ['/up/file', 'add', 'path/conflict/file', { '.tag': 'conflict', conflict: { '.tag': 'file' } }],
    ['/up', 'overwrite', 'path/conflict/folder', { '.tag': 'conflict', conflict: { '.tag': 'folder' } }],
    [
      '/up/file/below',
      'add',
      'path/conflict/file_ancestor',
      { '.tag': 'conflict', conflict: { '.tag': 'file_ancestor' } },
    ],
    ['/up/.DS_Store', 'add', 'path/disallowed_name', { '.tag': 'disallowed_name' }],
    ['ns:1/elsewhere', 'add', 'path/no_write_permission', { '.tag': 'no_write_permission' }],
    ['id:AAAAAAAAAAAAAAAAAAAAAA', 'add', 'path/malformed_path', { '.tag': 'malformed_path' }],
  ])('refuses %s with mode %s: %s', async (path, mode, summary, reason) => {
    await put(service, '/up/file', 'other');
    expect(refusalIn(await send({ path, mode }))).toEqual(
      refusal(409, summary, { '.tag': 'path', reason, upload_session_id: expect.any(String) }),
    );
  });

  test('update: replaces the revision named, and no other', async () => {
    const { rev, id } = await put(service, '/updated', 'one');
    const mode = { '.tag': 'update', update: rev };
    const second = await send({ path: '/updated', mode }, 'two');
    expect(second.json).toMatchObject({ id, size: 3, rev: expect.not.stringMatching(String(rev)) });
    expect(refusalIn(await send({ path: '/updated', mode }, 'three'))).toMatchObject({
      summary: 'path/conflict/file',
    });
    expect((await download(service, '/updated')).text).toBe('two');
  });

  test('a bad hash of the body stores nothing', async () => {
    const answered = await send({ path: '/hashed', content_hash: '0'.repeat(64) });
    expect(refusalIn(answered)).toEqual(
      refusal(409, 'content_hash_mismatch', { '.tag': 'content_hash_mismatch' }),
    );
    expect((await download(service, '/hashed')).status).toBe(409);
    expect((await send({ path: '/hashed', content_hash: TEXT_HASH })).status).toBe(200);
  });

  test('more than 150 MiB is payload_too_large', async () => {
    const body = Buffer.alloc(150 * 1024 * 1024 + 1);
    const answered = await upload(service, 'files/upload', { path: '/large' }, { body });
    expect(refusalIn(answered)).toEqual(refusal(409, 'payload_too_large', { '.tag': 'payload_too_large' }));
    expect((await call('files/get_metadata', { path: '/large' })).status).toBe(409);
  });

  test('the account full: insufficient_space', async () => {
    const account = service.service.addAccount({
      email: 'small@example.org',
      givenName: 'S',
      surname: 'M',
      mayDeletePermanently: false,
      limitBytes: 3,
    });
    const token = await service.service.grant({ accountId: account.id, scopes: ['files.content.write'] });
    const answered = await upload(service, 'files/upload', { path: '/four' }, { body: 'text', token });
    expect(refusalIn(answered)).toMatchObject({ status: 409, summary: 'path/insufficient_space' });
    expect((await upload(service, 'files/upload', { path: '/two' }, { body: 'ab', token })).status).toBe(200);
  });
});

describe('files/get_metadata', () => {
  test('tells a file, a folder and a deletion apart by tag', async () => {
    await put(service, '/Meta/File', 'text');
    await put(service, '/Meta/Gone', 'text');
    await call('files/delete_v2', { path: '/Meta/Gone' });
    const file = await call('files/get_metadata', { path: '/meta/FILE' });
    expect(file.json).toEqual({ '.tag': 'file', ...fileShape('/Meta/File', 'File') });
    const folder = await call('files/get_metadata', { path: '/meta' });
    expect(folder.json).toEqual({ '.tag': 'folder', ...folderShape('/Meta', 'Meta') });
    const gone = await call('files/get_metadata', { path: '/meta/gone', include_deleted: true });
    expect(gone.json).toEqual({
      '.tag': 'deleted',
      name: 'Gone',
      path_lower: '/meta/gone',
      path_display: '/Meta/Gone',
    });
  });

  test('finds by id, by revision and by namespace path', async () => {
    const { id, rev } = await put(service, '/Forms/File', 'text');
    const account = await call('users/get_current_account', null);
    const { root_info: root } = account.json as { root_info: { home_namespace_id: string } };
    for (const path of [id, `rev:${rev}`, `ns:${root.home_namespace_id}/forms/file`])
      expect((await call('files/get_metadata', { path })).json).toMatchObject({ id, rev });
  });

  test.each([
    [{ path: '/nothing' }, 'not_found'],
    [{ path: 'id:AAAAAAAAAAAAAAAAAAAAAA' }, 'not_found'],
    [{ path: 'rev:0123456789abcdef' }, 'not_found'],
    [{ path: 'ns:1/x' }, 'not_found'],
    [{ path: '/a/' }, 'malformed_path'],
  ])('refuses %j: path/%s', async (argument, tag) => {
    expect(refusalIn(await call('files/get_metadata', argument))).toEqual(
      refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } }),
    );
  });

  test('names with line breaks and separators of lines are names', async () => {
    for (const name of ['a\nb', 'a\r\nb', 'a\u2028b', '\u{1f600} ä']) {
      await put(service, `/Names/${name}`, 'text');
      const answered = await call('files/get_metadata', { path: `/Names/${name}` });
      expect(answered.json).toMatchObject({ name });
    }
  });
});

describe('files/download', () => {
  test('answers the bytes, with the metadata in a header', async () => {
    const stored = await put(service, '/Down/ü.txt', 'text');
    const answered = await download(service, '/down/Ü.TXT');
    expect(answered.status).toBe(200);
    expect(answered.text).toBe('text');
    expect(answered.headers.get('content-type')).toBe('application/octet-stream');
    expect(answered.headers.get('content-length')).toBe('4');
    expect(answered.headers.get('original-content-length')).toBe('4');
    expect(answered.headers.get('accept-ranges')).toBe('bytes');
    expect(answered.headers.get('etag')).toBe(`W/"${stored['rev']}"`);
    const result = answered.headers.get('dropbox-api-result') ?? '';
    expect(result).toMatch(/^[\x20-\x7e]*$/);
    expect(JSON.parse(result)).toEqual(stored);
  });

  test('GET with ?arg= and ?authorization= does the same', async () => {
    await put(service, '/Down/got ü', 'text');
    const query = new URLSearchParams({
      arg: JSON.stringify({ path: '/Down/got ü' }),
      authorization: `Bearer ${service.token}`,
    });
    const response = await fetch(`${service.url}/2/files/download?${query}`);
    expect(await response.text()).toBe('text');
  });

  test.each([
    ['bytes=1-2', 'ex', 'bytes 1-2/4'],
    ['bytes=2-', 'xt', 'bytes 2-3/4'],
    ['bytes=-3', 'ext', 'bytes 1-3/4'],
    ['bytes=-30', 'text', 'bytes 0-3/4'],
    ['bytes=3-900', 't', 'bytes 3-3/4'],
  ])('Range: %s', async (range, text, contentRange) => {
    const stored = await put(service, '/Down/ranged', 'text');
    const answered = await download(service, '/Down/ranged', { headers: { range } });
    expect(answered.status).toBe(206);
    expect(answered.text).toBe(text);
    expect(answered.headers.get('content-range')).toBe(contentRange);
    expect(JSON.parse(answered.headers.get('dropbox-api-result') ?? '')).toEqual(stored);
  });

  test('several ranges far apart are ignored', async () => {
    await put(service, '/Down/long', 'x'.repeat(1000));
    const answered = await download(service, '/Down/long', { headers: { range: 'bytes=0-0,900-901' } });
    expect([answered.status, answered.text.length]).toEqual([200, 1000]);
  });

  test('a suffix of an empty file is all of it', async () => {
    await put(service, '/Down/nothing-in-it', '');
    const answered = await download(service, '/Down/nothing-in-it', { headers: { range: 'bytes=-1' } });
    expect([answered.status, answered.headers.get('content-length')]).toEqual([200, '0']);
  });

  test.each(['bytes=3-1', 'bytes=-', 'lines=1-2', 'bytes=a-b'])('Range: %s is ignored', async (range) => {
    await put(service, '/Down/ranged', 'text');
    const answered = await download(service, '/Down/ranged', { headers: { range } });
    expect([answered.status, answered.text]).toEqual([200, 'text']);
  });

  test.each([
    ['/Down/short', 'text', 'bytes=4-', 4],
    ['/Down/short', 'text', 'bytes=-0', 4],
    ['/Down/empty', '', 'bytes=0-', 0],
  ])('a range outside of %s (%j): %s is 416 with JSON', async (path, body, range, sizeBytes) => {
    await put(service, path, body);
    const answered = await download(service, path, { headers: { range } });
    expect(refusalIn(answered)).toEqual(refusal(416, 'range/not_satisfiable', { '.tag': 'other' }));
    expect(answered.headers.get('content-range')).toBe(`bytes */${sizeBytes}`);
  });

  test.each([
    (rev: string) => `W/"${rev}"`,
    (rev: string) => `"${rev}"`,
    (rev: string) => rev,
    (rev: string) => `"other", W/"${rev}"`,
  ])('If-None-Match form %# of the revision is 304', async (headerOf) => {
    const { rev } = await put(service, '/Down/known', 'text');
    const headers = { 'if-none-match': headerOf(String(rev)) };
    const answered = await download(service, '/Down/known', { headers });
    expect([answered.status, answered.text]).toEqual([304, '']);
    expect(answered.headers.get('etag')).toBe(`W/"${rev}"`);
  });

  test('an old revision stays readable by rev:', async () => {
    const { rev } = await put(service, '/Down/twice', 'old');
    await put(service, '/Down/twice', 'new');
    expect((await download(service, `rev:${rev}`)).text).toBe('old');
    const argument = { 'dropbox-api-arg': JSON.stringify({ path: '/Down/twice', rev }) };
    expect((await download(service, '', { headers: argument })).text).toBe('old');
  });

  test.each([
    ['/Down', 'not_file'],
    ['/Down/nothing', 'not_found'],
    ['/Down/', 'malformed_path'],
  ])('refuses %s: path/%s', async (path, tag) => {
    await put(service, '/Down/x', 'text');
    expect(refusalIn(await download(service, path))).toEqual(
      refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } }),
    );
  });
});

describe('files/create_folder_v2', () => {
  test('answers FolderMetadata without a tag', async () => {
    const answered = await call('files/create_folder_v2', { path: '/Made/Inner' });
    expect(answered.json).toEqual({ metadata: folderShape('/Made/Inner', 'Inner') });
  });

  test('autorename finds a free name', async () => {
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
  ])('refuses %s: %s', async (path, summary, error) => {
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
  ])('refuses %s: path_lookup/%s', async (path, tag) => {
    expect(refusalIn(await call(name, { path }))).toEqual(
      refusal(409, `path_lookup/${tag}`, { '.tag': 'path_lookup', path_lookup: { '.tag': tag } }),
    );
  });

  test('refuses another parent_rev: path_write/conflict/file', async () => {
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

test('files/delete_v2 answers what was there, with a tag', async () => {
  await put(service, '/Removed/file', 'text');
  const file = await call('files/delete_v2', { path: '/removed/file' });
  expect(file.json).toEqual({ metadata: { '.tag': 'file', ...fileShape('/Removed/file', 'file') } });
  const folder = await call('files/delete_v2', { path: '/removed' });
  expect(folder.json).toEqual({ metadata: { '.tag': 'folder', ...folderShape('/Removed', 'Removed') } });
});

test('files/permanently_delete answers null, and leaves no revision', async () => {
  const { rev } = await put(service, '/forever', 'text');
  const answered = await call('files/permanently_delete', { path: '/forever' });
  expect([answered.status, answered.text]).toEqual([200, 'null']);
  expect(answered.headers.get('content-type')).toBe('application/json');
  expect((await call('files/get_metadata', { path: `rev:${rev}` })).status).toBe(409);
});

test('files/permanently_delete is refused to an account that may not', async () => {
  const account = service.service.addAccount({
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

  test('answers Metadata with a tag', async () => {
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
  ])('refuses %s to %s: %s', async (from, to, summary, member, error) => {
    await put(service, '/from/a', 'text');
    await put(service, '/from/b', 'text');
    await put(service, '/from/c/d', 'text');
    expect(refusalIn(await relocate(from, to))).toEqual(
      refusal(409, summary, { '.tag': member, [member]: error }),
    );
  });

  test('refuses a folder into itself', async () => {
    await put(service, '/self/a', 'text');
    const answered = refusalIn(await relocate('/self', '/self/inner'));
    expect(answered['status']).toBe(409);
    expect(['cant_move_folder_into_itself', 'duplicated_or_nested_paths']).toContain(answered['summary']);
    expect(answered['error']).toEqual({ '.tag': answered['summary'] });
  });
});

test('copies take a new id, moves keep it', async () => {
  const { id } = await put(service, '/ids/a', 'text');
  const copied = await call('files/copy_v2', { from_path: '/ids/a', to_path: '/ids/b' });
  expect(copied.json).not.toMatchObject({ metadata: { id } });
  const moved = await call('files/move_v2', { from_path: '/ids/a', to_path: '/ids/c' });
  expect(moved.json).toMatchObject({ metadata: { id } });
});

describe('files/list_revisions and files/restore', () => {
  test('list newest first, tell deletion, and bring back', async () => {
    const first = await put(service, '/History', 'text');
    const second = await put(service, '/History', 'more text');
    const live = await call('files/list_revisions', { path: '/history' });
    expect(live.json).toEqual({ is_deleted: false, entries: [second, first], has_more: false });
    await call('files/delete_v2', { path: '/history' });
    const gone = await call('files/list_revisions', { path: '/history', limit: 1 });
    expect(gone.json).toEqual({
      is_deleted: true,
      server_deleted: TIME,
      entries: [second],
      has_more: true,
    });
    const restored = await call('files/restore', { path: '/History', rev: first['rev'] });
    expect(restored.json).toEqual({
      ...fileShape('/History', 'History'),
      rev: expect.not.stringMatching(String(first['rev'])),
    });
    expect((await download(service, '/History')).text).toBe('text');
  });

  test('errors', async () => {
    const { rev } = await put(service, '/errors/file', 'text');
    expect(refusalIn(await call('files/list_revisions', { path: '/errors' }))).toEqual(
      refusal(409, 'path/not_file', { '.tag': 'path', path: { '.tag': 'not_file' } }),
    );
    expect(refusalIn(await call('files/list_revisions', { path: '/never' }))).toEqual(
      refusal(409, 'path/not_found', { '.tag': 'path', path: { '.tag': 'not_found' } }),
    );
    const before = { path: '/errors/file', before_rev: '0123456789abcdef' };
    expect(refusalIn(await call('files/list_revisions', before))).toEqual(
      refusal(409, 'invalid_before_rev', { '.tag': 'invalid_before_rev' }),
    );
    const wrong = { path: '/errors/file', rev: '0123456789abcdef' };
    expect(refusalIn(await call('files/restore', wrong))).toEqual(
      refusal(409, 'invalid_revision', { '.tag': 'invalid_revision' }),
    );
    const malformed = { path: '/errors/file/', rev };
    expect(refusalIn(await call('files/restore', malformed))).toMatchObject({ status: 409 });
  });
});

describe('users and check', () => {
  test('users/get_current_account', async () => {
    expect((await call('users/get_current_account', null)).json).toEqual({
      account_id: expect.stringMatching(/^dbid:[\w-]{35}$/),
      name: {
        given_name: 'davgate',
        surname: 'Drive',
        familiar_name: 'davgate',
        display_name: 'davgate Drive',
        abbreviated_name: 'dD',
      },
      email: 'drive@davgate.invalid',
      email_verified: true,
      disabled: false,
      locale: 'en',
      referral_link: `${service.url}/`,
      is_paired: false,
      account_type: { '.tag': 'pro' },
      root_info: {
        '.tag': 'user',
        root_namespace_id: expect.stringMatching(/^\d+$/),
        home_namespace_id: expect.stringMatching(/^\d+$/),
      },
    });
  });

  test('users/get_space_usage counts what is stored', async () => {
    // Of its own: what other tests remove for ever is counted down in the background.
    const account = service.service.addAccount({
      email: 'space@example.org',
      givenName: 'S',
      surname: 'P',
      mayDeletePermanently: false,
      limitBytes: 5000,
    });
    const token = await service.service.grant({
      accountId: account.id,
      scopes: ['account_info.read', 'files.content.write'],
    });
    const usage = async () => (await rpc(service, 'users/get_space_usage', null, { token })).json;
    const allocation = { '.tag': 'individual', allocated: 5000 };
    expect(await usage()).toEqual({ used: 0, allocation });
    await put({ ...service, token }, '/space', 'x'.repeat(1000));
    expect(await usage()).toEqual({ used: 1000, allocation });
  });

  test('users/get_space_usage promises no more than the disk can hold', async () => {
    const { bavail, bsize } = await statfs(service.dataDirectory);
    const { json } = await call('users/get_space_usage', null);
    const { used, allocation } = json as { used: number; allocation: { allocated: number } };
    // Others write to the disk meanwhile; without the bound it would be 2 TiB.
    expect(allocation.allocated).toBeLessThan(used + bavail * bsize + 10 * 1024 ** 3);
    expect(allocation.allocated).toBeGreaterThanOrEqual(used);
  });

  test('check/user echoes', async () => {
    expect((await call('check/user', { query: 'ö' })).json).toEqual({ result: 'ö' });
    expect((await call('check/user', {})).json).toEqual({ result: '' });
  });
});
