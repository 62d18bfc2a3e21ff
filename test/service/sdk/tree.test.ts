import type { Dropbox, files } from 'dropbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileShape, folderShape } from '../../support/metadata-shapes.ts';
import { type SdkClients, sdkError, sdkRefusal, sdkRefused, startSdkService } from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import type { TestService } from '../../support/service.ts';

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;

beforeAll(async () => {
  ({ service, clients, sdk } = await startSdkService());
  await put('/Taken');
});
afterAll(() => service.close());

async function put(path: string, contents = 'text'): Promise<files.FileMetadata> {
  return (await sdk.filesUpload({ path, contents, mode: { '.tag': 'overwrite' } })).result;
}

const file = (path: string) => ({ '.tag': 'file', ...fileShape(path, path.split('/').at(-1) ?? '') });
const folder = (path: string) => folderShape(path, path.split('/').at(-1) ?? '');
const failed = (summary: string) => ({ '.tag': 'failure', failure: sdkError(summary) });

/** Paths that cannot be created, with the WriteError. */
const UNWRITABLE = [
  ['/Taken', 'conflict/file'],
  ['/Folder', 'conflict/folder'],
  ['/Taken/below', 'conflict/file_ancestor'],
  ['/a//b', 'malformed_path'],
  ['/desktop.ini', 'disallowed_name'],
  ['ns:1/x', 'no_write_permission'],
] as const;

describe('files/create_folder_v2', () => {
  test('filesCreateFolderV2 answers FolderMetadata without a tag', async () => {
    const { result } = await sdk.filesCreateFolderV2({ path: '/Made/Folder' });
    expect(result).toEqual({ metadata: folder('/Made/Folder') });
    const { result: other } = await sdk.filesCreateFolderV2({ path: '/made/folder', autorename: true });
    expect(other).toEqual({ metadata: folder('/Made/folder (1)') });
  });

  test.each(UNWRITABLE)('filesCreateFolderV2 of %s answers path/%s', async (path, reason) => {
    if (path === '/Folder') await sdk.filesCreateFolderV2({ path });
    expect(await sdkRefusal(sdk.filesCreateFolderV2({ path }))).toEqual(sdkRefused(`path/${reason}`));
  });
});

describe('files/delete_v2 and files/permanently_delete', () => {
  test('filesDeleteV2 answers the deleted metadata with its tag, and filesPermanentlyDelete null', async () => {
    const { rev } = await put('/Deleted/File');
    const { result } = await sdk.filesDeleteV2({ path: '/deleted/file', parent_rev: rev });
    expect(result).toEqual({ metadata: file('/Deleted/File') });
    const { result: whole } = await sdk.filesDeleteV2({ path: '/Deleted' });
    expect(whole).toEqual({ metadata: { '.tag': 'folder', ...folder('/Deleted') } });
    await put('/Deleted/File');
    const { result: nothing } = await sdk.filesPermanentlyDelete({ path: '/Deleted/File' });
    expect(nothing).toBeNull();
  });

  test('filesDeleteV2 and filesPermanentlyDelete answer the same refusals', async () => {
    const [{ rev }] = [await put('/Kept'), await put('/Kept', 'more')];
    const refusals: [files.DeleteArg, string][] = [
      [{ path: '/None' }, 'path_lookup/not_found'],
      [{ path: '/Kept/' }, 'path_lookup/malformed_path'],
      [{ path: '/Kept', parent_rev: rev }, 'path_write/conflict/file'],
    ];
    for (const [argument, summary] of refusals) {
      expect(await sdkRefusal(sdk.filesDeleteV2(argument))).toEqual(sdkRefused(summary));
      expect(await sdkRefusal(sdk.filesPermanentlyDelete(argument))).toEqual(sdkRefused(summary));
    }
  });
});

