import { Dropbox, DropboxAuth, type files } from 'dropbox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { fileShape } from '../../support/metadata-shapes.ts';
import { sdkBytesOf, sdkFetch, sdkRefusal, sdkRefused } from '../../support/sdk.ts';
import { startTestService, type TestService } from '../../support/service.ts';

let service: TestService;
let sdk: Dropbox;

beforeAll(async () => {
  service = await startTestService();
  sdk = new Dropbox({ accessToken: service.token, fetch: sdkFetch(service) });
});
afterAll(() => service.close());

const BLOCK = 4 * 1024 * 1024;

test('the SDK uploads, downloads, deletes, restores and permanently deletes a file', async () => {
  const path = '/SDK/Grüße \u{1f600}.bin';
  const contents = pseudoRandomBytes(100_000, 1);
  const { result: uploaded } = await sdk.filesUpload({ path, contents, mode: { '.tag': 'overwrite' } });
  expect(uploaded).toEqual({
    ...fileShape(path, 'Grüße \u{1f600}.bin'),
    size: 100_000,
    content_hash: contentHashOf(contents),
  });
  const { result: stat } = await sdk.filesGetMetadata({ path });
  expect(stat).toEqual({ '.tag': 'file', ...uploaded });
  const { result: downloaded } = await sdk.filesDownload({ path });
  expect(downloaded.name).toBe('Grüße \u{1f600}.bin');
  expect(sdkBytesOf(downloaded).equals(contents)).toBe(true);
  await sdk.filesDeleteV2({ path });
  expect(await sdkRefusal(sdk.filesDownload({ path }))).toEqual(sdkRefused('path/not_found'));
  const { result: revisions } = await sdk.filesListRevisions({ path });
  expect(revisions.is_deleted).toBe(true);
  const { result: restored } = await sdk.filesRestore({ path, rev: uploaded.rev });
  expect(restored.content_hash).toBe(uploaded.content_hash);
  await sdk.filesPermanentlyDelete({ path });
});

test('the SDK uploads an empty file', async () => {
  const { result } = await sdk.filesUpload({ path: '/SDK/empty', contents: '' });
  const content_hash = contentHashOf(Buffer.alloc(0));
  expect(result).toEqual({ ...fileShape('/SDK/empty', 'empty'), size: 0, content_hash });
});

test('the SDK lists a folder in pages and then its changes', async () => {
  await sdk.filesCreateFolderV2({ path: '/SDK list' });
  for (const name of ['a', 'b', 'c', 'd', 'e'])
    await sdk.filesUpload({ path: `/SDK list/${name}`, contents: name });
  const first = await sdk.filesListFolder({ path: '/SDK list', limit: 2 });
  const listed = await toTheEnd(first.result);
  expect(listed.entries.sort()).toEqual(['file a', 'file b', 'file c', 'file d', 'file e']);
  await sdk.filesMoveV2({ from_path: '/SDK list/a', to_path: '/SDK list/z' });
  await sdk.filesCopyV2({ from_path: '/SDK list/b', to_path: '/SDK list/y' });
  const { result: polled } = await sdk.filesListFolderLongpoll({ cursor: listed.cursor });
  expect(polled.changes).toBe(true);
  const since = await sdk.filesListFolderContinue({ cursor: listed.cursor });
  expect((await toTheEnd(since.result)).entries.sort()).toEqual(['deleted a', 'file y', 'file z']);
});

/** Returns the entries of this page and of all pages after it. */
async function toTheEnd(page: files.ListFolderResult): Promise<{ entries: string[]; cursor: string }> {
  const entries = page.entries.map((entry) => `${entry['.tag']} ${entry.name}`);
  if (!page.has_more) return { entries, cursor: page.cursor };
  const { result: next } = await sdk.filesListFolderContinue({ cursor: page.cursor });
  const rest = await toTheEnd(next);
  return { entries: [...entries, ...rest.entries], cursor: rest.cursor };
}

