import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROUTES } from '../../../src/service/routes/table.ts';
import { expectBadCall } from '../../support/bad-call.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, refusal, refusalIn, rpc, send, upload } from '../../support/service-client.ts';

let service: TestService;
let namespace: string;

beforeAll(async () => {
  service = await startTestService();
  await put(service, '/file', 'text');
  const account = await rpc(service, 'users/get_current_account', null);
  namespace = (account.json as { root_info: { home_namespace_id: string } }).root_info.home_namespace_id;
});
afterAll(() => service.close());

describe('Dropbox-API-Path-Root', () => {
  const call = (root: string) =>
    rpc(service, 'files/get_metadata', { path: '/file' }, { headers: { 'dropbox-api-path-root': root } });

  test('home, and the own namespace, are as without', async () => {
    for (const root of [
      '{".tag":"home"}',
      '"home"',
      `{".tag":"root","root":"${namespace}"}`,
      `{".tag":"namespace_id","namespace_id":"${namespace}"}`,
    ])
      expect((await call(root)).status).toBe(200);
  });

  test('another root is 422 invalid_root, another namespace 422 no_permission', async () => {
    const info = { '.tag': 'user', root_namespace_id: namespace, home_namespace_id: namespace };
    expect(refusalIn(await call('{".tag":"root","root":"1"}'))).toEqual(
      refusal(422, 'invalid_root', { '.tag': 'invalid_root', invalid_root: info }),
    );
    expect(refusalIn(await call('{".tag":"namespace_id","namespace_id":"1"}'))).toEqual(
      refusal(422, 'no_permission', { '.tag': 'no_permission' }),
    );
  });

  test('a malformed one is 400', async () => {
    expectBadCall(
      await call('home'),
      'Error in call to API function "files/get_metadata": HTTP header "Dropbox-API-Path-Root": could not decode input as JSON',
    );
  });
});

describe('Dropbox-API-Path-Root, at every function of a user', () => {
  const users = [...ROUTES.values()].filter(({ auth }) => auth.endsWith('user'));

  test.each(users.map((route) => [route.name, route] as const))('%s', async (name, { style }) => {
    // The argument is none, which is complained of after the root.
    const statusUnder = async (root: object) => {
      const options = { headers: { 'dropbox-api-path-root': JSON.stringify(root) } };
      const account = await rpc(service, 'check/user', {}, options);
      const { status } = await (style === 'upload'
        ? upload(service, name, 'x', options)
        : send(`${service.url}/2/${name}`, {
            method: 'POST',
            headers: {
              authorization: `Bearer ${service.token}`,
              ...options.headers,
              ...(style === 'rpc' ? { 'content-type': 'application/json' } : { 'dropbox-api-arg': '"x"' }),
            },
            body: style === 'rpc' ? '"x"' : '',
          }));
      expect(account.status === 422).toBe(status === 422);
      return status;
    };
    for (const root of [
      { '.tag': 'home' },
      { '.tag': 'root', root: namespace },
      { '.tag': 'namespace_id', namespace_id: namespace },
    ])
      expect(await statusUnder(root)).toBe(400);
    for (const root of [
      { '.tag': 'root', root: '1' },
      { '.tag': 'namespace_id', namespace_id: '1' },
    ])
      expect(await statusUnder(root)).toBe(422);
  });
});
