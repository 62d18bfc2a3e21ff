import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { FaultSettings } from '../../src/service/faults/switches.ts';
import { effort } from '../support/effort.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, rpc } from '../support/service-client.ts';
import { UpstreamCalls } from '../support/upstream-calls.ts';

/** Number of clients that write small files at once. */
const CLIENTS = 8;

/** One service for all tests. The drive of each is a folder of its own, `root`. */
let service: TestService;
let root: string;
let roots = 0;
let gateway: TestGateway;
let clients: GatewayClient[];
let upstream: UpstreamCalls;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

beforeEach(async () => {
  root = `/root-${++roots}`;
  await rpc(service, 'files/create_folder_v2', { path: root });
  upstream = new UpstreamCalls(service.url);
  gateway = await startTestGateway({ service, root });
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
});

const textOf = (path: string) => `the content of ${path}`;
const CREATE = { headers: { 'if-none-match': '*' } };

/** Lets all clients write at once, each one file after the other. Returns the statuses of the answers by path. */
async function writeAll(faults: FaultSettings, filesEach = 4): Promise<ReadonlyMap<string, number>> {
  service.service.setFaults(faults);
  const statuses = new Map<string, number>();
  const writing = clients.map(async (client, number) => {
    for (let file = 0; file < filesEach; file += 1) {
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
  const { json } = await rpc(service, 'files/list_revisions', { path: root + path });
  return (json as { entries: unknown[] }).entries.length;
}

/** Checks that each file was answered with 201, is stored byte for byte, and was committed once. */
async function expectAllStored(statuses: ReadonlyMap<string, number>): Promise<void> {
  expect([...statuses.values()].filter((status) => status !== 201)).toEqual([]);
  for (const path of statuses.keys()) {
    expect((await download(service, root + path)).text).toBe(textOf(path));
    expect([path, await revisionsOf(path)]).toEqual([path, 1]);
  }
}

const isCommit = (route: string) => /^(upload|upload_session\/finish(_batch_v2)?)$/.test(route);

test('small files written at once share API calls and commits, and cause no write contention', async () => {
  const statuses = await writeAll({ 'latency-write-ms': 50, 'contention-hold-ms': 20 }, 8);
  const calls = upstream.take();
  await expectAllStored(statuses);
  // One by one, 64 files would take 64 commits.
  expect(calls.filter(isCommit).length).toBeLessThanOrEqual(32);
  expect(calls.length).toBeLessThanOrEqual(64);
  expect(gateway.warnings.filter(({ reason }) => reason === 'contention')).toEqual([]);
});

test('small files written at once under a rate limit are all stored, each once', async () => {
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
  'small files written at once are all stored, each once, when answers are lost (seed %d)',
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

test.each([
  ['their bytes are appended', 'upload_session/append_batch'],
  ['they are finished', 'upload_session/finish_batch_v2'],
])(
  'small files written at once are stored by uploads of their own, each once, when their upload sessions end before %s',
  async (_, route) => {
    const faults = { 'latency-write-ms': 20, 'contention-hold-ms': 5 };
    upstream.onCall = (called) => {
      // Turned on before the call is sent.
      if (called === route) service.service.setFaults({ ...faults, 'session-lifetime-seconds': 0.001 });
    };
    const statuses = await writeAll(faults);
    const calls = upstream.take();
    await expectAllStored(statuses);
    expect(calls).toContain(route);
    expect(calls.filter((call) => call === 'upload').length).toBeGreaterThanOrEqual(statuses.size);
  },
);

test('of small files written at once with If-None-Match: *, the one whose path exists answers 412 and the others are stored', async () => {
  await put(service, `${root}/d/3`, 'theirs');
  service.service.setFaults({ 'latency-write-ms': 50, 'contention-hold-ms': 5 });
  const statuses = await Promise.all(
    clients.map(async (client, number) => {
      const body = Buffer.from(`ours ${number}`);
      return (await client.send('PUT', `/d/${number}`, { ...CREATE, body })).status;
    }),
  );
  expect(statuses).toEqual([201, 201, 201, 412, 201, 201, 201, 201]);
  expect((await download(service, `${root}/d/3`)).text).toBe('theirs');
  expect((await download(service, `${root}/d/4`)).text).toBe('ours 4');
});

test('of eight PUTs at once with the same If-Match, one replaces the file and the others answer 412', async () => {
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
  expect((await download(service, `${root}/d/same`)).text).toBe(`by ${winner}`);
});

test('small files are stored when another client disconnects in the middle of its body, and its file is not', async () => {
  service.service.setFaults({ 'latency-write-ms': 50, 'contention-hold-ms': 5 });
  const [disconnecting, ...others] = clients;
  const left = disconnecting?.send('PUT', '/d/left', {
    body: Buffer.alloc(10_000, 'x'),
    leaveAfterBytes: 5_000,
  });
  const stored = others.map(async (client, number) => {
    const body = Buffer.from(`ours ${number}`);
    return (await client.send('PUT', `/d/${number}`, { ...CREATE, body })).status;
  });
  await expect(left).rejects.toThrow('left');
  expect(new Set(await Promise.all(stored))).toEqual(new Set([201]));
  service.service.setFaults({});
  expect(await rpc(service, 'files/get_metadata', { path: `${root}/d/left` })).toMatchObject({ status: 409 });
});

test('small files and changes to folders at once succeed without write contention', async () => {
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
