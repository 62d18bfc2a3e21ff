import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { effort, testSeed } from '../support/effort.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { parseMultistatus } from '../support/multistatus.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, rpc } from '../support/service-client.ts';

let service: TestService;
const closers: (() => unknown)[] = [];
beforeEach(async () => {
  service = await startTestService();
  closers.push(() => service.close());
});
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startGateway(
  names: 'mapped' | 'strict' = 'mapped',
): Promise<{ readonly client: GatewayClient; readonly gateway: TestGateway }> {
  const gateway = await startTestGateway({ service, names });
  const client = new GatewayClient(gateway.url);
  closers.push(
    () => gateway.close(),
    () => client.close(),
  );
  return { client, gateway };
}

/** Returns the names of the members of a folder in the drive. */
async function namesIn(client: GatewayClient, folder: string): Promise<readonly string[]> {
  const { body } = await client.send('PROPFIND', folder, { headers: { depth: '1' } });
  const rows = await parseMultistatus(body.toString());
  const hrefs = rows.map(({ href }) => href.replace(/\/$/, ''));
  return hrefs
    .slice(1)
    .map((href) => decodeURIComponent(href.slice(href.lastIndexOf('/') + 1)))
    .sort();
}

async function namesAtService(path: string): Promise<readonly string[]> {
  const { json } = await rpc(service, 'files/list_folder', { path });
  return (json as { entries: readonly { name: string }[] }).entries.map(({ name }) => name).sort();
}

const CHARACTERS = ['\\', '\x7f', ' ', '＼', '␡', '␠', '‛', 'a', 'B', '.', 'é', '😀', '\n', "'"];
const NAME = fc
  .oneof(
    fc.array(fc.constantFrom(...CHARACTERS), { minLength: 1, maxLength: 6 }).map((all) => all.join('')),
    fc.constantFrom('.dropbox', '.Dropbox.cache', '‛.dropbox', '.dropbox.attr'),
  )
  .filter((name) => !/^\.\.?$/.test(name));

/** Returns names that differ in more than the letter case. */
function oddNames(count: number, seed: number): readonly string[] {
  const sample = fc.sample(NAME, { numRuns: count, seed });
  return [...new Map(sample.map((name) => [name.normalize('NFC').toLowerCase(), name])).values()];
}

test('files and folders with names that the service does not take are made, listed, read, renamed and deleted', async () => {
  const seed = testSeed();
  const { client, gateway } = await startGateway();
  const names = oddNames(effort(60), seed);
  const sorted = [...names].sort();
  for (const name of names) {
    expect((await client.send('MKCOL', `/${name}`)).status, `${name} (seed ${seed})`).toBe(201);
    const file = { body: Buffer.from(name) };
    expect((await client.send('PUT', `/${name}/${name}`, file)).status, name).toBe(201);
  }
  expect(await namesIn(client, '/'), `seed ${seed}`).toEqual(sorted);
  // Another gateway knows the names from the service alone.
  const other = await startGateway();
  expect(await namesIn(other.client, '/'), `seed ${seed}`).toEqual(sorted);
  for (const name of names) {
    const file = await other.client.send('GET', `/${name}/${name}`);
    expect(file.body.toString(), `seed ${seed}`).toBe(name);
    const headers = {
      destination: `${gateway.url}/${encodeURIComponent(name)}/${encodeURIComponent(`x${name}`)}`,
    };
    expect((await client.send('MOVE', `/${name}/${name}`, { headers })).status, name).toBe(201);
    expect(await namesIn(client, `/${name}/`), `seed ${seed}`).toEqual([`x${name}`]);
    expect((await client.send('DELETE', `/${name}`)).status, name).toBe(204);
  }
  expect(await namesIn(client, '/')).toEqual([]);
  expect(await namesAtService('')).toEqual([]);
});