describe.each(['Move', 'Copy'] as const)('files/%s', (kind) => {
  const relocate = (from_path: string, to_path: string, autorename = false) =>
    sdk[`files${kind}V2`]({ from_path, to_path, autorename });

  test(`files${kind}V2 answers Metadata with a tag`, async () => {
    await put(`/${kind}/file`);
    const { result } = await relocate(`/${kind}/file`, `/${kind}/to/other`);
    expect(result).toEqual({ metadata: file(`/${kind}/to/other`) });
    const { result: tree } = await relocate(`/${kind}/to`, `/${kind}/tree`);
    expect(tree).toEqual({ metadata: { '.tag': 'folder', ...folder(`/${kind}/tree`) } });
    await put(`/${kind}/file`);
    const { result: renamed } = await relocate(`/${kind}/file`, '/Taken', true);
    expect(renamed).toEqual({ metadata: file(kind === 'Move' ? '/Taken (1)' : '/Taken (2)') });
  });

  test.each([
    ['/None', '/x', 'from_lookup/not_found'],
    ['/Taken/', '/x', 'from_lookup/malformed_path'],
    ['/From', '/Taken', 'to/conflict/file'],
    ['/From', '/Taken/below', 'to/conflict/file_ancestor'],
    ['/From', '/x/', 'to/malformed_path'],
    ['/From', '/desktop.ini', 'to/disallowed_name'],
    ['/From', 'ns:1/x', 'to/no_write_permission'],
    [
      '/From folder',
      '/From folder/in',
      kind === 'Move' ? 'cant_move_folder_into_itself' : 'duplicated_or_nested_paths',
    ],
  ])(`files${kind}V2 of %s to %s answers %s`, async (from, to, summary) => {
    await put('/From');
    await put('/From folder/x');
    expect(await sdkRefusal(relocate(from, to))).toEqual(sdkRefused(summary));
  });

  test(`files${kind}BatchV2 runs as a job whose successes hold Metadata with a tag`, async () => {
    await put('/In batch/file');
    await put('/In batch/folder/x');
    const entry = (from: string, to: string) => ({ from_path: from, to_path: to });
    const to = `/${kind} batch`;
    const entries = [
      entry('/In batch/file', `${to}/file`),
      entry('/In batch/folder', `${to}/folder`),
      entry('/None', `${to}/none`),
      entry(`${to}/file`, '/Taken'),
    ];
    const launched = await sdk[`files${kind}BatchV2`]({ entries });
    const check = (job: { async_job_id: string }) => sdk[`files${kind}BatchCheckV2`](job);
    expect(await ended(launched, check)).toEqual({
      '.tag': 'complete',
      entries: [
        { '.tag': 'success', success: file(`${to}/file`) },
        { '.tag': 'success', success: { '.tag': 'folder', ...folder(`${to}/folder`) } },
        failed('relocation_error/from_lookup/not_found'),
        failed('relocation_error/to/conflict/file'),
      ],
    });
    expect(await sdkRefusal(check(NO_JOB))).toEqual(sdkRefused('invalid_async_job_id'));
  });
});

describe('files/create_folder_batch and files/delete_batch', () => {
  test('filesCreateFolderBatch answers at once or by a job, with untagged metadata', async () => {
    const entries = (name: string) => [
      { '.tag': 'success', metadata: folder(`/Batch/${name}`) },
      failed('path/conflict/file'),
    ];
    const { result } = await sdk.filesCreateFolderBatch({ paths: ['/Batch/now', '/Taken'] });
    expect(result).toEqual({ '.tag': 'complete', entries: entries('now') });
    const later = { paths: ['/Batch/later', '/Taken'], force_async: true };
    const check = (job: { async_job_id: string }) => sdk.filesCreateFolderBatchCheck(job);
    expect(await ended(await sdk.filesCreateFolderBatch(later), check)).toEqual({
      '.tag': 'complete',
      entries: entries('later'),
    });
    expect(await sdkRefusal(check(NO_JOB))).toEqual(sdkRefused('invalid_async_job_id'));
  });

  test('filesDeleteBatch runs as a job whose successes hold the deleted metadata with its tag', async () => {
    const { rev } = await put('/Gone/file');
    await put('/Gone/newer', 'old');
    await put('/Gone/newer');
    const entries = [
      { path: '/Gone/file', parent_rev: rev },
      { path: '/Gone/newer', parent_rev: rev },
      { path: '/Gone/file' },
      { path: '/Gone' },
    ];
    const check = (job: { async_job_id: string }) => sdk.filesDeleteBatchCheck(job);
    expect(await ended(await sdk.filesDeleteBatch({ entries }), check)).toEqual({
      '.tag': 'complete',
      entries: [
        { '.tag': 'success', metadata: file('/Gone/file') },
        failed('path_write/conflict/file'),
        failed('path_lookup/not_found'),
        { '.tag': 'success', metadata: { '.tag': 'folder', ...folder('/Gone') } },
      ],
    });
    expect(await sdkRefusal(check(NO_JOB))).toEqual(sdkRefused('invalid_async_job_id'));
  });
});

test('the tests of the tree called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS.tree;
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});

const NO_JOB = { async_job_id: 'dbjid:none' };

/** Polls a job until it is done. Each answer before that must be the tag alone. */
async function ended<State extends { '.tag': string }>(
  { result: launched }: { result: { '.tag': string; async_job_id?: string } },
  check: (job: { async_job_id: string }) => Promise<{ result: State }>,
): Promise<State> {
  const async_job_id = expect.stringMatching(/^dbjid:[\w-]+$/);
  expect(launched).toEqual({ '.tag': 'async_job_id', async_job_id });
  for (;;) {
    const { result } = await check({ async_job_id: launched.async_job_id ?? '' });
    if (result['.tag'] !== 'in_progress') return result;
    expect(result).toEqual({ '.tag': 'in_progress' });
  }
}
