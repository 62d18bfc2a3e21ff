import type { Dropbox, files } from 'dropbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileShape, folderShape, TIME } from '../../support/metadata-shapes.ts';
import { type SdkClients, sdkClients, sdkRefusal, sdkRefused, startSdkService } from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import { startTestService, type TestService } from '../../support/service.ts';

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;

beforeAll(async () => {
  ({ service, clients, sdk } = await startSdkService());
});
afterAll(() => service.close());

const CURSOR = expect.stringMatching(/^[\w-]{20,}$/);

async function put(path: string, contents = 'text'): Promise<files.FileMetadata> {
  return (await sdk.filesUpload({ path, contents, mode: { '.tag': 'overwrite' } })).result;
}

describe('files/get_metadata', () => {
  test('filesGetMetadata answers a file, a folder and a deletion, each with its tag', async () => {
    await put('/Get/File');
    const { result: file } = await sdk.filesGetMetadata({ path: '/get/FILE' });
    expect(file).toEqual({ '.tag': 'file', ...fileShape('/Get/File', 'File') });
    const { result: folder } = await sdk.filesGetMetadata({ path: '/Get' });
    expect(folder).toEqual({ '.tag': 'folder', ...folderShape('/Get', 'Get') });
    await sdk.filesDeleteV2({ path: '/Get/File' });
    const { result: deleted } = await sdk.filesGetMetadata({ path: '/Get/File', include_deleted: true });
    expect(deleted).toEqual({
      '.tag': 'deleted',
      name: 'File',
      path_lower: '/get/file',
      path_display: '/Get/File',
    });
  });

  test.each([
    ['/Get/None', 'path/not_found'],
    ['/Get/', 'path/malformed_path'],
  ])('filesGetMetadata of %s answers %s', async (path, summary) => {
    expect(await sdkRefusal(sdk.filesGetMetadata({ path }))).toEqual(sdkRefused(summary));
  });
});

