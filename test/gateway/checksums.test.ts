import { createHash } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { silentLog } from '../../src/util/log.ts';
import { eventually } from '../support/eventually.ts';
import {
  GatewayClient,
  type GatewayOptions,
  startTestGateway,
  type TestGateway,
} from '../support/gateway.ts';
import { parseMultistatus } from '../support/multistatus.ts';
import { temporaryDirectory } from '../support/program.ts';
import { startRedis } from '../support/redis.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put } from '../support/service-client.ts';
import { startSharedGateway } from '../support/shared-gateway.ts';
import { UpstreamCalls } from '../support/upstream-calls.ts';

// `--checksums all` over a real service: what is read from it, and where the checksums are kept.

const NAMED = '<propfind xmlns="DAV:"><prop><checksums xmlns="http://owncloud.org/ns"/></prop></propfind>';

const checksumsOf = (text: string) =>
  ['SHA1', 'MD5'].map((name) => `${name}:${createHash(name).update(text).digest('hex')}`).join(' ');

let service: TestService;
let calls: UpstreamCalls;
/** Close what the test has started, in order. */
let closers: (() => Promise<void>)[];

beforeEach(async () => {
  service = await startTestService();
  calls = new UpstreamCalls(service.url);
  closers = [];
});
afterEach(async () => {
  for (const close of closers.reverse()) await close();
  calls.close();
  await service.close();
});

async function start(
  options: Partial<GatewayOptions> = {},
): Promise<TestGateway & { readonly client: GatewayClient }> {
  const gateway = await startTestGateway({ service, checksums: 'all', ...options });
  const client = new GatewayClient(gateway.url);
  closers.push(async () => {
    client.close();
    await gateway.close();
  });
  return { ...gateway, client };
}

async function shownAt(client: GatewayClient, target: string, user = ''): Promise<string | undefined> {
  const { body } = await client.send('PROPFIND', target, {
    headers: { depth: '0', 'x-test-user': user },
    body: Buffer.from(NAMED),
  });
  const [row] = await parseMultistatus(body.toString());
  return row?.properties.get('{http://owncloud.org/ns}checksums')?.text;
}

/** Returns the number of downloads from the service since the last call. */
const downloads = () => calls.take().filter((route) => route === 'download').length;

test('checksums of a file at the service are computed with one download, and kept over a restart and a move', async () => {
  const directory = await temporaryDirectory();
  closers.push(directory.remove);
  await put(service, '/a.txt', 'hello');
  const first = await startTestGateway({ service, checksums: 'all', directory: directory.path });
  const client = new GatewayClient(first.url);
  expect(await shownAt(client, '/a.txt')).toBe(checksumsOf('hello'));
  expect(downloads()).toBe(1);
  await client.send('MOVE', '/a.txt', { headers: { destination: '/b.txt' } });
  await client.send('COPY', '/b.txt', { headers: { destination: '/c.txt' } });
  client.close();
  await first.close();
  await rm(join(directory.path, 'cache'), { recursive: true });
  const second = await start({ directory: directory.path });
  for (const name of ['/b.txt', '/c.txt'])
    expect(await shownAt(second.client, name)).toBe(checksumsOf('hello'));
  expect(downloads()).toBe(0);
  await put(service, '/b.txt', 'other');
  await eventually(async () => expect(await shownAt(second.client, '/b.txt')).toBe(checksumsOf('other')));
});

test('an upload is not downloaded for its checksums, neither as a pending write nor after it has landed', async () => {
  const { client, landed } = await start({ writeBack: true });
  service.service.setFaults({ 'error-write-share': 1 });
  await client.send('PUT', '/a.txt', { body: Buffer.from('hello') });
  expect(await shownAt(client, '/a.txt')).toBe(checksumsOf('hello'));
  service.service.setFaults({});
  await landed();
  expect(await shownAt(client, '/a.txt')).toBe(checksumsOf('hello'));
  expect(downloads()).toBe(0);
});

test('a local file has checksums, which are forgotten with it', async () => {
  const { client, idsWithProperties } = await start();
  await client.send('PUT', '/._a', { body: Buffer.from('first') });
  expect(await shownAt(client, '/._a')).toBe(checksumsOf('first'));
  await client.send('PUT', '/._a', { body: Buffer.from('second') });
  expect(await shownAt(client, '/._a')).toBe(checksumsOf('second'));
  expect(downloads()).toBe(0);
  await client.send('DELETE', '/._a');
  expect(await idsWithProperties()).toEqual([]);
});

test('checksums that a user with a folder of the drive has asked for are there for all others', async () => {
  const { client } = await start({
    views: { ann: [{ at: '/', root: '/Homes/ann', isReadOnly: true }] },
  });
  await put(service, '/Homes/ann/a.txt', 'hello');
  await eventually(async () => expect(await shownAt(client, '/a.txt', 'ann')).toBe(checksumsOf('hello')));
  service.service.setFaults({ 'error-read-share': 1 });
  calls.take();
  expect(await shownAt(client, '/Homes/ann/a.txt')).toBe(checksumsOf('hello'));
  expect(downloads()).toBe(0);
});

test('gateways on one Redis share checksums, whichever of them has computed them', async () => {
  const [redis, directory] = await Promise.all([startRedis(), temporaryDirectory()]);
  closers.push(async () => {
    await redis.close();
    await directory.remove();
  });
  const clients = await Promise.all(
    ['a', 'b'].map(async (name) => {
      const parts = { service, redis, directory: join(directory.path, name), log: silentLog };
      const gateway = await startSharedGateway({ ...parts, checksums: 'all' });
      const client = new GatewayClient(gateway.url.replace(/\/$/, ''));
      closers.push(async () => {
        client.close();
        await gateway.close();
      });
      return client;
    }),
  );
  await put(service, '/elsewhere.txt', 'hello');
  const [one, other] = clients;
  if (!one || !other) throw new Error('there are two gateways');
  await eventually(async () => expect(await shownAt(one, '/elsewhere.txt')).toBe(checksumsOf('hello')));
  await one.send('PUT', '/uploaded.txt', { body: Buffer.from('text') });
  calls.take();
  expect(await shownAt(other, '/elsewhere.txt')).toBe(checksumsOf('hello'));
  expect(await shownAt(other, '/uploaded.txt')).toBe(checksumsOf('text'));
  expect(downloads()).toBe(0);
});
