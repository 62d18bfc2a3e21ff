import type { Dropbox, files } from 'dropbox';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES } from '../../../src/service/accounts/scopes.ts';
import { fileShape, folderShape, TIME } from '../../support/metadata-shapes.ts';
import { type SdkClients, sdkRefusal, sdkRefused, startSdkService } from '../../support/sdk.ts';
import { SDK_ROWS } from '../../support/sdk-rows.ts';
import type { TestService } from '../../support/service.ts';

let service: TestService;
let clients: SdkClients;
let sdk: Dropbox;
/** SDK client of another account. */
let other: Dropbox;

beforeAll(async () => {
  ({ service, clients, sdk } = await startSdkService());
  const account = await service.service.addAccount({
    email: 'other@example.org',
    givenName: 'O',
    surname: 'T',
    mayDeletePermanently: false,
  });
  other = clients.withToken(await service.service.grant({ accountId: account.id, scopes: SCOPES }));
});
afterAll(() => service.close());

async function put(path: string, contents = 'text'): Promise<files.FileMetadata> {
  return (await sdk.filesUpload({ path, contents, mode: { '.tag': 'overwrite' } })).result;
}

const referenceTo = async (path: string) => (await sdk.filesCopyReferenceGet({ path })).result.copy_reference;

describe('files/copy_reference', () => {
  test('filesCopyReferenceGet answers the same reference at each call, with the metadata', async () => {
    await put('/Copied');
    const { result } = await sdk.filesCopyReferenceGet({ path: '/copied' });
    expect(result).toEqual({
      metadata: { '.tag': 'file', ...fileShape('/Copied', 'Copied') },
      copy_reference: expect.stringMatching(/^[\w-]{22}$/),
      expires: TIME,
    });
    expect(await referenceTo('/Copied')).toBe(result.copy_reference);
  });

  test('filesCopyReferenceSave copies the current state of a moved file or folder within its account', async () => {
    await put('/Moving/file', 'old');
    const [copy_reference, of_folder] = [await referenceTo('/Moving/file'), await referenceTo('/Moving')];
    await put('/Moving/file');
    await sdk.filesMoveV2({ from_path: '/Moving', to_path: '/Moved' });
    const { result } = await sdk.filesCopyReferenceSave({ copy_reference, path: '/Saved/file' });
    expect(result).toEqual({ metadata: { '.tag': 'file', ...fileShape('/Saved/file', 'file') } });
    const saved = await sdk.filesCopyReferenceSave({ copy_reference: of_folder, path: '/Saved/folder' });
    expect(saved.result).toEqual({
      metadata: { '.tag': 'folder', ...folderShape('/Saved/folder', 'folder') },
    });
    expect((await sdk.filesGetMetadata({ path: '/Saved/folder/file' })).result).toMatchObject({ size: 4 });
  });

  test('filesCopyReferenceSave copies a file with its time into another account, and refuses a folder', async () => {
    const client_modified = '2001-02-03T04:05:06Z';
    await sdk.filesUpload({ path: '/Given/file', contents: 'text', client_modified });
    const copy_reference = await referenceTo('/Given/file');
    const { result } = await other.filesCopyReferenceSave({ copy_reference, path: '/Taken' });
    expect(result.metadata).toEqual({ '.tag': 'file', ...fileShape('/Taken', 'Taken'), client_modified });
    expect((await other.filesGetMetadata({ path: '/Taken' })).result).toMatchObject({ size: 4 });
    const again = other.filesCopyReferenceSave({ copy_reference, path: '/Taken' });
    expect(await sdkRefusal(again)).toEqual(sdkRefused('path/conflict/file'));
    const folder = await referenceTo('/Given');
    expect(await sdkRefusal(other.filesCopyReferenceSave({ copy_reference: folder, path: '/x' }))).toEqual(
      sdkRefused('no_permission'),
    );
  });

  test('filesCopyReferenceGet and filesCopyReferenceSave answer their refusals', async () => {
    const refusal = (copy_reference: string, path: string) =>
      sdkRefusal(sdk.filesCopyReferenceSave({ copy_reference, path }));
    expect(await refusal('AAAAAAAAAAAAAAAAAAAAAA', '/x')).toEqual(sdkRefused('invalid_copy_reference'));
    await put('/Short-lived');
    await put('/Here');
    const copy_reference = await referenceTo('/Short-lived');
    expect(await refusal(copy_reference, '/Here')).toEqual(sdkRefused('path/conflict/file'));
    expect(await refusal(copy_reference, '/a//b')).toEqual(sdkRefused('path/malformed_path'));
    await sdk.filesDeleteV2({ path: '/Short-lived' });
    expect(await refusal(copy_reference, '/x')).toEqual(sdkRefused('not_found'));
    for (const [path, reason] of [
      ['/None', 'not_found'],
      ['/a//b', 'malformed_path'],
    ] as const)
      expect(await sdkRefusal(sdk.filesCopyReferenceGet({ path }))).toEqual(sdkRefused(`path/${reason}`));
  });
});

describe('files/tags', () => {
  const tagsOf = async (...paths: string[]) =>
    (await sdk.filesTagsGet({ paths })).result.paths_to_tags.map(({ path, tags }) => [
      path,
      tags.map((tag) => ('tag_text' in tag ? tag.tag_text : '')),
    ]);

  test('tags are stored in lower case in order, follow a move and are not copied', async () => {
    await put('/Tagged');
    for (const tag_text of ['Holiday', 'grün_1', 'holiday'])
      expect((await sdk.filesTagsAdd({ path: '/tagged', tag_text })).result).toBeNull();
    await sdk.filesMoveV2({ from_path: '/Tagged', to_path: '/Renamed' });
    await sdk.filesCopyV2({ from_path: '/Renamed', to_path: '/Twin' });
    expect(await tagsOf('/Renamed', '/Twin')).toEqual([
      ['/Renamed', ['holiday', 'grün_1']],
      ['/Twin', []],
    ]);
    expect((await sdk.filesTagsRemove({ path: '/Renamed', tag_text: 'HOLIDAY' })).result).toBeNull();
    expect(await tagsOf('/Renamed')).toEqual([['/Renamed', ['grün_1']]]);
  });

  test('filesTagsAdd of a 21st tag answers too_many_tags', async () => {
    await sdk.filesCreateFolderV2({ path: '/Full' });
    for (let number = 1; number <= 20; number++)
      await sdk.filesTagsAdd({ path: '/Full', tag_text: `t${number}` });
    expect((await sdk.filesTagsAdd({ path: '/Full', tag_text: 't20' })).result).toBeNull();
    expect(await sdkRefusal(sdk.filesTagsAdd({ path: '/Full', tag_text: 't21' }))).toEqual(
      sdkRefused('too_many_tags'),
    );
  });

  test('filesTagsAdd, filesTagsRemove and filesTagsGet answer their refusals', async () => {
    await put('/Bare');
    const argument = { path: '/None', tag_text: 'x' };
    for (const call of [
      () => sdk.filesTagsAdd(argument),
      () => sdk.filesTagsRemove(argument),
      () => sdk.filesTagsGet({ paths: ['/Bare', '/None'] }),
    ])
      expect(await sdkRefusal(call())).toEqual(sdkRefused('path/not_found'));
    expect(await sdkRefusal(sdk.filesTagsRemove({ path: '/Bare', tag_text: 'x' }))).toEqual(
      sdkRefused('tag_not_present'),
    );
  });
});

test('the tests of items called exactly the functions in SDK_ROWS and saw their refusals', () => {
  const rows = SDK_ROWS.items;
  expect(clients.driven(Object.keys(rows))).toEqual(rows);
});
