import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileShape, folderShape, TEXT_HASH } from '../support/metadata-shapes.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, refusal, refusalIn, rpc, send, upload } from '../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const call = (name: string, argument: unknown) => rpc(service, name, argument);

describe('files/upload', () => {
  const send = (argument: object, body = 'text') => upload(service, 'files/upload', argument, { body });

  test('files/upload answers FileMetadata without a tag', async () => {
    const answered = await send({ path: '/Ab/C.txt' });
    expect(answered.status).toBe(200);
    expect(answered.headers.get('content-type')).toBe('application/json');
    expect(answered.json).toEqual(fileShape('/Ab/C.txt', 'C.txt'));
  });

  test('files/upload keeps client_modified', async () => {
    const answered = await send({ path: '/dated', client_modified: '2001-02-03T04:05:06Z' });
    expect(answered.json).toMatchObject({ client_modified: '2001-02-03T04:05:06Z' });
  });

  test.each(['', 'no-slash', 'rev:a1c10ce0dd78', 'ns:x/y', '/a//b', '/..', '/a/../b', '/end/', '/\0'])(
    'files/upload refuses the path %j as malformed_path, with a session id',
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
  ])('files/upload refuses %s with mode %s: %s', async (path, mode, summary, reason) => {
    await put(service, '/up/file', 'other');
    expect(refusalIn(await send({ path, mode }))).toEqual(
      refusal(409, summary, { '.tag': 'path', reason, upload_session_id: expect.any(String) }),
    );
  });

  test('files/upload with mode update replaces the file at that revision and answers a conflict at any other', async () => {
    const { rev, id } = await put(service, '/updated', 'one');
    const mode = { '.tag': 'update', update: rev };
    const second = await send({ path: '/updated', mode }, 'two');
    expect(second.json).toMatchObject({ id, size: 3, rev: expect.not.stringMatching(String(rev)) });
    expect(refusalIn(await send({ path: '/updated', mode }, 'three'))).toMatchObject({
      summary: 'path/conflict/file',
    });
    expect((await download(service, '/updated')).text).toBe('two');
  });

  test('files/upload with a wrong content_hash answers content_hash_mismatch and stores nothing', async () => {
    const answered = await send({ path: '/hashed', content_hash: '0'.repeat(64) });
    expect(refusalIn(answered)).toEqual(
      refusal(409, 'content_hash_mismatch', { '.tag': 'content_hash_mismatch' }),
    );
    expect((await download(service, '/hashed')).status).toBe(409);
    expect((await send({ path: '/hashed', content_hash: TEXT_HASH })).status).toBe(200);
  });

  test('files/upload beyond the account’s limit answers path/insufficient_space', async () => {
    const account = await service.service.addAccount({
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
  test('files/get_metadata tags a file, a folder and a deletion', async () => {
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

  test('files/get_metadata finds a file by id, by revision and by namespace path', async () => {
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
  ])('files/get_metadata of %j answers path/%s', async (argument, tag) => {
    expect(refusalIn(await call('files/get_metadata', argument))).toEqual(
      refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } }),
    );
  });

  test('files/get_metadata finds names with line breaks, line separators and emoji', async () => {
    for (const name of ['a\nb', 'a\r\nb', 'a\u2028b', '\u{1f600} ä']) {
      await put(service, `/Names/${name}`, 'text');
      const answered = await call('files/get_metadata', { path: `/Names/${name}` });
      expect(answered.json).toMatchObject({ name });
    }
  });
});

describe('files/download', () => {
  test('files/download of the root answers 400 and names where the path was given', async () => {
    const refused = 'path: The root folder is unsupported.';
    const inHeader = await download(service, '/');
    expect([inHeader.status, inHeader.text]).toEqual([
      400,
      `Error in call to API function "files/download": HTTP header "Dropbox-API-Arg": ${refused}`,
    ]);
    const inAddress = await send(
      `${service.url}/2/files/download?${new URLSearchParams({ arg: '{"path":"/"}' })}`,
      {
        headers: { authorization: `Bearer ${service.token}` },
      },
    );
    expect([inAddress.status, inAddress.text]).toEqual([
      400,
      `Error in call to API function "files/download": URL parameter "arg": ${refused}`,
    ]);
  });

  test('files/download answers the bytes, with the metadata in a header', async () => {
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

  test('files/download by GET takes its argument and token from the query', async () => {
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
  ])('files/download with Range: %s answers 206 and that part', async (range, text, contentRange) => {
    const stored = await put(service, '/Down/ranged', 'text');
    const answered = await download(service, '/Down/ranged', { headers: { range } });
    expect(answered.status).toBe(206);
    expect(answered.text).toBe(text);
    expect(answered.headers.get('content-range')).toBe(contentRange);
    expect(JSON.parse(answered.headers.get('dropbox-api-result') ?? '')).toEqual(stored);
  });

  test('files/download ignores a Range header with ranges far apart', async () => {
    await put(service, '/Down/long', 'x'.repeat(1000));
    const answered = await download(service, '/Down/long', { headers: { range: 'bytes=0-0,900-901' } });
    expect([answered.status, answered.text.length]).toEqual([200, 1000]);
  });

  test('files/download answers a suffix range of an empty file with 200', async () => {
    await put(service, '/Down/nothing-in-it', '');
    const answered = await download(service, '/Down/nothing-in-it', { headers: { range: 'bytes=-1' } });
    expect([answered.status, answered.headers.get('content-length')]).toEqual([200, '0']);
  });

  test.each(['bytes=3-1', 'bytes=-', 'lines=1-2', 'bytes=a-b'])(
    'files/download ignores the malformed header Range: %s',
    async (range) => {
      await put(service, '/Down/ranged', 'text');
      const answered = await download(service, '/Down/ranged', { headers: { range } });
      expect([answered.status, answered.text]).toEqual([200, 'text']);
    },
  );

  test.each([
    ['/Down/short', 'text', 'bytes=4-', 4],
    ['/Down/short', 'text', 'bytes=-0', 4],
    ['/Down/empty', '', 'bytes=0-', 0],
  ])(
    'files/download of %s (%j) answers the range %s outside it with 416 and JSON',
    async (path, body, range, sizeBytes) => {
      await put(service, path, body);
      const answered = await download(service, path, { headers: { range } });
      expect(refusalIn(answered)).toEqual(refusal(416, 'range/not_satisfiable', { '.tag': 'other' }));
      expect(answered.headers.get('content-range')).toBe(`bytes */${sizeBytes}`);
    },
  );

  test.each([
    (rev: string) => `W/"${rev}"`,
    (rev: string) => `"${rev}"`,
    (rev: string) => rev,
    (rev: string) => `"other", W/"${rev}"`,
  ])('files/download answers 304 to If-None-Match with the revision in form %#', async (headerOf) => {
    const { rev } = await put(service, '/Down/known', 'text');
    const headers = { 'if-none-match': headerOf(String(rev)) };
    const answered = await download(service, '/Down/known', { headers });
    expect([answered.status, answered.text]).toEqual([304, '']);
    expect(answered.headers.get('etag')).toBe(`W/"${rev}"`);
  });

  test('files/download answers an old revision by rev: path and by the rev argument', async () => {
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
  ])('files/download of %s answers path/%s', async (path, tag) => {
    await put(service, '/Down/x', 'text');
    expect(refusalIn(await download(service, path))).toEqual(
      refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } }),
    );
  });
});
