import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc } from '../../support/service-client.ts';
import { UpstreamCalls } from '../../support/upstream-calls.ts';

// The function `undelete` for a user with a quota of 10 bytes.

let service: TestService;
let gateway: TestGateway;

beforeAll(async () => {
  service = await startTestService();
  const views = { kim: [{ at: '/', root: '/Kim', quotaBytes: 10 }] };
  gateway = await startTestGateway({ service, views });
  await gateway.following();
});
afterAll(async () => {
  await gateway.close();
  await service.close();
});

const numbered = (count: number) => Array.from({ length: count }, (_, index) => `${index}`.padStart(3, '0'));

/** Deletes files from a new folder, which is there again afterwards. */
async function deleteFrom(folder: string, names: readonly string[]): Promise<void> {
  const path = `/Kim${folder}`;
  for (const name of names) await put(service, `${path}/${name}`, name);
  await rpc(service, 'files/delete_v2', { path });
  await rpc(service, 'files/create_folder_v2', { path });
}

async function undelete(path: string): Promise<readonly [status: number, text: string]> {
  const headers = { 'content-type': 'application/json', 'x-test-user': 'kim' };
  const init = { method: 'POST', headers, body: JSON.stringify({ path }) };
  const answer = await fetch(new URL('/.davgate/api/undelete', gateway.url), init);
  return [answer.status, await answer.text()];
}

test('undelete with a quota makes as many calls in a folder with many deleted files as in one with few', async () => {
  await deleteFrom('/few', numbered(1));
  await deleteFrom('/many', numbered(30));
  const upstream = new UpstreamCalls(service.url);
  onTestFinished(() => upstream.close());
  const counted = async (path: string) => {
    upstream.take();
    expect((await undelete(path))[0]).toBe(200);
    // The size of the drive may be measured again meanwhile, with other calls.
    return upstream.take().filter((route) => route === 'list_revisions');
  };
  expect(await counted('/many/000')).toEqual(await counted('/few/000'));
});

test('undelete of a file beyond the quota answers 507 also for the 501st deleted name of a folder', async () => {
  const large = 'z is longer than the quota';
  await deleteFrom('/full', [...numbered(500), large]);
  expect(await undelete(`/full/${large}`)).toEqual([507, expect.stringContaining('quota')]);
  expect((await undelete('/full/499'))[0]).toBe(200);
});
