import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { type GatedService, startGatedService } from '../support/gated-service.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc, storedPaths } from '../support/service-client.ts';

// A COPY or MOVE onto an existing file first gives that file a hidden name. Meanwhile somebody else moves the folder around it.

let service: TestService;
let gated: GatedService;
let clock: ManualClock;
let gateway: TestGateway;
let client: GatewayClient;

async function open() {
  gateway = await startTestGateway({ service: { ...service, url: gated.url }, clock });
  client = new GatewayClient(gateway.url);
}

async function close() {
  client.close();
  await clock.during(gateway.close());
}

beforeEach(async () => {
  service = await startTestService();
  gated = await startGatedService(service.url);
  clock = new ManualClock();
  await open();
});
afterEach(async () => {
  await close();
  await gated.end();
  await service.close();
});

/** Lets time pass, in steps of a second, until `check` passes. */
const inTime = (check: () => unknown) =>
  eventually(async () => {
    await clock.advance(1_000);
    await check();
  });

const send = async (method: string, path: string, headers = {}, text = '') => {
  const sent = client.send(method, path, { headers, body: Buffer.from(text) });
  const { status, body } = await clock.duringSlowly(sent);
  return { status, text: body.toString() };
};

const shown = async (folder: string) => {
  const { text } = await send('PROPFIND', folder, { depth: '1' });
  return [...text.matchAll(/<D:href>([^<]*)/g)].map(([, href = '']) => decodeURI(href)).slice(1);
};

/** Does `meanwhile` at the service while a copy of `/new` replaces `/d/a`, which is hidden then. */
async function replaceDuring(meanwhile: () => Promise<unknown>) {
  await put(service, '/d/a', 'old');
  await put(service, '/new', 'new');
  const gate = gated.close('copy_v2');
  const replaced = send('COPY', '/new', { destination: '/d/a' });
  await gate.reached;
  await meanwhile();
  gate.open();
  return await replaced;
}

const moveFolder = () => rpc(service, 'files/move_v2', { from_path: '/d', to_path: '/e' });
const hiddenPaths = async () => (await storedPaths(service)).filter((path) => path.includes('.davgate-'));

describe('a folder moved by somebody else in the middle of a replacement', () => {
  test('keeps the replaced file under its own name', async () => {
    expect((await replaceDuring(moveFolder)).status).toBe(204);
    await inTime(async () => expect(await shown('/e/')).toEqual(['/e/a']));
    expect((await send('GET', '/e/a')).text).toBe('old');
    expect((await send('GET', '/d/a')).text).toBe('new');
    expect(await storedPaths(service)).toEqual(['/d/', '/d/a', '/e/', '/e/a', '/new']);
  });

  test('keeps the replaced file under a free name if its own is taken', async () => {
    await replaceDuring(async () => {
      await moveFolder();
      await put(service, '/e/a', 'another');
    });
    await inTime(async () => expect(await shown('/e/')).toEqual(['/e/a', '/e/a (1)']));
    expect((await send('GET', '/e/a')).text).toBe('another');
    expect((await send('GET', '/e/a (1)')).text).toBe('old');
    expect(await hiddenPaths()).toEqual([]);
  });

  test('keeps the replaced file also if the gateway restarts before it has recovered it', async () => {
    await replaceDuring(moveFolder);
    await close();
    expect(await hiddenPaths()).toHaveLength(1);
    await open();
    expect(await shown('/e/')).toEqual([]);
    await inTime(async () => expect(await shown('/e/')).toEqual(['/e/a']));
    expect((await send('GET', '/e/a')).text).toBe('old');
  });
});

test('a replacement that takes ten minutes is not undone', async () => {
  const { status } = await replaceDuring(async () => {
    for (let second = 0; second < 600; second++) {
      await clock.advance(1_000);
      if (second % 60 === 0) expect(await hiddenPaths()).toHaveLength(1);
    }
  });
  expect(status).toBe(204);
  expect((await send('GET', '/d/a')).text).toBe('new');
  expect(await storedPaths(service)).toEqual(['/d/', '/d/a', '/new']);
});
