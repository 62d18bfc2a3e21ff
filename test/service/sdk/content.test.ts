import type { Dropbox, files } from 'dropbox';
import sharp from 'sharp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileShape, folderShape, TEXT_HASH } from '../../support/metadata-shapes.ts';
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

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;
let app: Dropbox;
/** Metadata of `/Pictures/Red.png`. */
let picture: files.FileMetadata;

beforeAll(async () => {
  ({ service, clients, sdk, app } = await startSdkService());
  await sdk.filesUpload({ path: '/Content/File', contents: 'text' });
  await sdk.filesUpload({ path: '/Content/Broken.png', contents: 'no image' });
  const red = { width: 100, height: 50, channels: 3, background: '#f00' } as const;
  const contents = await sharp({ create: red }).png().toBuffer();
  picture = (await sdk.filesUpload({ path: '/Pictures/Red.png', contents })).result;
});
afterAll(() => service.close());

describe('files/get_preview', () => {
  test('filesGetPreview answers a table as HTML, with FileMetadata without a tag', async () => {
    await sdk.filesUpload({ path: '/Content/Table.csv', contents: 'one,two\n' });
    const { result } = await sdk.filesGetPreview({ path: '/content/table.csv' });
    const { content_hash: _, ...shape } = fileShape('/Content/Table.csv', 'Table.csv');
    expect(sdkResultOf(result)).toMatchObject({ ...shape, size: 8 });
    expect(sdkBytesOf(result).toString()).toContain('<td>one</td><td>two</td>');
    expect((await sdk.filesGetPreview({ path: '/None', rev: result.rev })).result).toEqual(result);
  });

  test('filesGetPreview answers its refusals', async () => {
    await sdk.filesUpload({ path: '/Content/Broken.csv', contents: Buffer.from([0xff, 0, 1]) });
    for (const [path, refusal] of [
      ['/None', 'path/not_found'],
      ['/a//b', 'path/malformed_path'],
      ['/Content', 'path/not_file'],
      ['/Content/File', 'unsupported_extension'],
      ['/Content/Broken.csv', 'unsupported_content'],
    ] as const)
      expect(await sdkRefusal(sdk.filesGetPreview({ path }))).toEqual(sdkRefused(refusal));
  });
});

describe('files/download and files/download_zip', () => {
  test('filesDownload answers the bytes and FileMetadata without a tag', async () => {
    const { result } = await sdk.filesDownload({ path: '/content/file' });
    expect(sdkResultOf(result)).toEqual(fileShape('/Content/File', 'File'));
    expect(sdkBytesOf(result).toString()).toBe('text');
    const { result: byRev } = await sdk.filesDownload({ path: '/None', rev: result.rev });
    expect(byRev).toEqual(result);
  });

  test('filesDownloadZip answers an archive and FolderMetadata without a tag', async () => {
    const { result } = await sdk.filesDownloadZip({ path: '/Content' });
    expect(sdkResultOf(result)).toEqual({ metadata: folderShape('/Content', 'Content') });
    expect(sdkBytesOf(result).subarray(0, 4).toString('latin1')).toBe('PK\x03\x04');
  });

  test('filesDownload and filesDownloadZip answer their refusals', async () => {
    for (const [path, download, zip] of [
      ['/None', 'not_found', 'not_found'],
      ['/a//b', 'malformed_path', 'malformed_path'],
      ['/Content', 'not_file', undefined],
      ['/Content/File', undefined, 'not_folder'],
    ] as const) {
      if (download)
        expect(await sdkRefusal(sdk.filesDownload({ path }))).toEqual(sdkRefused(`path/${download}`));
      if (zip) expect(await sdkRefusal(sdk.filesDownloadZip({ path }))).toEqual(sdkRefused(`path/${zip}`));
    }
  });
});