test('a name is written at the service as rclone writes it, and one that rclone has written is shown as it was', async () => {
  const { client } = await startGateway();
  for (const name of ['back\\slash', 'blank ', 'del\x7f', 'full＼width'])
    await client.send('PUT', `/${name}`, { body: Buffer.from('text') });
  expect(await namesAtService('')).toEqual(['back＼slash', 'blank␠', 'del␡', 'full‛＼width']);
  await put(service, '/of ＼ rclone␠', 'text');
  const other = await startGateway();
  expect((await other.client.send('GET', '/of \\ rclone ')).body.toString()).toBe('text');
});

describe('names that are not UTF-8', () => {
  const send = async (gateway: TestGateway, method: string, target: string, init: RequestInit = {}) => {
    const answer = await fetch(`${gateway.url}${target}`, { method, ...init });
    return { status: answer.status, text: await answer.text() };
  };
  const hrefsIn = async (gateway: TestGateway, folder: string) => {
    const { text } = await send(gateway, 'PROPFIND', folder, { headers: { depth: 'infinity' } });
    return (await parseMultistatus(text)).map(({ href }) => href);
  };
  // The last one is the text that the first one has at the service.
  const NAMES = ['caf%E9', '%FF', '%C3%C3%A9', '%C0%AE%C0%AE', 'caf%E2%80%9BE9'];

  test('files and folders with such names are made, listed, read, renamed and deleted, here and at another gateway', async () => {
    const { gateway } = await startGateway();
    for (const name of NAMES) {
      expect((await send(gateway, 'MKCOL', `/${name}/`)).status, name).toBe(201);
      expect((await send(gateway, 'PUT', `/${name}/${name}`, { body: name })).status, name).toBe(201);
    }
    const expected = ['/', ...NAMES.flatMap((name) => [`/${name}/`, `/${name}/${name}`])].sort();
    expect((await hrefsIn(gateway, '/')).sort()).toEqual(expected);
    const other = await startGateway();
    expect((await hrefsIn(other.gateway, '/')).sort()).toEqual(expected);
    for (const name of NAMES) {
      expect((await send(other.gateway, 'GET', `/${name}/${name}`)).text).toBe(name);
      const headers = { destination: `${gateway.url}/${name}/x${name}` };
      expect((await send(gateway, 'MOVE', `/${name}/${name}`, { headers })).status, name).toBe(201);
      expect(await hrefsIn(gateway, `/${name}/`)).toEqual([`/${name}/`, `/${name}/x${name}`]);
      expect((await send(gateway, 'DELETE', `/${name}/`)).status).toBe(204);
    }
    expect(await namesAtService('')).toEqual([]);
  });

  test('a byte is written at the service as rclone writes it, and text that looks like it with one more quote', async () => {
    const { gateway } = await startGateway();
    for (const name of ['caf%E9', 'caf%E2%80%9BE9']) await send(gateway, 'PUT', `/${name}`, { body: name });
    expect(await namesAtService('')).toEqual(['caf‛E9', 'caf‛‛E9']);
    await put(service, '/of rclone ‛FE', 'text');
    const other = await startGateway();
    expect((await send(other.gateway, 'GET', '/of%20rclone%20%FE')).text).toBe('text');
  });
});

describe('with --names strict', () => {
  test.each(['back\\slash', 'blank ', 'del\x7f', '.dropbox', 'a'.repeat(256)])(
    'a file named %j is refused with 403 and the precondition name-allowed, and nothing is stored',
    async (name) => {
      const { client } = await startGateway('strict');
      const { status, body } = await client.send('PUT', `/${name}`, { body: Buffer.from('text') });
      expect([status, body.toString()]).toEqual([403, expect.stringContaining('<D:name-allowed/>')]);
      expect(await namesAtService('')).toEqual([]);
    },
  );

  test('names at the service are shown as they are', async () => {
    await put(service, '/back＼slash', 'text');
    const { client } = await startGateway('strict');
    expect(await namesIn(client, '/')).toEqual(['back＼slash']);
    expect((await download(service, '/back＼slash')).text).toBe('text');
  });
});
