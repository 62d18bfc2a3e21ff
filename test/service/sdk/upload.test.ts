import type { Dropbox, files } from 'dropbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { fileShape, TEXT_HASH } from '../../support/metadata-shapes.ts';
import { type SdkClients, sdkError, sdkRefusal, sdkRefused, startSdkService } from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import type { TestService } from '../../support/service.ts';

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;

beforeAll(async () => {
  ({ service, clients, sdk } = await startSdkService());
  await sdk.filesUpload({ path: '/Taken', contents: 'something else' });
  await sdk.filesCreateFolderV2({ path: '/Folder' });
});
afterAll(() => service.close());

const BLOCK = 4 * 1024 * 1024;
const SESSION = expect.stringMatching(/^pid_upload_session:[\w-]+$/);
const WRONG_HASH = '0'.repeat(64);

/** Paths that cannot be written, with the WriteError. */
const UNWRITABLE = [
  ['/Taken', 'conflict/file'],
  ['/Folder', 'conflict/folder'],
  ['/Taken/below', 'conflict/file_ancestor'],
  ['/a//b', 'malformed_path'],
  ['no slash', 'malformed_path'],
  ['/desktop.ini', 'disallowed_name'],
  ['ns:1/x', 'no_write_permission'],
] as const;

// The SDK sends every field but `contents`, also those that its types do not have yet.
const hashed = <Argument extends object>(argument: Argument, content_hash: string): Argument =>
  Object.assign(argument, { content_hash });

async function started(contents = '', argument: files.UploadSessionStartArg = {}): Promise<string> {
  const { result } = await sdk.filesUploadSessionStart({ ...argument, contents });
  expect(result).toEqual({ session_id: SESSION });
  return result.session_id;
}

const at = (session_id: string, offset: number) => ({ cursor: { session_id, offset } });
const begin = () => started('', { session_type: { '.tag': 'concurrent' } });

describe('files/upload', () => {
  test('filesUpload answers FileMetadata without a tag, with the client_modified given', async () => {
    const argument = hashed({ path: '/Up/File', contents: 'text' }, TEXT_HASH);
    const client_modified = '2020-02-29T12:00:00Z';
    const { result } = await sdk.filesUpload({ ...argument, client_modified, mute: true });
    expect(result).toEqual({ ...fileShape('/Up/File', 'File'), client_modified });
    const { result: renamed } = await sdk.filesUpload({
      path: '/up/file',
      contents: 'text',
      autorename: true,
      strict_conflict: true,
    });
    expect(renamed).toEqual(fileShape('/Up/file (1)', 'file (1)'));
    const mode = { '.tag': 'update', update: result.rev } as const;
    const { result: updated } = await sdk.filesUpload({ path: '/Up/File', contents: 'more', mode });
    expect(updated).toEqual({
      ...fileShape('/Up/File', 'File'),
      id: result.id,
      content_hash: contentHashOf(Buffer.from('more')),
    });
  });

  test.each(UNWRITABLE)(
    'filesUpload to %s answers path/%s with the reason beside a session id',
    async (path, reason) => {
      expect(await sdkRefusal(sdk.filesUpload({ path, contents: 'text' }))).toEqual({
        status: 409,
        summary: `path/${reason}`,
        error: { '.tag': 'path', reason: sdkError(reason), upload_session_id: SESSION },
      });
    },
  );

  test('filesUpload with a wrong hash answers content_hash_mismatch', async () => {
    const call = sdk.filesUpload(hashed({ path: '/Wrong', contents: 'text' }, WRONG_HASH));
    expect(await sdkRefusal(call)).toEqual(sdkRefused('content_hash_mismatch'));
  });
});

