import { afterEach, beforeEach, expect, test } from 'vitest';
import { effort, IS_LONG } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import { type GatedService, startGatedService } from '../support/gated-service.ts';
import type { GatewayClient } from '../support/gateway.ts';
import { type RedisGateways, startRedisGateways } from '../support/redis-gateways.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc } from '../support/service-client.ts';

// Work of one gateway that others must not see half done, and that they finish when it is gone.

let service: TestService;
let gated: GatedService;
let gateways: RedisGateways;
let one: GatewayClient;
let other: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  gated = await startGatedService(service.url);
  gateways = await startRedisGateways({ ...service, url: gated.url }, 2);
  [one, other] = gateways.clients as [GatewayClient, GatewayClient];
});
afterEach(async () => {
  await gateways.close();
  await gated.end();
  await service.close();
});

async function send(client: GatewayClient, method: string, path: string, headers = {}, text = '') {
  const { status, body } = await client.send(method, path, { headers, body: Buffer.from(text) });
  return { status, text: body.toString() };
}

const statusOfTarget = async () => (await rpc(service, 'files/get_metadata', { path: '/target' })).status;

test.each([
  ['has cached the target', true],
  ['knows nothing of the target', false],
])(
  'while one gateway moves a file over another, a gateway that %s shows a file there at every moment',
  async (_, isWarm) => {
    for (let round = 0; round < effort(5); round++) {
      expect((await send(one, 'PUT', '/target', {}, 'old')).status).toBeLessThan(300);
      expect((await send(one, 'PUT', '/source', {}, 'new')).status).toBe(201);
      const reader = isWarm ? other : await gateways.add();
      if (isWarm) expect((await send(reader, 'GET', '/target')).text).toBe('old');
      // The second step of the move waits, while the place is empty at the service.
      const gate = gated.closeBehind('move_v2');
      const move = send(one, 'MOVE', '/source', { destination: '/target' });
      await expectSoon(statusOfTarget).toBe(409);
      const reads = ['GET', 'GET', 'HEAD'].map((method) => send(reader, method, '/target'));
      const listing = send(reader, 'PROPFIND', '/', { depth: '1' });
      if (isWarm) for (const read of reads) expect((await read).status).toBe(200);
      gate.open();
      expect((await move).status).toBe(204);
      for (const read of reads) expect((await read).status).toBe(200);
      expect((await listing).text).toContain('/target');
      expect((await send(reader, 'GET', '/target')).text).toBe('new');
    }
  },
);

test('readers at one gateway never miss a file that another gateway replaces by moves again and again', async () => {
  const moves = IS_LONG ? 500 : 25;
  await send(one, 'PUT', '/target', {}, 'content 0');
  let isOver = false;
  const missed: string[] = [];
  const readers = ['GET', 'HEAD', 'PROPFIND'].map(async (method) => {
    while (!isOver) {
      const { status } = await send(other, method, '/target', { depth: '0' });
      if (status !== 200 && status !== 207) missed.push(`${method} ${status}`);
    }
  });
  for (let number = 1; number <= moves; number++) {
    await send(one, 'PUT', '/source', {}, `content ${number}`);
    expect((await send(one, 'MOVE', '/source', { destination: '/target' })).status).toBe(204);
    expect((await send(other, 'GET', '/target')).text).toBe(`content ${number}`);
  }
  isOver = true;
  await Promise.all(readers);
  expect(missed).toEqual([]);
});