describe('files/list_folder and its cursors', () => {
  test('filesListFolder and its continuations answer tagged entries in pages, and the changes afterwards', async () => {
    await put('/List/a');
    await sdk.filesCreateFolderV2({ path: '/List/Folder' });
    const { result: first } = await sdk.filesListFolder({ path: '/List', limit: 1 });
    expect(first).toEqual({ entries: [expect.any(Object)], cursor: CURSOR, has_more: true });
    const { result: second } = await sdk.filesListFolderContinue({ cursor: first.cursor });
    const entries = [...first.entries, ...second.entries];
    expect(second).toEqual({ entries: [expect.any(Object)], cursor: CURSOR, has_more: false });
    expect(sorted(entries)).toEqual([
      { '.tag': 'file', ...fileShape('/List/a', 'a') },
      { '.tag': 'folder', ...folderShape('/List/Folder', 'Folder') },
    ]);

    const { result: latest } = await sdk.filesListFolderGetLatestCursor({ path: '/List' });
    expect(latest).toEqual({ cursor: CURSOR });
    await sdk.filesDeleteV2({ path: '/List/a' });
    const { result: polled } = await sdk.filesListFolderLongpoll({ cursor: latest.cursor });
    expect(polled).toEqual({ changes: true });
    const { result: changes } = await sdk.filesListFolderContinue({ cursor: latest.cursor });
    expect(changes).toEqual({
      entries: [{ '.tag': 'deleted', name: 'a', path_lower: '/list/a', path_display: '/List/a' }],
      cursor: CURSOR,
      has_more: false,
    });
  });

  test.each([
    ['/None', 'path/not_found'],
    ['/In/File', 'path/not_folder'],
    ['/In//', 'path/malformed_path'],
  ])('filesListFolder and filesListFolderGetLatestCursor of %s answer %s', async (path, summary) => {
    await put('/In/File');
    expect(await sdkRefusal(sdk.filesListFolder({ path }))).toEqual(sdkRefused(summary));
    expect(await sdkRefusal(sdk.filesListFolderGetLatestCursor({ path }))).toEqual(sdkRefused(summary));
  });

  test('filesListFolder refuses an unknown property template, and filesGetMetadata ignores it', async () => {
    const ids = ['ptid:none'];
    const include_property_groups = { '.tag': 'filter_some', filter_some: ids } as const;
    const argument = { path: '', include_property_groups };
    const refused = sdkRefused('template_error/template_not_found', { template_not_found: 'ptid:none' });
    expect(await sdkRefusal(sdk.filesListFolder(argument))).toEqual(refused);
    expect(await sdkRefusal(sdk.filesListFolderGetLatestCursor(argument))).toEqual(refused);
    await put('/Plain');
    const { result } = await sdk.filesGetMetadata({ path: '/Plain', include_property_groups });
    expect(result).toEqual({ '.tag': 'file', ...fileShape('/Plain', 'Plain') });
  });

  test('filesListFolder answers is_restorable and has_explicit_shared_members where asked for, also after a cursor', async () => {
    await put('/Asked/deleted');
    await sdk.filesDeleteV2({ path: '/Asked/deleted' });
    await sdk.filesCreateFolderV2({ path: '/Asked/folder' });
    await sdk.filesDeleteV2({ path: '/Asked/folder' });
    const kept = await put('/Asked/kept');
    const has_explicit_shared_members = false;
    const include_has_explicit_shared_members = true;
    const argument = { path: '/Asked', include_has_explicit_shared_members, include_restorable_info: true };
    const deletion = (name: string, is_restorable: boolean) => {
      const path_display = `/Asked/${name}`;
      const path_lower = path_display.toLowerCase();
      return { '.tag': 'deleted', name, path_lower, path_display, is_restorable };
    };
    const { result: first } = await sdk.filesListFolder({ ...argument, include_deleted: true, limit: 1 });
    const { result: more } = await sdk.filesListFolderContinue({ cursor: first.cursor });
    const { result: rest } = await sdk.filesListFolderContinue({ cursor: more.cursor });
    expect([...first.entries, ...more.entries, ...rest.entries]).toEqual([
      deletion('deleted', true),
      deletion('folder', false),
      { '.tag': 'file', ...kept, has_explicit_shared_members },
    ]);
    const { result: latest } = await sdk.filesListFolderGetLatestCursor(argument);
    await sdk.filesDeleteV2({ path: '/Asked/kept' });
    expect((await sdk.filesListFolderLongpoll(latest)).result).toEqual({ changes: true });
    const { result: changes } = await sdk.filesListFolderContinue(latest);
    expect(changes.entries).toEqual([deletion('kept', true)]);
    await put('/Asked/kept');
    const { result } = await sdk.filesGetMetadata({
      path: '/Asked/kept',
      include_has_explicit_shared_members,
    });
    expect(result).toEqual({
      '.tag': 'file',
      ...fileShape('/Asked/kept', 'kept'),
      has_explicit_shared_members,
    });
  });

  test('filesListFolderContinue answers not_found after its folder is deleted, and reset to a cursor of another service', async () => {
    await put('/Going/x');
    const { result } = await sdk.filesListFolder({ path: '/Going' });
    await sdk.filesDeleteV2({ path: '/Going' });
    const call = sdk.filesListFolderContinue({ cursor: result.cursor });
    expect(await sdkRefusal(call)).toEqual(sdkRefused('path/not_found'));
    const other = await startTestService();
    try {
      const { result: foreign } = await sdkClients(other).user.filesListFolder({ path: '' });
      const { cursor } = foreign;
      for (const call of [
        () => sdk.filesListFolderContinue({ cursor }),
        () => sdk.filesListFolderLongpoll({ cursor }),
      ])
        expect(await sdkRefusal(call())).toEqual(sdkRefused('reset'));
    } finally {
      await other.close();
    }
  });
});