describe('property groups of an unknown template', () => {
  const property_groups = [{ template_id: 'ptid:none', fields: [{ name: 'a', value: 'b' }] }];
  const summary = 'properties_error/template_not_found';
  const fields = { template_not_found: 'ptid:none' };
  const isThere = async (path: string) =>
    expect((await sdk.filesGetMetadata({ path })).result).toMatchObject({ '.tag': 'file', size: 4 });

  test('uploads with property groups of an unknown template store the file and answer template_not_found', async () => {
    const uploaded = sdk.filesUpload({ path: '/Property/upload', property_groups, contents: 'text' });
    expect(await sdkRefusal(uploaded)).toEqual(sdkRefused(summary, fields));
    await isThere('/Property/upload');
    const finished = sdk.filesUploadSessionFinish({
      ...at(await started('text'), 4),
      commit: { path: '/Property/finish', property_groups },
      contents: '',
    });
    expect(await sdkRefusal(finished)).toEqual(sdkRefused(summary, fields));
    await isThere('/Property/finish');
    const { result } = await sdk.filesUploadSessionFinishBatchV2({
      entries: [
        {
          ...at(await started('text', { close: true }), 4),
          commit: { path: '/Property/batch', property_groups },
        },
      ],
    });
    expect(result).toEqual({ entries: [{ '.tag': 'failure', failure: sdkError(summary, fields) }] });
    await isThere('/Property/batch');
  });

  test('filesUpload with no property groups succeeds', async () => {
    const { result } = await sdk.filesUpload({ path: '/Property/0', property_groups: [], contents: 'text' });
    expect(result).toEqual(fileShape('/Property/0', '0'));
  });
});

describe('sequential upload session', () => {
  test('filesUploadSession start, both appends and finish store a file', async () => {
    const session_id = await started('t');
    const { result: appended } = await sdk.filesUploadSessionAppendV2({
      ...at(session_id, 1),
      contents: 'e',
    });
    expect(appended).toBeNull();
    const { result: old } = await sdk.filesUploadSessionAppend({ session_id, offset: 2, contents: 'x' });
    expect(old).toBeNull();
    const commit = { path: '/Session/File' };
    const { result } = await sdk.filesUploadSessionFinish({ ...at(session_id, 3), commit, contents: 't' });
    expect(result).toEqual(fileShape('/Session/File', 'File'));
  });

  test('filesUploadSessionStart answers its refusals', async () => {
    const start = (contents: string, argument: files.UploadSessionStartArg) =>
      sdkRefusal(sdk.filesUploadSessionStart({ ...argument, contents }));
    const session_type = { '.tag': 'concurrent' } as const;
    expect(await start('x', { session_type })).toEqual(sdkRefused('concurrent_session_data_not_allowed'));
    expect(await start('', { session_type, close: true })).toEqual(
      sdkRefused('concurrent_session_close_not_allowed'),
    );
    expect(await start('x', hashed({}, WRONG_HASH))).toEqual(sdkRefused('content_hash_mismatch'));
  });

  test('filesUploadSessionAppendV2 and filesUploadSessionAppend answer their refusals unnested', async () => {
    const append = (session: string, offset: number, more: object = {}) =>
      sdkRefusal(sdk.filesUploadSessionAppendV2({ ...at(session, offset), contents: 'x', ...more }));
    const open = await started('text');
    expect(await append('none', 0)).toEqual(sdkRefused('not_found'));
    expect(await append(open, 3)).toEqual(sdkRefused('incorrect_offset', { correct_offset: 4 }));
    expect(await append(open, 4, { content_hash: WRONG_HASH })).toEqual(sdkRefused('content_hash_mismatch'));
    expect(await append(await started('text', { close: true }), 4)).toEqual(sdkRefused('closed'));
    expect(await append(await begin(), 1)).toEqual(sdkRefused('concurrent_session_invalid_offset'));
    expect(await append(await begin(), 0)).toEqual(sdkRefused('concurrent_session_invalid_data_size'));
    const first = (session_id: string, offset: number) =>
      sdkRefusal(sdk.filesUploadSessionAppend({ session_id, offset, contents: 'x' }));
    expect(await first('none', 0)).toEqual(sdkRefused('not_found'));
    expect(await first(open, 3)).toEqual(sdkRefused('incorrect_offset', { correct_offset: 4 }));
    expect(await first(await started('text', { close: true }), 4)).toEqual(sdkRefused('closed'));
  });

  const finish = (session: string, offset: number, path = '/Finished', contents = '', more: object = {}) =>
    sdkRefusal(sdk.filesUploadSessionFinish({ ...at(session, offset), commit: { path }, contents, ...more }));

  test.each(UNWRITABLE)(
    'filesUploadSessionFinish at %s answers path/%s without the nesting of filesUpload',
    async (path, reason) => {
      expect(await finish(await started('text'), 4, path)).toEqual(sdkRefused(`path/${reason}`));
    },
  );

  test('filesUploadSessionFinish answers its refusals', async () => {
    const open = await started('text');
    expect(await finish('none', 0)).toEqual(sdkRefused('lookup_failed/not_found'));
    expect(await finish(open, 3)).toEqual(
      sdkRefused('lookup_failed/incorrect_offset', { correct_offset: 4 }),
    );
    expect(await finish(open, 4, '/Finished', 'x', { content_hash: WRONG_HASH })).toEqual(
      sdkRefused('content_hash_mismatch'),
    );
    const closed = await started('text', { close: true });
    expect(await finish(closed, 4, '/Finished', 'x')).toEqual(sdkRefused('lookup_failed/closed'));
  });

  test('filesUploadSessionFinish answers the refusals of concurrent sessions', async () => {
    expect(await finish(await begin(), 0)).toEqual(sdkRefused('concurrent_session_not_closed'));
    expect(await finish(await begin(), 0, '/x', 'x')).toEqual(
      sdkRefused('concurrent_session_data_not_allowed'),
    );
    const holed = await begin();
    await sdk.filesUploadSessionAppendV2({ ...at(holed, BLOCK), close: true, contents: 'x' });
    expect(await finish(holed, BLOCK + 1)).toEqual(sdkRefused('concurrent_session_missing_data'));
  });
});

