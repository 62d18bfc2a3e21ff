import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, put, refusal, refusalIn, rpc, send, upload } from '../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  await put(service, '/file', 'text');
});
afterAll(() => service.close());

function expectText(answered: Answered, text: string): void {
  expect([answered.status, answered.text]).toEqual([400, text]);
  expect(answered.headers.get('content-type')).toBe('text/plain; charset=utf-8');
  expect(answered.headers.get('x-dropbox-request-id')).toMatch(/^[0-9a-f]{32}$/);
}

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
  ])('%s refuses %j', async (name, argument, problem) => {
    expectText(
      await rpc(service, name, argument),
      `Error in call to API function "${name}": request body: ${problem}`,
    );
  });

  test('a value in a complaint is cut where it gets long', async () => {
    const answered = await rpc(service, 'files/get_metadata', { path: 'x'.repeat(100_000) });
    expect(answered.text.length).toBeLessThan(600);
  });

  test.each(['{"path":', '', 'path=/file', '\ufeff{}', '{"path":"/file"}}'])(
    'refuses the body %j',
    async (body) => {
      expectText(
        await rpc(service, 'files/get_metadata', null, { body }),
        'Error in call to API function "files/get_metadata": request body: could not decode input as JSON',
      );
    },
  );

  test('refuses bytes that are no UTF-8', async () => {
    const body = Buffer.from('{"path":"/\xff"}', 'latin1');
    expect((await rpc(service, 'files/get_metadata', null, { body })).text).toContain('could not decode');
  });

  test('a prototype is no field', async () => {
    const body = '{"path":"/file","__proto__":{"include_deleted":true}}';
    expect((await rpc(service, 'files/get_metadata', null, { body })).text).toContain(
      "unknown field '__proto__'",
    );
  });

  test('null stands for what is absent', async () => {
    const argument = { path: '/file', include_deleted: null, include_media_info: null };
    expect((await rpc(service, 'files/get_metadata', argument)).status).toBe(200);
  });

  test('a body of more than 16 MiB is refused', async () => {
    const body = JSON.stringify({ query: 'x'.repeat(16 * 1024 * 1024) });
    const answered = await rpc(service, 'check/user', null, { body });
    expectText(
      answered,
      'Error in call to API function "check/user": request body: must be at most 16777216 bytes',
    );
  });
});

describe('Content-Type', () => {
  const EXPECTED =
    'Expecting one of "application/json", "application/json; charset=utf-8", "text/plain; charset=dropbox-cors-hack".';

  test.each([
    'application/json',
    'application/json; charset=utf-8',
    'application/json;charset=UTF-8',
    'text/plain; charset=dropbox-cors-hack',
  ])('RPC takes %s', async (type) => {
    const headers = { 'content-type': type };
    expect((await rpc(service, 'files/get_metadata', { path: '/file' }, { headers })).status).toBe(200);
  });

  test.each(['text/plain', 'application/x-www-form-urlencoded', 'application/json; charset=latin1'])(
    'RPC refuses %s',
    async (type) => {
      const headers = { 'content-type': type };
      expectText(
        await rpc(service, 'files/get_metadata', { path: '/file' }, { headers }),
        `Error in call to API function "files/get_metadata": Bad HTTP "Content-Type" header: "${type}".  ${EXPECTED}`,
      );
    },
  );

  test('RPC with a body and no type is refused', async () => {
    const answered = await send(`${service.url}/2/files/get_metadata`, {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}` },
      body: Buffer.from('{"path":"/file"}'),
    });
    expectText(
      answered,
      `Error in call to API function "files/get_metadata": Missing or empty HTTP "Content-Type" header.  ${EXPECTED}`,
    );
  });

  test.each<[string, string | undefined, number]>([
    ['null', 'application/json', 200],
    ['', 'application/json', 200],
    ['', undefined, 200],
    ['{}', 'application/json', 200],
    ['', 'application/x-www-form-urlencoded', 400],
    ['a=b', 'application/x-www-form-urlencoded', 400],
    ['[]', 'application/json', 400],
  ])('a function without argument, called with %j as %s: %i', async (body, type, status) => {
    const headers = { authorization: `Bearer ${service.token}`, ...(type && { 'content-type': type }) };
    const answered = await send(`${service.url}/2/users/get_current_account`, {
      method: 'POST',
      headers,
      ...(body && { body: Buffer.from(body) }),
    });
    expect(answered.status).toBe(status);
  });

  test.each<[string, number]>([
    ['application/octet-stream', 200],
    ['text/plain; charset=dropbox-cors-hack', 200],
    ['application/octet-stream; charset=utf8', 400],
    ['application/json', 400],
    ['text/plain', 400],
  ])('upload as %s: %i', async (type, status) => {
    const argument = { path: '/typed', mode: 'overwrite' };
    const options = { headers: { 'content-type': type }, body: 'text' };
    expect((await upload(service, 'files/upload', argument, options)).status).toBe(status);
  });

  test.each<[string, number]>([
    ['', 200],
    ['application/octet-stream', 200],
    ['application/json', 400],
    ['text/plain; charset=dropbox-cors-hack', 400],
    ['application/x-www-form-urlencoded', 400],
  ])('download as %j: %i', async (type, status) => {
    const answered = await send(`${service.url}/2/files/download`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.token}`,
        'dropbox-api-arg': '{"path":"/file"}',
        'content-type': type,
      },
    });
    expect(answered.status).toBe(status);
  });
});

