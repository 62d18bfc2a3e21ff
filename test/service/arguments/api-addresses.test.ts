import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestService, type TestService } from '../../support/service.ts';
import { rpc } from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

describe('paths and methods of the API', () => {
  test('an unknown function answers 400 with a request id', async () => {
    const answered = await rpc(service, 'files/no_such', {});
    expect([answered.status, answered.text]).toEqual([
      400,
      'Error in call to API function "files/no_such": Unknown API function: /2/files/no_such',
    ]);
    expect(answered.headers.get('x-dropbox-request-id')).toMatch(/^[0-9a-f]{32}$/);
  });

  test.each(['/', '/1/files/upload', '/oauth2/authorise', '//x', '/%zz'])(
    'the path %s answers 404',
    async (path) => {
      expect((await fetch(service.url + path)).status).toBe(404);
    },
  );

  test.each([
    ['GET', 'files/get_metadata', 'POST'],
    ['PUT', 'files/upload', 'POST'],
    ['DELETE', 'files/download', 'POST, GET'],
  ])('%s of %s answers 405 with Allow', async (method, name, allow) => {
    const response = await fetch(`${service.url}/2/${name}`, { method });
    expect([response.status, response.headers.get('allow')]).toEqual([405, allow]);
  });
});

describe('CORS of the API', () => {
  test('an answer to a request with Origin has CORS headers, and one without has none', async () => {
    const headers = { origin: 'https://app.example' };
    const answered = await rpc(service, 'files/get_metadata', { path: '/none' }, { headers });
    expect(answered.status).toBe(409);
    expect(answered.headers.get('access-control-allow-origin')).toBe('*');
    expect(answered.headers.get('access-control-expose-headers')).toContain('Dropbox-API-Result');
    const without = await rpc(service, 'files/get_metadata', { path: '/none' });
    expect(without.headers.get('access-control-allow-origin')).toBeNull();
  });

  test('a preflight without a token answers 200 with CORS headers', async () => {
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
