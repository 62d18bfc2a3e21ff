import type { Dropbox, files } from 'dropbox';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.ts';
import { fileShape, folderShape } from '../../support/metadata-shapes.ts';
import {
  type SdkClients,
  sdkBytesOf,
  sdkError,
  sdkRefusal,
  sdkRefused,
  sdkResultOf,
  startSdkService,
} from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import type { TestService } from '../../support/service.ts';

// Functions that the real service keeps for old clients, beside the versions that replaced them.

const clock = new ManualClock();
let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;

beforeAll(async () => {
  ({ service, clients, sdk } = await startSdkService({ clock }));
  await put('/Taken');
});
afterAll(() => service.close());

async function put(path: string, contents = 'text'): Promise<files.FileMetadata> {
  return (await sdk.filesUpload({ path, contents, mode: { '.tag': 'overwrite' } })).result;
}

const nameOf = (path: string) => path.split('/').at(-1) ?? '';
const file = (path: string) => ({ '.tag': 'file', ...fileShape(path, nameOf(path)) });
const folder = (path: string) => folderShape(path, nameOf(path));

describe('files/create_folder, files/delete, files/move and files/copy', () => {
  test('filesCreateFolder, filesMove, filesCopy and filesDelete answer the metadata itself', async () => {
    expect((await sdk.filesCreateFolder({ path: '/V1/Folder' })).result).toEqual(folder('/V1/Folder'));
    await put('/V1/file');
    const move = { from_path: '/V1/file', to_path: '/V1/moved' };
    expect((await sdk.filesMove(move)).result).toEqual(file('/V1/moved'));
    const copy = { from_path: '/V1/moved', to_path: '/V1/copied' };
    expect((await sdk.filesCopy(copy)).result).toEqual(file('/V1/copied'));
    expect((await sdk.filesDelete({ path: '/v1/copied' })).result).toEqual(file('/V1/copied'));
    expect((await sdk.filesDelete({ path: '/V1' })).result).toEqual({ '.tag': 'folder', ...folder('/V1') });
  });

  test('filesCreateFolder, filesDelete, filesMove and filesCopy answer the refusals of their V2 versions', async () => {
    expect(await sdkRefusal(sdk.filesCreateFolder({ path: '/Taken' }))).toEqual(
      sdkRefused('path/conflict/file'),
    );
    expect(await sdkRefusal(sdk.filesDelete({ path: '/None' }))).toEqual(sdkRefused('path_lookup/not_found'));
    for (const relocate of [sdk.filesMove, sdk.filesCopy]) {
      const refusal = (from_path: string, to_path: string) =>
        sdkRefusal(relocate.call(sdk, { from_path, to_path }));
      expect(await refusal('/None', '/x')).toEqual(sdkRefused('from_lookup/not_found'));
      await put('/From');
      expect(await refusal('/From', '/Taken')).toEqual(sdkRefused('to/conflict/file'));
    }
  });
});

describe.each(['Move', 'Copy'] as const)('files/%s_batch', (kind) => {
  const entry = (from_path: string, to_path: string) => ({ from_path, to_path });

  async function ended(entries: files.RelocationPath[]): Promise<files.RelocationBatchJobStatus> {
    const { result: launched } = await sdk[`files${kind}Batch`]({ entries });
    const async_job_id = expect.stringMatching(/^dbjid:[\w-]+$/);
    expect(launched).toEqual({ '.tag': 'async_job_id', async_job_id });
    for (;;) {
      const job = { async_job_id: 'async_job_id' in launched ? launched.async_job_id : '' };
      const { result } = await sdk[`files${kind}BatchCheck`](job);
      if (result['.tag'] !== 'in_progress') return result;
    }
  }

  test(`files${kind}Batch answers the metadata of each entry`, async () => {
    await put(`/${kind} in/file`);
    await put(`/${kind} in/folder/x`);
    const to = `/${kind} out`;
    const entries = [
      entry(`/${kind} in/file`, `${to}/file`),
      entry(`/${kind} in/folder`, `${to}/folder`),
      entry(`${to}/file`, `${to}/again`),
    ];
    expect(await ended(entries)).toEqual({
      '.tag': 'complete',
      entries: [
        { metadata: file(`${to}/file`) },
        { metadata: { '.tag': 'folder', ...folder(`${to}/folder`) } },
        { metadata: file(`${to}/again`) },
      ],
    });
  });

  test(`files${kind}Batch with one refused entry changes nothing`, async () => {
    await put(`/${kind} kept/file`);
    const target = `/${kind} not made/file`;
    const refusals: [files.RelocationPath, string][] = [
      [entry('/None', '/x'), 'from_lookup/not_found'],
      [entry('/Taken', '/a//b'), 'to/malformed_path'],
      [entry(target, '/Taken'), 'to/conflict/file'],
    ];
    if (kind === 'Move')
      refusals.push([entry(`/${kind} kept/file`, `/${kind} twice`), 'from_lookup/not_found']);
    for (const [refused, summary] of refusals) {
      const entries = [entry(`/${kind} kept/file`, target), refused];
      expect(await ended(entries)).toEqual({ '.tag': 'failed', failed: sdkError(summary) });
      expect((await sdk.filesGetMetadata({ path: `/${kind} kept/file` })).status).toBe(200);
      const made = sdk.filesGetMetadata({ path: `/${kind} not made` });
      expect(await sdkRefusal(made)).toEqual(sdkRefused('path/not_found'));
    }
  });

  test(`files${kind}BatchCheck refuses a job of files${kind}BatchV2`, async () => {
    const { result } = await sdk[`files${kind}BatchV2`]({ entries: [entry('/None', '/x')] });
    const job = { async_job_id: 'async_job_id' in result ? result.async_job_id : '' };
    expect(await sdkRefusal(sdk[`files${kind}BatchCheck`](job))).toEqual(sdkRefused('invalid_async_job_id'));
  });
});

