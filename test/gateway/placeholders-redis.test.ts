import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type GatedService, startGatedService } from '../support/gated-service.ts';
import type { GatewayClient } from '../support/gateway.ts';
import { type RedisGateways, startRedisGateways } from '../support/redis-gateways.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { storedPaths } from '../support/service-client.ts';

// Two gateways on one Redis: one of them has acknowledged an empty file and is sending it when the other one changes it.

let service: TestService;
let gated: GatedService;
let gateways: RedisGateways;
let owner: GatewayClient;
let other: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  gated = await startGatedService(service.url);
  gateways = await startRedisGateways(service, 1);
  owner = await gateways.add(gated.url);
  [other] = gateways.clients as [GatewayClient];
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

/** Calls `change` while the owner's call that sends the empty file at `path` is under way. */
async function duringCommit<T>(path: string, change: () => Promise<T>): Promise<T> {
  const gate = gated.close('upload');
  expect((await send(owner, 'PUT', path)).status).toBe(201);
  await gate.reached;
  const changed = change();
  // Longer than any change takes that does not wait.
  const early = await Promise.race([changed, new Promise((resolve) => setTimeout(resolve, 1_000, 'waits'))]);
  expect(early).toBe('waits');
  gate.open();
  return changed;
}

test('an empty file that another gateway deletes while its owner is sending it stays deleted', async () => {
  expect(await duringCommit('/new', () => send(other, 'DELETE', '/new'))).toMatchObject({ status: 204 });
  expect((await send(owner, 'GET', '/new')).status).toBe(404);
  expect((await send(other, 'GET', '/new')).status).toBe(404);
  expect(await storedPaths(service)).toEqual([]);
});

test('an empty file stays deleted whose folder another gateway deletes while its owner is sending it', async () => {
  expect((await send(other, 'MKCOL', '/d')).status).toBe(201);
  expect(await duringCommit('/d/new', () => send(other, 'DELETE', '/d'))).toMatchObject({ status: 204 });
  expect((await send(owner, 'GET', '/d/new')).status).toBe(404);
  expect(await storedPaths(service)).toEqual([]);
});

test.each([
  ['MOVE', ['/moved']],
  ['COPY', ['/moved', '/new']],
])(
  '%s by another gateway of an empty file that its owner is sending leaves what it promises',
  async (method, left) => {
    const change = () => send(other, method, '/new', { destination: '/moved' });
    expect(await duringCommit('/new', change)).toMatchObject({ status: 201 });
    expect(await storedPaths(service)).toEqual(left);
    for (const client of [owner, other]) expect((await send(client, 'GET', '/moved')).status).toBe(200);
  },
);

test('a body that another gateway receives for an empty file that its owner is sending is not lost', async () => {
  const written = await duringCommit('/new', () => send(other, 'PUT', '/new', {}, 'body'));
  expect(written.status).toBe(204);
  for (const client of [owner, other]) expect((await send(client, 'GET', '/new')).text).toBe('body');
});

const setTime =
  '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><D:getlastmodified>Mon, 02 Jan 2006 15:04:05 GMT' +
  '</D:getlastmodified></D:prop></D:set></D:propertyupdate>';

test('a time that another gateway sets for an empty file that its owner is sending is kept', async () => {
  const set = await duringCommit('/new', () => send(other, 'PROPPATCH', '/new', {}, setTime));
  expect(set.status).toBe(207);
  await eventually(async () => expect(await storedPaths(service)).toEqual(['/new']));
  for (const client of [owner, other])
    expect((await send(client, 'PROPFIND', '/new', { depth: '0' })).text).toContain('02 Jan 2006 15:04:05');
});
