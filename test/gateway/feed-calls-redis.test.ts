import { expect, test } from 'vitest';
import { expectSoon } from '../support/eventually.ts';
import { startGatedService } from '../support/gated-service.ts';
import { startRedisGateways } from '../support/redis-gateways.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';

/** A change that somebody makes at the service. Returns whether a listing shows it. */
type Change = (service: TestService) => Promise<(listing: string) => boolean>;

const has = (text: string) => (listing: string) => listing.includes(text);

const write = async (service: TestService, path: string, text: string) =>
  has(String((await put(service, path, text))['rev']));

const CHANGES: readonly Change[] = [
  (service) => write(service, '/file', 'new'),
  (service) => write(service, '/file', 'changed'),
  async (service) => {
    await rpc(service, 'files/create_folder_v2', { path: '/folder' });
    return has('<D:href>/folder/<');
  },
  async (service) => {
    await rpc(service, 'files/move_v2', { from_path: '/file', to_path: '/moved' });
    return has('<D:href>/moved<');
  },
  async (service) => {
    await rpc(service, 'files/delete_v2', { path: '/moved' });
    return (listing) => !listing.includes('/moved');
  },
];

/** Returns the calls with which `count` gateways learn of each change and show it to their clients, sorted. */
async function callsOf(count: number): Promise<readonly (readonly string[])[]> {
  const service = await startTestService();
  const gated = await startGatedService(service.url);
  const gateways = await startRedisGateways({ ...service, url: gated.url }, count);
  try {
    const shown = () =>
      Promise.all(
        gateways.clients.map(async (client) =>
          (await client.send('PROPFIND', '/', { headers: { depth: '1' } })).body.toString(),
        ),
      );
    const untilFollowed = () => expectSoon(() => gated.waiting('longpoll')).toBe(1);
    await shown();
    await untilFollowed();
    await shown();
    gated.take();
    const calls: string[][] = [];
    for (const change of CHANGES) {
      const isShown = await change(service);
      await expectSoon(async () => (await shown()).every(isShown)).toBe(true);
      await untilFollowed();
      calls.push([...gated.take()].sort());
    }
    return calls;
  } finally {
    await gateways.close();
    await gated.end();
    await service.close();
  }
}

test('a change made elsewhere costs two calls of the service until all gateways show it, whether there are one or four', async () => {
  const expected = CHANGES.map(() => ['continue', 'longpoll']);
  expect(await callsOf(1)).toEqual(expected);
  expect(await callsOf(4)).toEqual(expected);
});
