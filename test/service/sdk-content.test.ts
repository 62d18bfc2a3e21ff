import { Dropbox } from 'dropbox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { contentHashOf } from '../../src/util/content-hash.ts';
import { sdkBytesOf, sdkFetch } from '../support/sdk.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let sdk: Dropbox;
/** With the app's key and secret, and no user. */
let app: Dropbox;

beforeAll(async () => {
  service = await startTestService();
  const fetch = sdkFetch(service);
  sdk = new Dropbox({ accessToken: service.token, fetch });
  app = new Dropbox({ clientId: service.appKey, clientSecret: service.appSecret, fetch });
  await sdk.filesUpload({ path: '/SDK/sub/file.txt', contents: 'text' });
});
afterAll(() => service.close());

test('temporary links', async () => {
  const { result: given } = await sdk.filesGetTemporaryLink({ path: '/SDK/sub/file.txt' });
  expect(given.metadata.name).toBe('file.txt');
  expect(await (await fetch(given.link)).text()).toBe('text');
  const commit_info = { path: '/SDK/sent' };
  const { result: taken } = await sdk.filesGetTemporaryUploadLink({ commit_info, duration: 600 });
  const headers = { 'content-type': 'application/octet-stream' };
  const sent = await fetch(taken.link, { method: 'POST', headers, body: 'sent' });
  expect(await sent.json()).toEqual({ 'content-hash': contentHashOf(Buffer.from('sent')) });
});

test('a folder as an archive', async () => {
  const { result } = await sdk.filesDownloadZip({ path: '/SDK/sub' });
  expect(result.metadata.name).toBe('sub');
  expect(sdkBytesOf(result).subarray(0, 4).toString('latin1')).toBe('PK\x03\x04');
});

test('search, and its next page', async () => {
  const options = { path: '/SDK', max_results: 1, file_categories: [{ '.tag': 'document' } as const] };
  await sdk.filesUpload({ path: '/SDK/other file.txt', contents: 'text' });
  const { result } = await sdk.filesSearchV2({
    query: 'file',
    options,
    match_field_options: { include_highlights: true },
  });
  const { result: stat } = await sdk.filesGetMetadata({ path: '/SDK/sub/file.txt' });
  expect(result.has_more).toBe(true);
  expect(result.matches).toEqual([
    {
      metadata: { '.tag': 'metadata', metadata: stat },
      match_type: { '.tag': 'filename' },
      highlight_spans: [
        { highlight_str: 'file', is_highlighted: true },
        { highlight_str: '.txt', is_highlighted: false },
      ],
    },
  ]);
  const { result: next } = await sdk.filesSearchContinueV2({ cursor: result.cursor ?? '' });
  expect(next).toMatchObject({ matches: [{ metadata: { metadata: { name: 'other file.txt' } } }] });
});

test('links: changed, read by a user, and listed by an app without one', async () => {
  const { result: link } = await sdk.sharingCreateSharedLinkWithSettings({ path: '/SDK/sub' });
  const { result: modified } = await sdk.sharingModifySharedLinkSettings({
    url: link.url,
    settings: { require_password: true, link_password: 'secret' },
  });
  expect(modified.link_permissions.resolved_visibility).toEqual({ '.tag': 'password' });
  const shared = { url: link.url, link_password: 'secret' };
  const { result: stat } = await app.sharingGetSharedLinkMetadata(shared);
  expect(stat).toMatchObject({ '.tag': 'folder', name: 'sub' });
  const shared_link = { url: link.url, password: 'secret' };
  const { result: listed } = await app.filesListFolder({ path: '', shared_link });
  expect(listed.entries.map(({ name }) => name)).toEqual(['file.txt']);
  const { result: file } = await sdk.sharingGetSharedLinkFile({ ...shared, path: '/file.txt' });
  expect(sdkBytesOf(file).toString()).toBe('text');
});

test('check/app', async () => {
  expect((await app.checkApp({ query: 'here?' })).result).toEqual({ result: 'here?' });
});
