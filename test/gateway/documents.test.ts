import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type EditedService, startEditedService } from '../support/edited-service.ts';
import { GatewayClient, startTestGateway, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { download, put, rpc } from '../support/service-client.ts';

// Documents without bytes, like Google Docs and Paper: the service lists them with a size, and hands none of them out.

let service: TestService;
let edited: EditedService;
let gateway: TestGateway;
let client: GatewayClient;

/** Whether a part of an answer is the metadata of a document. */
function isDocument(value: unknown): value is object {
  if (typeof value !== 'object' || value === null || !('rev' in value) || !('name' in value)) return false;
  return String(value.name).endsWith('.gdoc');
}

beforeEach(async () => {
  service = await startTestService();
  for (const [path, content] of [
    ['/docs/empty.gdoc', ''],
    ['/docs/long.gdoc', '{"url":"https://docs.example/1"}'],
    ['/docs/none.txt', ''],
    ['/docs/plain.txt', 'text'],
  ] as const)
    await put(service, path, content);
  edited = await startEditedService(service.url);
  edited.edit = (_, answer) => {
    if (answer.headers['content-type'] !== 'application/json') return answer;
    const marked = JSON.parse(answer.text, (__, value) =>
      isDocument(value) ? { ...value, is_downloadable: false } : value,
    );
    return { ...answer, text: JSON.stringify(marked) };
  };
});
afterEach(async () => {
  client.close();
  await gateway.close();
  await edited.close();
  await service.close();
});

async function send(method: string, path: string, headers: Record<string, string> = {}, body?: string) {
  const answer = await client.send(method, path, {
    headers,
    ...(body !== undefined && { body: Buffer.from(body) }),
  });
  return { status: answer.status, text: answer.body.toString() };
}

describe.each([
  ['write-through', false],
  ['write-back', true],
])('a gateway with %s', (_, writeBack) => {
  beforeEach(async () => {
    const through = { ...service, url: edited.url };
    gateway = await startTestGateway({ service: through, writeBack, checksums: 'all' });
    client = new GatewayClient(gateway.url);
  });

  test.each(['/docs/empty.gdoc', '/docs/long.gdoc'])(
    'a document is listed and never read: %s',
    async (path) => {
      // Known from a lookup, and then from a listing.
      for (const round of ['lookup', 'listing']) {
        expect([round, await send('GET', path)]).toEqual([
          round,
          { status: 403, text: expect.stringContaining(`${path} is a document without bytes`) },
        ]);
        expect((await send('HEAD', path)).status).toBe(403);
        expect((await send('GET', path, { range: 'bytes=0-1' })).status).toBe(403);
        expect((await send('PROPFIND', '/docs/', { depth: '1' })).text).toContain(path);
      }
      expect(edited.routes).not.toContain('files/download');
    },
  );

  test('an empty file is read as before', async () => {
    expect(await send('GET', '/docs/none.txt')).toEqual({ status: 200, text: '' });
    expect((await send('HEAD', '/docs/plain.txt')).status).toBe(200);
  });

  test('a document is copied, moved and deleted, and is still a document then', async () => {
    expect((await send('COPY', '/docs/empty.gdoc', { destination: '/copy.gdoc' })).status).toBe(201);
    expect((await send('GET', '/copy.gdoc')).status).toBe(403);
    expect((await send('MOVE', '/copy.gdoc', { destination: '/moved.gdoc' })).status).toBe(201);
    expect((await send('GET', '/moved.gdoc')).status).toBe(403);
    expect((await send('DELETE', '/moved.gdoc')).status).toBe(204);
  });

  test('bytes are not appended to a document, and it stays as it is', async () => {
    const headers = { 'content-type': 'application/x-sabredav-partialupdate', 'x-update-range': 'append' };
    expect((await send('PATCH', '/docs/empty.gdoc', headers, 'more')).status).toBe(403);
    await gateway.landed();
    expect((await download(service, '/docs/empty.gdoc')).text).toBe('');
  });

  test('a document has no checksums', async () => {
    const asked =
      '<propfind xmlns="DAV:"><prop><checksums xmlns="http://owncloud.org/ns"/></prop></propfind>';
    const { text } = await send('PROPFIND', '/docs/empty.gdoc', { depth: '0' }, asked);
    expect(text).toContain('403 Forbidden');
    expect(text).not.toContain('SHA1');
  });

  test('a former version of a document is not read', async () => {
    const { json } = await rpc(service, 'files/get_metadata', { path: '/docs/empty.gdoc' });
    const { rev } = json as { rev: string };
    expect((await send('GET', `/.davgate/api/version?path=/docs/empty.gdoc&rev=${rev}`)).status).toBe(403);
  });

  test('an archive with a document in it is refused before its first byte, and one without it is not', async () => {
    const zip = (names: readonly string[]) => {
      const form = new URLSearchParams({ folder: '/docs', names: JSON.stringify(names) }).toString();
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      return send('POST', '/.davgate/api/zip', headers, form);
    };
    expect(await zip(['plain.txt', 'empty.gdoc'])).toEqual({
      status: 403,
      text: expect.stringContaining('/docs/empty.gdoc is a document without bytes'),
    });
    expect((await zip(['plain.txt', 'none.txt'])).status).toBe(200);
  });
});