describe('files/search', () => {
  const matched = (path: string) => ({
    match_type: { '.tag': 'filename' },
    metadata: file(path),
  });

  test('filesSearch answers pages by start, and an empty page after the last match', async () => {
    for (const name of ['needle 1', 'needle 2', 'needle 3', 'hay']) await put(`/Search/${name}`);
    const search = (start: number) =>
      sdk.filesSearch({ path: '/Search', query: 'needle', start, max_results: 2 });
    expect((await search(0)).result).toEqual({
      matches: [matched('/Search/needle 1'), matched('/Search/needle 2')],
      more: true,
      start: 2,
    });
    expect((await search(2)).result).toEqual({
      matches: [matched('/Search/needle 3')],
      more: false,
      start: 3,
    });
    expect((await search(9)).result).toEqual({ matches: [], more: false, start: 3 });
  });

  test('filesSearch finds deleted files with the mode deleted_filename alone', async () => {
    await put('/Search/lost');
    await sdk.filesDelete({ path: '/Search/lost' });
    const search = (mode: files.SearchMode['.tag']) =>
      sdk.filesSearch({ path: '', query: 'lost', mode: { '.tag': mode } });
    expect((await search('filename')).result.matches).toEqual([]);
    const { matches } = (await search('deleted_filename')).result;
    expect(matches.map(({ metadata }) => [metadata['.tag'], metadata.name])).toEqual([['deleted', 'lost']]);
  });

  test('filesSearch refuses a malformed path and an empty query', async () => {
    expect(await sdkRefusal(sdk.filesSearch({ path: '/a//b', query: 'x' }))).toEqual(
      sdkRefused('path/malformed_path'),
    );
    expect(await sdkRefusal(sdk.filesSearch({ path: '', query: ' ' }))).toEqual(
      sdkRefused('invalid_argument', { invalid_argument: 'query must not be empty' }),
    );
  });
});

describe('files/get_thumbnail', () => {
  test('filesGetThumbnail answers an image, with FileMetadata itself as the result', async () => {
    const contents = await sharp({
      create: { width: 200, height: 100, channels: 3, background: 'red' },
    })
      .png()
      .toBuffer();
    const { result: picture } = await sdk.filesUpload({ path: '/Red.png', contents });
    const { result } = await sdk.filesGetThumbnail({ path: '/Red.png' });
    expect(sdkResultOf(result)).toEqual(picture);
    const { format, width, height } = await sharp(sdkBytesOf(result)).metadata();
    expect([format, width, height]).toEqual(['jpeg', 64, 32]);
  });

  test.each([
    ['/None.png', 'path/not_found'],
    ['/Taken', 'unsupported_extension'],
  ])('filesGetThumbnail of %s is refused: %s', async (path, summary) => {
    expect(await sdkRefusal(sdk.filesGetThumbnail({ path }))).toEqual(sdkRefused(summary));
  });
});

