import { afterEach, beforeEach, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';
import { UpstreamCalls } from '../support/upstream-calls.ts';

const HOUR_MS = 3_600_000;

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;
let clock: ManualClock;
let calls: UpstreamCalls;
const closing: (() => unknown)[] = [];

beforeEach(async () => {
  service = await startTestService();
  closing.push(() => service.close());
  for (const path of ['/Drive/moved', '/Drive/deleted', '/Elsewhere/other']) await put(service, path, path);
  clock = new ManualClock();
  gateway = await startTestGateway({ service, root: '/Drive', clock });
  closing.push(() => gateway.close());
  client = new GatewayClient(gateway.url);
  closing.push(() => client.close());
  calls = new UpstreamCalls(service.url);
  closing.push(() => calls.close());
  await gateway.following();
  await setProperty('/moved');
  await setProperty('/deleted');
  expect(await gateway.idsWithProperties()).toHaveLength(2);
});
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

/** Sets a dead property of the file. */
async function setProperty(path: string): Promise<void> {
  const body =
    '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><c xmlns="urn:x">value</c></D:prop></D:set></D:propertyupdate>';
  expect((await client.send('PROPPATCH', path, { body: Buffer.from(body) })).status).toBe(207);
}

/** Returns the status and body of a PROPFIND for that property. */
async function propertyAnswer(path: string): Promise<string> {
  const body = '<D:propfind xmlns:D="DAV:"><D:prop><c xmlns="urn:x"/></D:prop></D:propfind>';
  const answer = await client.send('PROPFIND', path, { headers: { depth: '0' }, body: Buffer.from(body) });
  return `${answer.status} ${answer.body}`;
}

async function idOf(path: string): Promise<string> {
  const { json } = await rpc(service, 'files/get_metadata', { path });
  return (json as { readonly id: string }).id;
}

/** Changes the account without the gateway. */
async function changeAtService(route: 'move_v2' | 'delete_v2', argument: object): Promise<void> {
  expect((await rpc(service, `files/${route}`, argument)).status).toBe(200);
}

/** Advances the gateway's clock in steps until `expectation` holds. */
function advanceUntil(stepMs: number, expectation: () => unknown): Promise<void> {
  return eventually(async () => {
    await clock.advance(stepMs);
    await expectation();
  });
}

/** Moves `/moved` out of the drive, and waits until the gateway has looked up its id and acted on the answer. */
async function moveOut(): Promise<void> {
  const deleted = await idOf('/Drive/deleted');
  calls.take();
  await changeAtService('move_v2', { from_path: '/Drive/moved', to_path: '/Elsewhere/moved' });
  await advanceUntil(100, () => expect(calls.take()).toContain('get_metadata'));
  // The gateway looks up one id after the other: when the second is forgotten, the first has been handled.
  await changeAtService('delete_v2', { path: '/Drive/deleted' });
  await advanceUntil(100, async () => expect(await gateway.idsWithProperties()).not.toContain(deleted));
}

test('a file that is moved out of the drive’s root and back keeps its dead properties', async () => {
  await moveOut();
  expect(await propertyAnswer('/moved')).toMatch(/^404/);
  await changeAtService('move_v2', { from_path: '/Elsewhere/moved', to_path: '/Drive/back' });
  await advanceUntil(100, async () => expect(await propertyAnswer('/back')).toMatch(/^207/));
  expect(await propertyAnswer('/back')).toMatch(/>value</);
});

test('the daily sweep removes the dead properties of a file that was deleted outside the drive’s root', async () => {
  await moveOut();
  expect(await gateway.idsWithProperties()).toHaveLength(1);
  await changeAtService('delete_v2', { path: '/Elsewhere/moved' });
  await advanceUntil(HOUR_MS, async () => expect(await gateway.idsWithProperties()).toEqual([]));
});
