import { afterAll, beforeAll, expect, test } from 'vitest';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc, send, sharedLink } from '../support/service-client.ts';

/** Time limit of a render task, in ms. */
const TASK_MAX_MS = 10_000;
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
  await clock.advance(TASK_MAX_MS);
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
  await clock.advance(TASK_MAX_MS);
  expect((await asked).json).toMatchObject({
    entries: [{ '.tag': 'failure', failure: { '.tag': 'conversion_error' } }],
  });
});
