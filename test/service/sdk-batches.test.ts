import { Dropbox, type files } from 'dropbox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { contentHashOf } from '../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { sdkFetch } from '../support/sdk.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let sdk: Dropbox;

beforeAll(async () => {
  service = await startTestService();
  sdk = new Dropbox({ accessToken: service.token, fetch: sdkFetch(service) });
});
afterAll(() => service.close());

type Launch = { '.tag': string; async_job_id?: string };

/** Asks for a launched job until it is done. */
async function done<State extends { '.tag': string }>(
  { result }: { result: Launch },
  check: (argument: { async_job_id: string }) => Promise<{ result: State }>,
): Promise<State> {
  expect(result['.tag']).toBe('async_job_id');
  for (;;) {
    const { result: state } = await check({ async_job_id: result.async_job_id ?? '' });
    if (state['.tag'] !== 'in_progress') return state;
  }
}

test('makes, moves, copies and deletes in batches', async () => {
  const { result: made } = await sdk.filesCreateFolderBatch({ paths: ['/SDK/one', '/SDK/two'] });
  expect(made).toMatchObject({
    '.tag': 'complete',
    entries: [{ '.tag': 'success', metadata: { name: 'one' } }, { metadata: { name: 'two' } }],
  });
  const forced = await sdk.filesCreateFolderBatch({ paths: ['/SDK/three'], force_async: true });
  const three = await done(forced, (job) => sdk.filesCreateFolderBatchCheck(job));
  expect(three).toMatchObject({
    '.tag': 'complete',
    entries: [{ metadata: { path_display: '/SDK/three' } }],
  });

  const moves = { entries: [{ from_path: '/SDK/one', to_path: '/SDK/moved' }] };
  const moved = await done(await sdk.filesMoveBatchV2(moves), (job) => sdk.filesMoveBatchCheckV2(job));
  const { result: stat } = await sdk.filesGetMetadata({ path: '/SDK/moved' });
  expect(moved).toEqual({ '.tag': 'complete', entries: [{ '.tag': 'success', success: stat }] });

  const copies = { entries: [{ from_path: '/SDK/moved', to_path: '/SDK/copied' }] };
  const copied = await done(await sdk.filesCopyBatchV2(copies), (job) => sdk.filesCopyBatchCheckV2(job));
  expect(copied).toMatchObject({ entries: [{ '.tag': 'success', success: { '.tag': 'folder' } }] });

  const deletes = { entries: [{ path: '/SDK/moved' }, { path: '/SDK/one' }] };
  const deleted = await done(await sdk.filesDeleteBatch(deletes), (job) => sdk.filesDeleteBatchCheck(job));
  expect(deleted).toEqual({
    '.tag': 'complete',
    entries: [
      { '.tag': 'success', metadata: stat },
      { '.tag': 'failure', failure: { '.tag': 'path_lookup', path_lookup: { '.tag': 'not_found' } } },
    ],
  });
});

test('uploads in batches', async () => {
  const parts = [pseudoRandomBytes(1000, 1), pseudoRandomBytes(2000, 2)];
  const { result: started } = await sdk.filesUploadSessionStartBatch({ num_sessions: 2 });
  const cursors = started.session_ids.map((session_id) => ({ session_id, offset: 0 }));
  await Promise.all(
    cursors.map((cursor, index) =>
      sdk.filesUploadSessionAppendV2({ cursor, close: true, contents: parts[index] ?? '' }),
    ),
  );
  const entries = cursors.map((cursor, index) => ({
    cursor: { ...cursor, offset: parts[index]?.length ?? 0 },
    commit: { path: `/SDK/part ${index}` },
  }));
  const finished = await done(await sdk.filesUploadSessionFinishBatch({ entries }), (job) =>
    sdk.filesUploadSessionFinishBatchCheck(job),
  );
  expect(finished).toMatchObject({
    '.tag': 'complete',
    entries: parts.map((part) => ({ '.tag': 'success', content_hash: contentHashOf(part) })),
  });
});

test('the first version of append', async () => {
  const { result: session } = await sdk.filesUploadSessionStart({ contents: 'te' });
  const cursor: files.UploadSessionCursor = { session_id: session.session_id, offset: 2 };
  await sdk.filesUploadSessionAppend({ ...cursor, contents: 'xt' });
  const commit = { path: '/SDK/appended' };
  const { result } = await sdk.filesUploadSessionFinish({
    cursor: { ...cursor, offset: 4 },
    commit,
    contents: '',
  });
  expect(result.size).toBe(4);
});
