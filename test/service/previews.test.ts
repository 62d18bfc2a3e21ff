import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { temporaryDirectory } from '../support/program.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { headerJson, put, rpc, send, sharedLink } from '../support/service-client.ts';

/** Time limit of a render task, in ms. */
const TASK_MS_MAX = 10_000;
const CODE = 'int main() { return 0; }\n';

const clock = new ManualClock();
let service: TestService;

beforeAll(async () => {
  const renderProcess = new URL('../support/render-processes/stuck.mjs', import.meta.url);
  service = await startTestService({ clock, renderProcess });
});
afterAll(() => service.close());

test('link pages whose text never finishes rendering delay no other call and show plain text after 10 s', async () => {
  await put(service, '/main.cpp', CODE);
  const url = await sharedLink(service, '/main.cpp');
  let answered = 0;
  const visits = Array.from({ length: 8 }, async () => {
    const { status, text } = await send(url, {});
    answered++;
    return { status, text };
  });
  await clock.untilSleeping();
  for (let call = 0; call < 20; call++)
    expect((await rpc(service, 'users/get_current_account', null)).status).toBe(200);
  expect(answered).toBe(0);
  await clock.advance(TASK_MS_MAX);
  for (const { status, text } of await Promise.all(visits)) {
    expect(status).toBe(200);
    expect(text).toContain('<span class="line">int main() { return 0; }</span>');
  }
  // The revision is not rendered again.
  expect((await send(url, {})).text).toContain('<div class="sheet plain">');
});

test('a thumbnail that never finishes rendering delays no other call and answers conversion_error after 10 s', async () => {
  await put(service, '/image.png', 'not rendered');
  const asked = rpc(service, 'files/get_thumbnail_batch', { entries: [{ path: '/image.png' }] });
  await clock.untilSleeping();
  expect((await rpc(service, 'users/get_current_account', null)).status).toBe(200);
  await clock.advance(TASK_MS_MAX);
  expect((await asked).json).toMatchObject({
    entries: [{ '.tag': 'failure', failure: { '.tag': 'conversion_error' } }],
  });
});

test('without a render process, a link page shows plain text, a thumbnail answers 429, a batch conversion_error', async () => {
  // `fork` throws for this program, as for a lack of memory.
  const stopped = await startTestService({ renderProcess: new URL('data:text/javascript,') });
  try {
    await put(stopped, '/main.cpp', CODE);
    await put(stopped, '/image.png', 'not rendered');
    const page = await send(await sharedLink(stopped, '/main.cpp'), {});
    expect([page.status, page.text]).toEqual([
      200,
      expect.stringContaining('<span class="line">int main() { return 0; }</span>'),
    ]);
    const thumbnail = await send(`${stopped.url}/2/files/get_thumbnail`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${stopped.token}`,
        'dropbox-api-arg': headerJson({ path: '/image.png' }),
      },
    });
    expect([thumbnail.status, thumbnail.headers.get('retry-after')]).toEqual([429, '5']);
    const failed = { '.tag': 'failure', failure: { '.tag': 'conversion_error' } };
    const entries = [{ path: '/image.png' }, { path: '/image.png' }];
    const batch = await rpc(stopped, 'files/get_thumbnail_batch', { entries });
    expect(batch.json).toMatchObject({ entries: [failed, failed] });
  } finally {
    await stopped.close();
  }
});

test('the thumbnail of a link for which there was no render process answers 503 for a minute, and is shown afterwards', async () => {
  const folder = await temporaryDirectory();
  const [program, time] = [join(folder.path, 'large.mjs'), new ManualClock()];
  const stopped = await startTestService({ clock: time, renderProcess: pathToFileURL(program) });
  try {
    await put(stopped, '/image.png', '1');
    const url = `${await sharedLink(stopped, '/image.png')}&thumb=1`;
    const expectRefused = async () => {
      const { status, headers } = await send(url, {});
      expect([status, headers.get('retry-after')]).toEqual([503, '5']);
    };
    await expectRefused();
    await copyFile(new URL('../support/render-processes/large.mjs', import.meta.url), program);
    await time.advance(59_999);
    await expectRefused();
    await time.advance(1);
    expect((await send(url, {})).status).toBe(200);
  } finally {
    await stopped.close();
    await folder.remove();
  }
});