describe('upload sessions in batches', () => {
  /** Makes closed sessions with these bytes. Returns the batch entries that commit them to these paths. */
  async function entries(parts: readonly Buffer[], paths: readonly string[]) {
    const { result } = await sdk.filesUploadSessionStartBatch({ num_sessions: parts.length });
    expect(result).toEqual({ session_ids: parts.map(() => SESSION) });
    return await Promise.all(
      result.session_ids.map(async (session, index) => {
        const contents = parts[index] ?? '';
        await sdk.filesUploadSessionAppendV2({ ...at(session, 0), close: true, contents });
        return { ...at(session, contents.length), commit: { path: paths[index] ?? '' } };
      }),
    );
  }

  const PARTS = [Buffer.from('text'), pseudoRandomBytes(2000, 2), Buffer.from('text')];

  /**
   * Returns the argument of a batch that commits the parts to `/NAME/file`, `/NAME/random` and a taken name,
   * and an open session, with its expected answer.
   */
  async function batch(name: string) {
    const given = await entries(PARTS, [`/${name}/file`, `/${name}/random`, '/Taken']);
    const open = { ...at(await started('text'), 4), commit: { path: `/${name}/open` } };
    const failed = (summary: string) => ({ '.tag': 'failure', failure: sdkError(summary) });
    const expected = [
      { '.tag': 'success', ...fileShape(`/${name}/file`, 'file') },
      {
        '.tag': 'success',
        ...fileShape(`/${name}/random`, 'random'),
        size: 2000,
        content_hash: contentHashOf(PARTS[1] ?? Buffer.alloc(0)),
      },
      failed('path/conflict/file'),
      failed('lookup_failed/not_closed'),
    ];
    return { argument: { entries: [...given, open] }, expected };
  }

  test('filesUploadSessionFinishBatchV2 answers at once, each success with its metadata beside the tag', async () => {
    const { argument, expected } = await batch('Second');
    const { result } = await sdk.filesUploadSessionFinishBatchV2(argument);
    expect(result).toEqual({ entries: expected });
  });

  test('filesUploadSessionFinishBatch runs as a job with the same entries', async () => {
    const { argument, expected } = await batch('First');
    const { result: launched } = await sdk.filesUploadSessionFinishBatch(argument);
    const async_job_id = expect.stringMatching(/^dbjid:[\w-]+$/);
    expect(launched).toEqual({ '.tag': 'async_job_id', async_job_id });
    if (launched['.tag'] !== 'async_job_id') throw new Error(launched['.tag']);
    expect(await ended(launched.async_job_id)).toEqual({ '.tag': 'complete', entries: expected });
    const none = sdk.filesUploadSessionFinishBatchCheck({ async_job_id: 'dbjid:none' });
    expect(await sdkRefusal(none)).toEqual(sdkRefused('invalid_async_job_id'));
  });

  async function ended(async_job_id: string): Promise<files.UploadSessionFinishBatchJobStatus> {
    const { result } = await sdk.filesUploadSessionFinishBatchCheck({ async_job_id });
    if (result['.tag'] !== 'in_progress') return result;
    expect(result).toEqual({ '.tag': 'in_progress' });
    return await ended(async_job_id);
  }
});

test('the tests of upload called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS.upload;
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});