describe('Dropbox-API-Arg', () => {
  const call = (header: string | undefined, query = '') =>
    send(`${service.url}/2/files/upload${query}`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.token}`,
        'content-type': 'application/octet-stream',
        ...(header !== undefined && { 'dropbox-api-arg': header }),
      },
      body: 'text',
    });

  test('is read escaped, as raw UTF-8, and from the URL', async () => {
    const name = 'Ünï \u{1f600}';
    const json = JSON.stringify({ path: `/args/${name}`, mode: 'overwrite' });
    const escaped = json.replaceAll(
      /[\u007f-\uffff]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
    );
    const raw = Buffer.from(json).toString('latin1');
    for (const answered of [
      await call(escaped),
      await call(raw),
      await call(undefined, `?arg=${encodeURIComponent(json)}`),
    ])
      expect(answered.json ?? answered.text).toMatchObject({ name: name.normalize('NFC') });
  });

  test.each<[string | undefined, string, string]>([
    [undefined, '', 'Must provide HTTP header "Dropbox-API-Arg" or URL parameter "arg".'],
    ['{"path"', '', 'HTTP header "Dropbox-API-Arg": could not decode input as JSON'],
    ['{}', '', 'HTTP header "Dropbox-API-Arg": missing required field \'path\''],
    [undefined, '?arg={}', 'URL parameter "arg": missing required field \'path\''],
    [
      '{"path":"/x","mode":"update"}',
      '',
      'HTTP header "Dropbox-API-Arg": mode: expected object for \'update\', got symbol',
    ],
    [
      '{"path":"/x","mode":{".tag":"update"}}',
      '',
      'HTTP header "Dropbox-API-Arg": mode: missing required field \'update\'',
    ],
    [
      '{"path":"/x","client_modified":"2020-01-01T00:00:00.5Z"}',
      '',
      "HTTP header \"Dropbox-API-Arg\": client_modified: time data '2020-01-01T00:00:00.5Z' does not match format '%Y-%m-%dT%H:%M:%SZ'",
    ],
    [
      '{"path":"/x","content_hash":"12"}',
      '',
      'HTTP header "Dropbox-API-Arg": content_hash: must be at least 64 characters, got 2',
    ],
  ])('%j with %j: %s', async (header, query, problem) => {
    expectText(await call(header, query), `Error in call to API function "files/upload": ${problem}`);
  });

  test('modes may be bare words or objects', async () => {
    for (const mode of ['add', 'overwrite', { '.tag': 'overwrite' }])
      expect((await call(JSON.stringify({ path: '/modes', mode }))).status).toBe(200);
  });

  test('a deep path, escaped to more than 64 KiB, fits', async () => {
    const path = `/${Array.from({ length: 45 }, () => 'ü'.repeat(250)).join('/')}`;
    const answered = await upload(service, 'files/upload', { path }, { body: 'text' });
    expect(answered.json).toMatchObject({ path_display: path });
    const read = await rpc(service, 'files/get_metadata', { path });
    expect(read.status).toBe(200);
  });
});

describe('addresses and methods', () => {
  test('an unknown function is 400, with an id', async () => {
    const answered = await rpc(service, 'files/no_such', {});
    expect([answered.status, answered.text]).toEqual([
      400,
      'Error in call to API function "files/no_such": Unknown API function: /2/files/no_such',
    ]);
    expect(answered.headers.get('x-dropbox-request-id')).toMatch(/^[0-9a-f]{32}$/);
  });

  test.each(['/', '/1/files/upload', '/oauth2/authorise', '//x', '/%zz'])('%s is 404', async (path) => {
    expect((await fetch(service.url + path)).status).toBe(404);
  });

  test.each([
    ['GET', 'files/get_metadata', 'POST'],
    ['PUT', 'files/upload', 'POST'],
    ['DELETE', 'files/download', 'POST, GET'],
  ])('%s of %s is 405', async (method, name, allow) => {
    const response = await fetch(`${service.url}/2/${name}`, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
  });
});

describe('Dropbox-API-Path-Root', () => {
  const call = (root: string) =>
    rpc(service, 'files/get_metadata', { path: '/file' }, { headers: { 'dropbox-api-path-root': root } });
  const own = async () => {
    const account = await rpc(service, 'users/get_current_account', null);
    return (account.json as { root_info: { root_namespace_id: string } }).root_info.root_namespace_id;
  };

  test('home, and the own namespace, are as without', async () => {
    const namespace = await own();
    for (const root of [
      '{".tag":"home"}',
      '"home"',
      `{".tag":"root","root":"${namespace}"}`,
      `{".tag":"namespace_id","namespace_id":"${namespace}"}`,
    ])
      expect((await call(root)).status).toBe(200);
  });

  test('another root is 422 invalid_root, another namespace 422 no_permission', async () => {
    const namespace = await own();
    const info = { '.tag': 'user', root_namespace_id: namespace, home_namespace_id: namespace };
    expect(refusalIn(await call('{".tag":"root","root":"1"}'))).toEqual(
      refusal(422, 'invalid_root', { '.tag': 'invalid_root', invalid_root: info }),
    );
    expect(refusalIn(await call('{".tag":"namespace_id","namespace_id":"1"}'))).toEqual(
      refusal(422, 'no_permission', { '.tag': 'no_permission' }),
    );
  });

  test('a malformed one is 400', async () => {
    expectText(
      await call('home'),
      'Error in call to API function "files/get_metadata": HTTP header "Dropbox-API-Path-Root": could not decode input as JSON',
    );
  });
});

describe('CORS', () => {
  test('an answer to another site may be read by it', async () => {
    const headers = { origin: 'https://app.example' };
    const answered = await rpc(service, 'files/get_metadata', { path: '/none' }, { headers });
    expect(answered.status).toBe(409);
    expect(answered.headers.get('access-control-allow-origin')).toBe('*');
    expect(answered.headers.get('access-control-expose-headers')).toContain('Dropbox-API-Result');
    const without = await rpc(service, 'files/get_metadata', { path: '/none' });
    expect(without.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('a preflight is answered without a token', async () => {
    const response = await fetch(`${service.url}/2/files/upload`, {
      method: 'OPTIONS',
      headers: {
        origin: 'https://app.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization,dropbox-api-arg',
      },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(response.headers.get('access-control-allow-headers')).toBe('authorization,dropbox-api-arg');
  });
});
