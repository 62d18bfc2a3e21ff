import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectBadCall } from '../../support/bad-call.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc, send, upload } from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
  await put(service, '/file', 'text');
});
afterAll(() => service.close());

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
      expectBadCall(
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
    expectBadCall(
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