describe('files/list_revisions and files/restore', () => {
  test('filesListRevisions answers revisions without tags, newest first, and filesRestore restores one', async () => {
    const path = '/Revised/File';
    const first = await put(path);
    const second = await put(path, 'more');
    const { result: two } = await sdk.filesListRevisions({ path });
    expect(two).toEqual({ is_deleted: false, entries: [second, first], has_more: false });
    const restorable = { path, include_restorable_info: true };
    const { result: withInfo } = await sdk.filesListRevisions(restorable);
    expect(withInfo.entries).toEqual([second, first].map((file) => ({ ...file, is_restorable: true })));
    const { result: page } = await sdk.filesListRevisions({ path, limit: 1 });
    expect(page).toEqual({ is_deleted: false, entries: [second], has_more: true });
    // `before_rev` is missing in the SDK's types, and is sent all the same.
    const before = { path, before_rev: second.rev };
    const { result: rest } = await sdk.filesListRevisions(before);
    expect(rest).toEqual({ is_deleted: false, entries: [first], has_more: false });
    const mode = { '.tag': 'id' } as const;
    const { result: byId } = await sdk.filesListRevisions({ path: first.id, mode });
    expect(byId.entries).toEqual([second, first]);
    await sdk.filesDeleteV2({ path });
    const { result: gone } = await sdk.filesListRevisions({ path });
    expect(gone).toEqual({
      is_deleted: true,
      server_deleted: TIME,
      entries: [second, first],
      has_more: false,
    });
    const { result: restored } = await sdk.filesRestore({ path, rev: first.rev });
    expect(restored).toEqual({ ...fileShape(path, 'File'), client_modified: first.client_modified });
    expect(restored.rev).not.toBe(first.rev);
  });

  test('filesListRevisions answers its refusals', async () => {
    const { id } = await put('/Kept/File');
    const list = (argument: files.ListRevisionsArg & { before_rev?: string }) =>
      sdkRefusal(sdk.filesListRevisions(argument));
    expect(await list({ path: '/None' })).toEqual(sdkRefused('path/not_found'));
    expect(await list({ path: '/Kept' })).toEqual(sdkRefused('path/not_file'));
    expect(await list({ path: '/Kept/' })).toEqual(sdkRefused('path/malformed_path'));
    const before_rev = '0123456789';
    expect(await list({ path: '/Kept/File', before_rev })).toEqual(sdkRefused('invalid_before_rev'));
    expect(await list({ path: id, mode: { '.tag': 'id' }, before_rev })).toEqual(
      sdkRefused('before_rev_not_supported'),
    );
  });

  test('filesRestore answers its refusals', async () => {
    const { rev } = await put('/Restored/File');
    await put('/Restored/Folder/x');
    const restore = (path: string, revision = rev) => sdkRefusal(sdk.filesRestore({ path, rev: revision }));
    expect(await restore('/Restored/File', '0123456789')).toEqual(sdkRefused('invalid_revision'));
    expect(await restore('/Restored/')).toEqual(sdkRefused('path_lookup/malformed_path'));
    expect(await restore('/Restored/Folder')).toEqual(sdkRefused('path_write/conflict/folder'));
  });
});

describe('files/search_v2', () => {
  test('filesSearchV2 answers matches with highlights, and filesSearchContinueV2 the next page', async () => {
    await put('/Search/first file.txt');
    await put('/Search/second file.txt');
    const options = { path: '/Search', max_results: 1, file_categories: [{ '.tag': 'document' } as const] };
    const match_field_options = { include_highlights: true };
    const { result } = await sdk.filesSearchV2({ query: 'first', options, match_field_options });
    const found = { '.tag': 'file', ...fileShape('/Search/first file.txt', 'first file.txt') };
    expect(result).toEqual({
      matches: [
        {
          metadata: { '.tag': 'metadata', metadata: found },
          match_type: { '.tag': 'filename' },
          highlight_spans: [
            { highlight_str: 'first', is_highlighted: true },
            { highlight_str: ' file.txt', is_highlighted: false },
          ],
        },
      ],
      has_more: false,
    });
    const { result: page } = await sdk.filesSearchV2({ query: 'file', options });
    expect(page).toEqual({ matches: [expect.any(Object)], has_more: true, cursor: CURSOR });
    const { result: next } = await sdk.filesSearchContinueV2({ cursor: page.cursor ?? '' });
    expect(next).toEqual({ matches: [expect.any(Object)], has_more: false });
    const matches = [...page.matches, ...next.matches];
    const second = { '.tag': 'file', ...fileShape('/Search/second file.txt', 'second file.txt') };
    expect(new Set(matches)).toEqual(
      new Set(
        [found, second].map((metadata) => ({
          metadata: { '.tag': 'metadata', metadata },
          match_type: { '.tag': 'filename' },
        })),
      ),
    );
  });

  test('filesSearchV2 answers its refusals', async () => {
    const reason = { invalid_argument: 'query must not be empty' };
    expect(await sdkRefusal(sdk.filesSearchV2({ query: ' ' }))).toEqual(
      sdkRefused('invalid_argument', reason),
    );
    expect(await sdkRefusal(sdk.filesSearchV2({ query: 'x', options: { path: '/a//b' } }))).toEqual(
      sdkRefused('path/malformed_path'),
    );
  });
});

test('the tests of metadata called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS.metadata;
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});

function sorted(entries: readonly files.ListFolderResult['entries'][number][]): object[] {
  return Array.from(entries).sort((one, other) => (one['.tag'] < other['.tag'] ? -1 : 1));
}
