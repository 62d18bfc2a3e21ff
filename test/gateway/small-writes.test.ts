import { afterEach, beforeEach, expect, test } from 'vitest';
import type { FaultSettings } from '../../src/service/faults/switches.ts';
import { effort } from '../support/effort.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, rpc } from '../support/service-client.ts';
import { UpstreamCalls } from '../support/upstream-calls.ts';

/** Many clients that write small files at once, over a service that contends, limits and loses answers. */
const CLIENTS = 8;
const FILES_EACH = 8;

let service: TestService;
let gateway: TestGateway;
let clients: GatewayClient[];
let upstream: UpstreamCalls;

beforeEach(async () => {
  service = await startTestService();
  upstream = new UpstreamCalls(service.url);
  gateway = await startTestGateway({ service });
  clients = Array.from({ length: CLIENTS }, () => new GatewayClient(gateway.url));
  expect(await clients[0]?.send('MKCOL', '/d')).toMatchObject({ status: 201 });
  expect(await clients[0]?.send('PROPFIND', '/d/', { headers: { depth: '1' } })).toMatchObject({
    status: 207,
  });
  upstream.take();
});
afterEach(async () => {
  service.service.setFaults({});
  for (const client of clients) client.close();
  upstream.close();
  await gateway.close();
  await service.close();
});

const textOf = (path: string) => `the content of ${path}`;
const CREATE = { headers: { 'if-none-match': '*' } };

/** What all clients write, each one file after the other; the answers' statuses by path. */
async function writeAll(faults: FaultSettings): Promise<ReadonlyMap<string, number>> {
  service.service.setFaults(faults);
  const statuses = new Map<string, number>();
  const writing = clients.map(async (client, number) => {
    for (let file = 0; file < FILES_EACH; file += 1) {
      const path = `/d/${number}-${file}`;
      const { status } = await client.send('PUT', path, { ...CREATE, body: Buffer.from(textOf(path)) });
      statuses.set(path, status);
    }
  });
  await Promise.all(writing);
  service.service.setFaults({});
  return statuses;
}

async function revisionsOf(path: string): Promise<number> {
  const { json } = await rpc(service, 'files/list_revisions', { path });
  return (json as { entries: unknown[] }).entries.length;
}

/** Each was told to be made, is there byte for byte, and was committed once. */
async function expectAllStored(statuses: ReadonlyMap<string, number>): Promise<void> {
  expect([...statuses.values()].filter((status) => status !== 201)).toEqual([]);
  for (const path of statuses.keys()) {
    expect((await download(service, path)).text).toBe(textOf(path));
    expect([path, await revisionsOf(path)]).toEqual([path, 1]);
  }
}

const isCommit = (route: string) => /^(upload|upload_session\/finish(_batch_v2)?)$/.test(route);

test('share calls and commits, and never meet contention of their own making', async () => {
  const statuses = await writeAll({ 'latency-write-ms': 50, 'contention-hold-ms': 20 });
  const calls = upstream.take();
  await expectAllStored(statuses);
  // Each alone, 64 files would be 64 commits; a lone client's few among them are.
  expect(calls.filter(isCommit).length).toBeLessThanOrEqual(32);
  expect(calls.length).toBeLessThanOrEqual(64);
  expect(gateway.warnings.filter(({ reason }) => reason === 'contention')).toEqual([]);
});

test('are all stored, each once, over a rate limit', async () => {
  const statuses = await writeAll({
    'latency-write-ms': 20,
    'contention-hold-ms': 5,
    'rate-per-second': 12,
    'rate-burst': 6,
    'rate-text-share': 0.3,
  });
  await expectAllStored(statuses);
  expect(upstream.take()).toContain('upload_session/finish_batch_v2');
});

