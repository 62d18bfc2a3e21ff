import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectSoon } from '../support/eventually.ts';
import { linesOf, shownTree } from '../support/follower.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';

// Somebody at the service undoes what davgate has just done.

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

const shown = async () => linesOf(await shownTree(client, '/')).map((line) => line.replace(/ .*/, ''));

test('a folder that davgate has moved and somebody moves back is shown at its old place', async () => {
  await put(service, '/from/a.txt', 'a');
  await expectSoon(shown).toEqual(['/from', '/from/a.txt']);
  expect((await client.send('MOVE', '/from', { headers: { destination: '/to' } })).status).toBe(201);
  expect(await shown()).toEqual(['/to', '/to/a.txt']);
  await rpc(service, 'files/move_v2', { from_path: '/to', to_path: '/from' });
  await expectSoon(shown).toEqual(['/from', '/from/a.txt']);
});

test('a file that davgate has moved and somebody moves back is shown at its old place', async () => {
  await put(service, '/from.txt', 'a');
  await expectSoon(shown).toEqual(['/from.txt']);
  expect((await client.send('MOVE', '/from.txt', { headers: { destination: '/to.txt' } })).status).toBe(201);
  expect(await shown()).toEqual(['/to.txt']);
  await rpc(service, 'files/move_v2', { from_path: '/to.txt', to_path: '/from.txt' });
  await expectSoon(shown).toEqual(['/from.txt']);
});