describe('temporary links', () => {
  test('filesGetTemporaryLink answers a working link and FileMetadata without a tag', async () => {
    const { result } = await sdk.filesGetTemporaryLink({ path: '/Content/File' });
    expect(result).toEqual({ metadata: fileShape('/Content/File', 'File'), link: expect.any(String) });
    expect(await (await fetch(result.link)).text()).toBe('text');
  });

  test.each([
    ['/None', 'path/not_found'],
    ['/Content', 'path/not_file'],
    ['/a//b', 'path/malformed_path'],
  ])('filesGetTemporaryLink of %s answers %s', async (path, summary) => {
    expect(await sdkRefusal(sdk.filesGetTemporaryLink({ path }))).toEqual(sdkRefused(summary));
  });

  test('filesGetTemporaryUploadLink answers a link that takes an upload and answers its hash', async () => {
    const commit_info = { path: '/Content/Sent' };
    const { result } = await sdk.filesGetTemporaryUploadLink({ commit_info, duration: 600 });
    expect(result).toEqual({ link: expect.any(String) });
    const headers = { 'content-type': 'application/octet-stream' };
    const sent = await fetch(result.link, { method: 'POST', headers, body: 'text' });
    expect(await sent.json()).toEqual({ 'content-hash': TEXT_HASH });
    const { result: stat } = await sdk.filesGetMetadata(commit_info);
    expect(stat).toEqual({ '.tag': 'file', ...fileShape('/Content/Sent', 'Sent') });
  });
});

describe('thumbnails', () => {
  const thumbnail = (path: string) => sdk.filesGetThumbnailV2({ resource: { '.tag': 'path', path } });

  test('filesGetThumbnailV2 answers thumbnails of a path and of a link', async () => {
    const { result } = await thumbnail('/Pictures/Red.png');
    expect(sdkResultOf(result)).toEqual({ file_metadata: picture });
    const { format, width, height } = await sharp(sdkBytesOf(result)).metadata();
    expect([format, width, height]).toEqual(['jpeg', 64, 32]);
    const { result: link } = await sdk.sharingCreateSharedLinkWithSettings({ path: '/Pictures/Red.png' });
    const resource = { '.tag': 'link', url: link.url } as const;
    const { result: ofLink } = await app.filesGetThumbnailV2({ resource });
    const { id, rev } = picture;
    expect(sdkResultOf(ofLink)).toEqual({ link_metadata: { url: link.url, id, rev } });
  });

  test('filesGetThumbnailBatch answers thumbnails with untagged metadata, and failures', async () => {
    const paths = ['/Pictures/Red.png', '/Content/File', '/Content/Broken.png', '/None.png'];
    const { result } = await sdk.filesGetThumbnailBatch({ entries: paths.map((path) => ({ path })) });
    const failed = (summary: string) => ({ '.tag': 'failure', failure: sdkError(summary) });
    expect(result).toEqual({
      entries: [
        { '.tag': 'success', metadata: picture, thumbnail: expect.stringMatching(/^[\w+/]+=*$/) },
        failed('unsupported_extension'),
        failed('unsupported_image'),
        failed('path/not_found'),
      ],
    });
    const entries = Array.from({ length: 26 }, () => ({ path: '/Pictures/Red.png' }));
    expect(await sdkRefusal(sdk.filesGetThumbnailBatch({ entries }))).toEqual(sdkRefused('too_many_files'));
  });

  test.each([
    ['/None.png', 'path/not_found'],
    ['/Pictures', 'path/not_file'],
    ['/a//b', 'path/malformed_path'],
    ['/Content/File', 'unsupported_extension'],
    ['/Content/Broken.png', 'unsupported_image'],
  ])('filesGetThumbnailV2 of %s answers %s', async (path, summary) => {
    expect(await sdkRefusal(thumbnail(path))).toEqual(sdkRefused(summary));
  });

  test('filesGetThumbnailV2 of a link with a wrong password or path is refused', async () => {
    const { result: link } = await sdk.sharingCreateSharedLinkWithSettings({
      path: '/Pictures',
      settings: { require_password: true, link_password: 'right' },
    });
    const ask = (resource: Omit<files.PathOrLinkLink, '.tag'>) =>
      sdkRefusal(app.filesGetThumbnailV2({ resource: { '.tag': 'link', ...resource } }));
    expect(await ask({ url: link.url, path: '/Red.png', password: 'wrong' })).toEqual(
      sdkRefused('access_denied'),
    );
    expect(await ask({ url: link.url, path: '/None.png', password: 'right' })).toEqual(
      sdkRefused('not_found'),
    );
  });
});

test('the tests of content called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS.content;
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});