test('filesAlphaUpload and filesAlphaGetMetadata answer like the versions without alpha', async () => {
  const { result } = await sdk.filesAlphaUpload({ path: '/Alpha', contents: 'text' });
  expect(result).toEqual(fileShape('/Alpha', 'Alpha'));
  expect((await sdk.filesAlphaGetMetadata({ path: '/Alpha' })).result).toEqual(file('/Alpha'));
  const include_property_templates = ['ptid:none'];
  expect(await sdkRefusal(sdk.filesAlphaGetMetadata({ path: '/Alpha', include_property_templates }))).toEqual(
    sdkRefused('properties_error/property_group_not_found'),
  );
  expect(await sdkRefusal(sdk.filesAlphaUpload({ path: '/Taken', contents: 'more' }))).toMatchObject({
    summary: 'path/conflict/file',
  });
});

describe('sharing/create_shared_link and sharing/get_shared_links', () => {
  const link = (path: string, url: unknown = expect.stringContaining('/scl/')) => ({
    url,
    visibility: { '.tag': 'public' },
    path,
  });

  test('sharingCreateSharedLink answers a link that exists already', async () => {
    await put('/Linked/File');
    const { result } = await sdk.sharingCreateSharedLink({ path: '/Linked/File' });
    expect(result).toEqual(link('/Linked/File'));
    const { result: again } = await sdk.sharingCreateSharedLink({ path: '/linked/file', short_url: true });
    expect(again).toEqual(result);
    const { result: second } = await sdk.sharingListSharedLinks({ path: '/Linked/File' });
    expect(second.links.map(({ url }) => url)).toEqual([result.url]);
  });

  test('sharingGetSharedLinks of a file answers its links and those of the folders above', async () => {
    await put('/Two/File');
    const { result: own } = await sdk.sharingCreateSharedLink({ path: '/Two/File' });
    const { result: above } = await sdk.sharingCreateSharedLink({ path: '/Two' });
    const links = [link('/Two/File', own.url), link('/Two', above.url)].map((one) => ({
      '.tag': 'path',
      ...one,
    }));
    expect((await sdk.sharingGetSharedLinks({ path: '/Two/File' })).result).toEqual({ links });
    expect((await sdk.sharingGetSharedLinks({})).result.links).toEqual(expect.arrayContaining(links));
    expect((await sdk.sharingGetSharedLinks({ path: '/None' })).result).toEqual({ links: [] });
  });

  test('sharingGetSharedLinks leaves out an expired link, and sharingCreateSharedLink makes another one', async () => {
    await put('/Expired');
    const urls = async () =>
      (await sdk.sharingGetSharedLinks({ path: '/Expired' })).result.links.map(({ url }) => url);
    const settings = { expires: new Date(clock.now() + 60_000).toISOString().replace('.000Z', 'Z') };
    const { result: old } = await sdk.sharingCreateSharedLinkWithSettings({ path: '/Expired', settings });
    await clock.advance(59_999);
    expect(await urls()).toEqual([old.url]);
    await clock.advance(1);
    expect(await urls()).toEqual([]);
    const { result: next } = await sdk.sharingCreateSharedLink({ path: '/Expired' });
    expect(next).toEqual(link('/Expired'));
    expect(next.url).not.toBe(old.url);
    expect(await urls()).toEqual([next.url]);
  });

  test('sharingCreateSharedLink answers the expiry of an existing link, and sharingGetSharedLinks leaves out a deleted file', async () => {
    await put('/Ended');
    const settings = { expires: '2999-01-01T00:00:00Z' };
    const { result: first } = await sdk.sharingCreateSharedLinkWithSettings({ path: '/Ended', settings });
    expect((await sdk.sharingCreateSharedLink({ path: '/Ended' })).result).toEqual({
      ...link('/Ended', first.url),
      expires: settings.expires,
    });
    const urls = async () => (await sdk.sharingGetSharedLinks({})).result.links.map(({ url }) => url);
    expect(await urls()).toContain(first.url);
    await sdk.filesDelete({ path: '/Ended' });
    expect(await urls()).not.toContain(first.url);
  });

  test('sharingCreateSharedLink and sharingGetSharedLinks answer their refusals', async () => {
    expect(await sdkRefusal(sdk.sharingCreateSharedLink({ path: '/None' }))).toEqual(
      sdkRefused('path/not_found'),
    );
    expect(await sdkRefusal(sdk.sharingGetSharedLinks({ path: '/a//b' }))).toEqual(sdkRefused('path'));
  });
});

test('the tests of first versions called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS['first-version'];
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});
