import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectBadCall } from '../../support/bad-call.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc } from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  await put(service, '/file', 'text');
});
afterAll(() => service.close());

const READ = '(/(.|[\\r\\n])*|id:.*)|(rev:[0-9a-f]{9,})|(ns:[0-9]+(/(.|[\\r\\n])*)?)';
const WRITE_OR_ID = '(/(.|[\\r\\n])*)|(ns:[0-9]+(/(.|[\\r\\n])*)?)|(id:.*)';
const WRITE = '(/(.|[\\r\\n])*)|(ns:[0-9]+(/(.|[\\r\\n])*)?)';
const LIST = '(/(.|[\\r\\n])*)?|id:.*|(ns:[0-9]+(/(.|[\\r\\n])*)?)';

describe('RPC arguments', () => {
  test.each<[string, unknown, string]>([
    ['files/get_metadata', {}, "missing required field 'path'"],
    ['files/get_metadata', { path: null }, "missing required field 'path'"],
    ['files/get_metadata', { path: '/file', pat: 1 }, "unknown field 'pat'"],
    ['files/get_metadata', { path: 7 }, 'path: expected string, got integer'],
    ['files/get_metadata', { path: ['/file'] }, 'path: expected string, got list'],
    ['files/get_metadata', { path: 'file' }, `path: 'file' did not match pattern '${READ}'`],
    ['files/get_metadata', { path: 'rev:a1' }, `path: 'rev:a1' did not match pattern '${READ}'`],
    ['files/get_metadata', { path: 'a\nb' }, `path: 'a\\nb' did not match pattern '${READ}'`],
    ['files/get_metadata', { path: '/' }, 'path: The root folder is unsupported.'],
    [
      'files/get_metadata',
      { path: '/file', include_deleted: 'yes' },
      'include_deleted: expected boolean, got string',
    ],
    ['files/get_metadata', [], 'expected object, got list'],
    ['files/get_metadata', 'path', 'expected object, got string'],
    ['files/get_metadata', null, 'expected object, got null'],
    [
      'files/list_folder',
      { path: '/' },
      'path: Specify the root folder as an empty string rather than as "/".',
    ],
    [
      'files/list_folder',
      { path: 'rev:0123456789' },
      `path: 'rev:0123456789' did not match pattern '${LIST}'`,
    ],
    ['files/list_folder', { path: '', limit: 0 }, 'limit: must be at least 1, got 0'],
    ['files/list_folder', { path: '', limit: 2001 }, 'limit: must be at most 2000, got 2001'],
    [
      'files/list_folder',
      { path: '', limit: 2 ** 60 },
      'limit: must be at most 2000, got 1152921504606847000',
    ],
    [
      'files/upload_session/finish_batch_v2',
      { entries: [{ cursor: { session_id: 's', offset: 2 ** 60 }, commit: { path: '/x' } }] },
      'entries: 0: cursor: offset: must be at most 9007199254740991, got 1152921504606847000',
    ],
    ['files/list_folder', { path: '', limit: 1.5 }, 'limit: expected integer, got float'],
    ['files/list_folder', { path: '', limit: '5' }, 'limit: expected integer, got string'],
    ['files/list_folder/continue', { cursor: 'rubbish' }, 'cursor: unsupported cursor type'],
    ['files/list_folder/continue', { cursor: '' }, 'cursor: must be at least 1 characters, got 0'],
    [
      'files/delete_v2',
      { path: 'rev:0123456789' },
      `path: 'rev:0123456789' did not match pattern '${WRITE_OR_ID}'`,
    ],
    [
      'files/delete_v2',
      { path: '/file', parent_rev: 'xyz' },
      'parent_rev: must be at least 9 characters, got 3',
    ],
    [
      'files/delete_v2',
      { path: '/file', parent_rev: 'ABCDEF012345' },
      "parent_rev: 'ABCDEF012345' did not match pattern '[0-9a-f]+'",
    ],
    ['files/create_folder_v2', { path: 'id:abc' }, `path: 'id:abc' did not match pattern '${WRITE}'`],
    ['files/move_v2', { from_path: '/file' }, "missing required field 'to_path'"],
    ['files/list_revisions', { path: '/file', limit: 101 }, 'limit: must be at most 100, got 101'],
    ['files/list_revisions', { path: '/file', mode: 'name' }, "mode: unknown tag 'name'"],
    ['files/list_revisions', { path: '/file', mode: { '.tag': 'id', id: 1 } }, "mode: unknown field 'id'"],
    ['files/list_revisions', { path: '/file', mode: {} }, "mode: missing required field '.tag'"],
    [
      'files/upload_session/finish_batch_v2',
      { entries: [{ cursor: { session_id: 's' } }] },
      "entries: 0: cursor: missing required field 'offset'",
    ],
    [
      'files/upload_session/finish_batch_v2',
      { entries: Array.from({ length: 1001 }, () => ({})) },
      'entries: must have at most 1000 items, got 1001',
    ],
    ['check/user', { query: 'x'.repeat(501) }, 'query: must be at most 500 characters, got 501'],
    ['users/get_current_account', { query: 1 }, "unknown field 'query'"],
    [
      'sharing/get_shared_link_metadata',
      { url: 'https://x/', path: 'a' },
      "path: 'a' did not match pattern '/(.|[\\r\\n])*'",
    ],
    [
      'files/list_folder',
      { path: '', include_property_groups: { '.tag': 'filter_some', filter_some: [] } },
      'include_property_groups: filter_some: must have at least 1 items, got 0',
    ],
    [
      'files/get_temporary_upload_link',
      { commit_info: { path: '/x', property_groups: [{ template_id: 'ptid:x', fields: [] }] } },
      'commit_info: property_groups: not supported by this service; leave the field out',
    ],
    [
      'sharing/create_shared_link_with_settings',
      { path: '/file', settings: { color: 1 } },
      "settings: unknown field 'color'",
    ],
    [
      'sharing/create_shared_link_with_settings',
      { path: '/file', settings: { expires: '2030-01-01' } },
      "settings: expires: time data '2030-01-01' does not match format '%Y-%m-%dT%H:%M:%SZ'",
    ],
    [
      'sharing/create_shared_link_with_settings',
      { path: '/file', settings: { expires: '2030-02-30T00:00:00Z' } },
      "settings: expires: time data '2030-02-30T00:00:00Z' does not match format '%Y-%m-%dT%H:%M:%SZ'",
    ],
  ])('%s answers 400 to %j', async (name, argument, problem) => {
    expectBadCall(
      await rpc(service, name, argument),
      `Error in call to API function "${name}": request body: ${problem}`,
    );
  });

  test('the error for a value of 100,000 characters is shorter than 600', async () => {
    const answered = await rpc(service, 'files/get_metadata', { path: 'x'.repeat(100_000) });
    expect(answered.text.length).toBeLessThan(600);
  });

  test.each(['{"path":', '', 'path=/file', '\ufeff{}', '{"path":"/file"}}'])(
    'an RPC function answers 400 to the body %j',
    async (body) => {
      expectBadCall(
        await rpc(service, 'files/get_metadata', null, { body }),
        'Error in call to API function "files/get_metadata": request body: could not decode input as JSON',
      );
    },
  );

  test('an RPC function refuses a body that is not UTF-8', async () => {
    const body = Buffer.from('{"path":"/\xff"}', 'latin1');
    expect((await rpc(service, 'files/get_metadata', null, { body })).text).toContain('could not decode');
  });

  test('an RPC function refuses __proto__ as an unknown field', async () => {
    const body = '{"path":"/file","__proto__":{"include_deleted":true}}';
    expect((await rpc(service, 'files/get_metadata', null, { body })).text).toContain(
      "unknown field '__proto__'",
    );
  });

  test('an RPC function takes null for an absent field', async () => {
    const argument = { path: '/file', include_deleted: null, include_media_info: null };
    expect((await rpc(service, 'files/get_metadata', argument)).status).toBe(200);
  });

  test('an RPC function refuses a body of more than 16 MiB', async () => {
    const body = JSON.stringify({ query: 'x'.repeat(16 * 1024 * 1024) });
    const answered = await rpc(service, 'check/user', null, { body });
    expectBadCall(
      answered,
      'Error in call to API function "check/user": request body: must be at most 16777216 bytes',
    );
  });
});
