import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';

// What the web application calls beside WebDAV, and how these functions refuse what they do not take.

let service: TestService;
let gateway: TestGateway;

beforeAll(async () => {
  service = await startTestService();
  gateway = await startTestGateway({ service });
});
afterAll(async () => {
  await gateway.close();
  await service.close();
});

const JSON_TYPE = { 'content-type': 'application/json' };

async function answerTo(
  path: string,
  init: RequestInit = {},
): Promise<readonly [status: number, text: string]> {
  const answer = await fetch(new URL(`/.davgate/api/${path}`, gateway.url), init);
  return [answer.status, (await answer.text()).trim()];
}

test('the drive names itself and its user, and says that deletions can be undone and all of it changed', async () => {
  expect(await answerTo('drive')).toEqual([
    200,
    '{"user":null,"drive":"d","keepsWrites":false,"places":[{"path":"/","isReadOnly":false,"keepsDeleted":true}],"hasAppPasswords":false,"hasUploadLinks":false}',
  ]);
});

test('an unknown function is refused with 404, which says to load the page again', async () => {
  expect(await answerTo('nothing')).toEqual([404, 'davgate has no function "nothing"; load the page again']);
});

test('a function that is called with another method is refused with 405 and Allow', async () => {
  expect(await answerTo('drive', { method: 'POST', headers: JSON_TYPE, body: '{}' })).toEqual([
    405,
    'call drive with GET',
  ]);
});

test('a page of another site is refused', async () => {
  expect((await answerTo('drive', { headers: { 'sec-fetch-site': 'cross-site' } }))[0]).toBe(403);
});

test.each(['restore', 'undelete', 'share', 'change-link', 'unshare'])(
  '%s is refused with 403 where the user may only read, and reading functions answer',
  async (name) => {
    const reading = await startTestGateway({ service, isReadOnly: true });
    const call = async (path: string, init: RequestInit = {}) => {
      const answer = await fetch(`${reading.url}/.davgate/api/${path}`, init);
      return [answer.status, await answer.text()];
    };
    const body = JSON.stringify({
      path: '/file',
      rev: '0123456789abc',
      url: 'http://x/',
      visibility: 'public',
    });
    expect(await call(name, { method: 'POST', headers: JSON_TYPE, body })).toEqual([
      403,
      'read-only: you may read /file, but not change it or add anything to it\n',
    ]);
    expect(await call('drive')).toEqual([200, expect.stringContaining('"isReadOnly":true')]);
    expect((await call('links'))[0]).toBe(200);
    await reading.close();
  },
);