test('the SDK uploads by a sequential and by a concurrent session', async () => {
  const contents = pseudoRandomBytes(2 * BLOCK + 7, 2);
  const part = (start: number, end?: number) => contents.subarray(start, end);
  const { result: started } = await sdk.filesUploadSessionStart({ contents: part(0, 1000) });
  const session_id = started.session_id;
  await sdk.filesUploadSessionAppendV2({ cursor: { session_id, offset: 1000 }, contents: part(1000, BLOCK) });
  const { result: finished } = await sdk.filesUploadSessionFinish({
    cursor: { session_id, offset: BLOCK },
    commit: { path: '/SDK/sequential' },
    contents: part(BLOCK),
  });
  expect(finished.content_hash).toBe(contentHashOf(contents));

  const concurrent = await sdk.filesUploadSessionStart({
    session_type: { '.tag': 'concurrent' },
    contents: '',
  });
  const append = (offset: number, end: number, close: boolean) =>
    sdk.filesUploadSessionAppendV2({
      cursor: { session_id: concurrent.result.session_id, offset },
      close,
      contents: part(offset, end),
    });
  await Promise.all([
    append(2 * BLOCK, contents.length, true),
    append(0, BLOCK, false),
    append(BLOCK, 2 * BLOCK, false),
  ]);
  const { result: batch } = await sdk.filesUploadSessionFinishBatchV2({
    entries: [
      {
        cursor: { session_id: concurrent.result.session_id, offset: contents.length },
        commit: { path: '/SDK/concurrent' },
      },
    ],
  });
  const file = fileShape('/SDK/concurrent', 'concurrent');
  const bytes = { size: contents.length, content_hash: contentHashOf(contents) };
  expect(batch).toEqual({ entries: [{ '.tag': 'success', ...file, ...bytes }] });
  const { result: downloaded } = await sdk.filesDownload({ path: '/SDK/concurrent' });
  expect(sdkBytesOf(downloaded).equals(contents)).toBe(true);
});

test('the SDK creates, lists and revokes a shared link', async () => {
  await sdk.filesUpload({ path: '/SDK/shared', contents: 'shared' });
  const { result: link } = await sdk.sharingCreateSharedLinkWithSettings({
    path: '/SDK/shared',
    settings: { requested_visibility: { '.tag': 'public' } },
  });
  expect(await (await fetch(link.url.replace('dl=0', 'dl=1'))).text()).toBe('shared');
  const { result: listed } = await sdk.sharingListSharedLinks({ path: '/SDK/shared', direct_only: true });
  expect(listed.links).toEqual([link]);
  const { result: stat } = await sdk.sharingGetSharedLinkMetadata({ url: link.url });
  expect(stat).toEqual(link);
  await sdk.sharingRevokeSharedLink({ url: link.url });
  expect((await fetch(link.url)).status).toBe(404);
});

test('the SDK with a refresh token gets tokens of its own, and account, space and check work', async () => {
  const auth = new DropboxAuth({
    clientId: service.appKey,
    clientSecret: service.appSecret,
    refreshToken: service.refreshToken,
    fetch: sdkFetch(service),
  });
  const refreshing = new Dropbox({ auth, fetch: sdkFetch(service) });
  const { result: account } = await refreshing.usersGetCurrentAccount();
  expect(account.email).toBe('drive@davgate.invalid');
  expect(auth.getAccessToken()).not.toBe(service.token);
  const { result: space } = await refreshing.usersGetSpaceUsage();
  expect(space.allocation['.tag']).toBe('individual');
  expect((await refreshing.checkUser({ query: 'here?' })).result).toEqual({ result: 'here?' });
  await refreshing.authTokenRevoke();
  expect(await sdkRefusal(refreshing.usersGetCurrentAccount())).toEqual({
    status: 401,
    summary: 'invalid_access_token',
    error: { '.tag': 'invalid_access_token' },
  });
});
