import { afterEach, beforeEach, expect, test } from 'vitest';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { storedPaths } from '../support/service-client.ts';

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  gateway = await startTestGateway({ service });
  client = new GatewayClient(gateway.url);
});
afterEach(async () => {
  client.close();
  await gateway.close();
  await service.close();
});

const statusOf = async (method: string, path: string, to?: string) => {
  const headers = to === undefined ? {} : { destination: gateway.url + to };
  return (await client.send(method, path, { headers })).status;
};

/** Makes `/F/.Trashes/12`, which has 12,287 local files and folders because each level has that below it twice. */
async function fill() {
  const folder = '/F/.Trashes';
  for (const path of ['/F', folder, `${folder}/0`]) expect(await statusOf('MKCOL', path)).toBe(201);
  expect(await statusOf('PUT', `${folder}/0/f`)).toBe(201);
  for (let level = 1; level <= 12; level++) {
    expect(await statusOf('MKCOL', `${folder}/${level}`)).toBe(201);
    for (const name of ['a', 'b'])
      expect(await statusOf('COPY', `${folder}/${level - 1}`, `${folder}/${level}/${name}`)).toBe(201);
  }
}

test('COPY and MOVE of a folder with more than 10,000 local files, or over it, answer 403 and change nothing; DELETE removes it', async () => {
  await fill();
  for (const method of ['COPY', 'MOVE'])
    for (const [from, to] of [
      ['/F/.Trashes/12', '/F/.Trashes/13'],
      ['/F/.Trashes/1', '/F/.Trashes/12'],
      ['/F', '/G'],
    ] as const)
      expect([method, from, to, await statusOf(method, from, to)]).toEqual([method, from, to, 403]);
  expect(await statusOf('HEAD', '/F/.Trashes/13')).toBe(404);
  for (const path of ['/F/.Trashes/12/b/a/b', '/F/.Trashes/1/a/f'])
    expect(await statusOf('HEAD', path)).toBe(200);
  expect(await storedPaths(service)).toEqual(['/F/']);
  expect(await statusOf('DELETE', '/F/.Trashes/12')).toBe(204);
  expect(await statusOf('HEAD', '/F/.Trashes/12/b')).toBe(404);
  expect(await statusOf('DELETE', '/F')).toBe(204);
  expect(await statusOf('MKCOL', '/F')).toBe(201);
  expect(await statusOf('HEAD', '/F/.Trashes')).toBe(404);
});