test.each(Array.from({ length: effort(1) }, (_, index) => index + 1))(
  'are all stored, each once, when answers are lost (seed %d)',
  async (seed) => {
    const statuses = await writeAll({
      'latency-write-ms': 20,
      'contention-hold-ms': 5,
      'lost-answer-share': 0.25,
      'error-write-share': 0.1,
      seed,
    });
    await expectAllStored(statuses);
    expect(upstream.take()).toContain('upload_session/finish_batch_v2');
  },
);

test('fall back to one call each when their sessions end before their commit', async () => {
  const statuses = await writeAll({ 'latency-write-ms': 20, 'session-lifetime-seconds': 0.001 });
  await expectAllStored(statuses);
});

test('have each its own outcome: who finds another file there is told, and the others are stored', async () => {
  await put(service, '/d/3', 'theirs');
  service.service.setFaults({ 'latency-write-ms': 50, 'contention-hold-ms': 5 });
  const statuses = await Promise.all(
    clients.map(async (client, number) => {
      const body = Buffer.from(`ours ${number}`);
      return (await client.send('PUT', `/d/${number}`, { ...CREATE, body })).status;
    }),
  );
  expect(statuses).toEqual([201, 201, 201, 412, 201, 201, 201, 201]);
  expect((await download(service, '/d/3')).text).toBe('theirs');
  expect((await download(service, '/d/4')).text).toBe('ours 4');
});

test('let one of several win that replace the same revision', async () => {
  const [first] = clients;
  const made = await first?.send('PUT', '/d/same', { body: Buffer.from('base') });
  const match = { headers: { 'if-match': String(made?.headers.etag) } };
  service.service.setFaults({ 'latency-write-ms': 50, 'contention-hold-ms': 5 });
  const writing = clients.map((client, number) =>
    Promise.all([
      client.send('PUT', '/d/same', { ...match, body: Buffer.from(`by ${number}`) }),
      client.send('PUT', `/d/own ${number}`, { body: Buffer.from('own') }),
    ]),
  );
  const statuses = (await Promise.all(writing)).map(([same, own]) => [same.status, own.status]);
  const winner = statuses.findIndex(([same]) => same === 204);
  expect(statuses).toEqual(clients.map((_, number) => [number === winner ? 204 : 412, 201]));
  expect((await download(service, '/d/same')).text).toBe(`by ${winner}`);
});

test('lose nothing when one client leaves in the middle of its body', async () => {
  service.service.setFaults({ 'latency-write-ms': 50, 'contention-hold-ms': 5 });
  const [leaver, ...others] = clients;
  const left = leaver?.send('PUT', '/d/left', { body: Buffer.alloc(10_000, 'x'), leaveAfterBytes: 5_000 });
  const stored = others.map(async (client, number) => {
    const body = Buffer.from(`ours ${number}`);
    return (await client.send('PUT', `/d/${number}`, { ...CREATE, body })).status;
  });
  await expect(left).rejects.toThrow('left');
  expect(new Set(await Promise.all(stored))).toEqual(new Set([201]));
  service.service.setFaults({});
  expect(await rpc(service, 'files/get_metadata', { path: '/d/left' })).toMatchObject({ status: 409 });
});

test('take turns with folders that are made, moved and deleted meanwhile', async () => {
  service.service.setFaults({ 'latency-write-ms': 20, 'contention-hold-ms': 20 });
  const work = clients.map(async (client, number) => {
    const folder = `/d/f${number}`;
    const moved = { headers: { destination: `${gateway.url}/d/g${number}` } };
    return [
      (await client.send('MKCOL', folder)).status,
      (await client.send('PUT', `${folder}/a`, { body: Buffer.from('a') })).status,
      (await client.send('MOVE', folder, moved)).status,
      (await client.send('PUT', `/d/g${number}/b`, { body: Buffer.from('b') })).status,
      (await client.send('DELETE', `/d/g${number}`)).status,
    ];
  });
  expect(await Promise.all(work)).toEqual(clients.map(() => [201, 201, 201, 201, 204]));
  expect(gateway.warnings.filter(({ reason }) => reason === 'contention')).toEqual([]);
});
