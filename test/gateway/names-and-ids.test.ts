import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { parseMultistatus } from '../support/multistatus.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, rpc, sharedLink } from '../support/service-client.ts';

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;
const closing: (() => unknown)[] = [];
async function closeAll(): Promise<void> {
  for (const close of closing.splice(0).reverse()) await close();
}

async function startGateway(): Promise<void> {
  gateway = await startTestGateway({ service });
  client = new GatewayClient(gateway.url);
  closing.push(
    () => client.close(),
    () => gateway.close(),
  );
}

async function startService(dataDirectory?: string): Promise<void> {
  service = await startTestService(dataDirectory === undefined ? {} : { dataDirectory });
  closing.push(() => service.close());
}

const ONE = 'id:AbCdEfGhIjKlMnOpQrStUv';
const OTHER = 'id:aBcDeFgHiJkLmNoPqRsTuV';

/** Sets the ids of files in the database of a stopped service, which would never make such similar ids itself. */
function setIds(dataDirectory: string, ids: Readonly<Record<string, string>>): void {
  const database = new Sqlite(join(dataDirectory, 'storage.sqlite'));
  for (const [path, id] of Object.entries(ids))
    for (const table of ['entry', 'revision'])
      database.prepare(`UPDATE ${table} SET id = ? WHERE path = ?`).run(id, path);
  database.close();
}

test('two files whose ids differ only in letter case keep their metadata, bytes, links and properties apart', async () => {
  onTestFinished(closeAll);
  await startService();
  await put(service, '/one', 'first');
  await put(service, '/other', 'second');
  await service.service.close();
  setIds(service.dataDirectory, { '/one': ONE, '/other': OTHER });
  await startService(service.dataDirectory);
  await startGateway();

  expect((await rpc(service, 'files/get_metadata', { path: ONE })).json).toMatchObject({
    name: 'one',
    id: ONE,
  });
  expect((await rpc(service, 'files/get_metadata', { path: OTHER })).json).toMatchObject({
    name: 'other',
    id: OTHER,
  });
  expect((await rpc(service, 'files/get_metadata', { path: ONE.toLowerCase() })).status).toBe(409);
  expect([(await download(service, ONE)).text, (await download(service, OTHER)).text]).toEqual([
    'first',
    'second',
  ]);

  const links = [await sharedLink(service, ONE), await sharedLink(service, OTHER)];
  expect(new Set(links).size).toBe(2);
  const listed = await rpc(service, 'sharing/list_shared_links', { path: OTHER, direct_only: true });
  expect(listed.json).toMatchObject({ links: [{ id: OTHER, name: 'other', url: links[1] }] });

  const xml = (value: string) =>
    Buffer.from(
      `<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><c xmlns="urn:x">${value}</c></D:prop></D:set></D:propertyupdate>`,
    );
  expect((await client.send('PROPPATCH', '/one', { body: xml('of one') })).status).toBe(207);
  expect((await client.send('PROPPATCH', '/other', { body: xml('of the other') })).status).toBe(207);
  const propfind = Buffer.from('<D:propfind xmlns:D="DAV:"><D:prop><c xmlns="urn:x"/></D:prop></D:propfind>');
  for (const [path, value] of [
    ['/one', 'of one'],
    ['/other', 'of the other'],
  ] as const) {
    const answer = await client.send('PROPFIND', path, { headers: { depth: '0' }, body: propfind });
    expect(answer.body.toString()).toContain(`>${value}<`);
  }
  expect((await client.send('DELETE', '/one')).status).toBe(204);
  expect((await client.send('GET', '/other')).body.toString()).toBe('second');
});

describe('a name that ends in white space', () => {
  beforeAll(async () => {
    await startService();
    await startGateway();
  });
  afterAll(closeAll);

  test.each(['%0A', '%0D', '%0D%0A', '%09', '%C2%A0', '%E3%80%80'])(
    'a file whose name ends in %s is written, listed, read, moved and deleted through WebDAV',
    async (encoded) => {
      const end = decodeURIComponent(encoded);
      const path = `/in${end}/x${end}`;
      expect((await client.send('MKCOL', `/in${end}`)).status).toBe(201);
      expect((await client.send('PUT', path, { body: Buffer.from('text') })).status).toBe(201);
      expect((await rpc(service, 'files/get_metadata', { path })).json).toMatchObject({ name: `x${end}` });
      const listing = await client.send('PROPFIND', `/in${end}/`, { headers: { depth: '1' } });
      const hrefs = (await parseMultistatus(listing.body.toString())).map(({ href }) => href);
      expect(hrefs).toContain(`/in${encoded}/x${encoded}`);
      expect((await client.send('GET', path)).body.toString()).toBe('text');
      const headers = { destination: `${gateway.url}/y${encoded}` };
      expect((await client.send('MOVE', path, { headers })).status).toBe(201);
      expect((await client.send('GET', `/y${end}`)).body.toString()).toBe('text');
      expect((await client.send('DELETE', `/y${end}`)).status).toBe(204);
      expect((await client.send('GET', `/y${end}`)).status).toBe(404);
    },
  );
});
