import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { GatewayClient, startTestGateway, TEST_MS, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { rpc, upload } from '../support/service-client.ts';
import { UpstreamCalls } from '../support/upstream-calls.ts';

/** What each request costs in calls of the service, through real HTTP, with the folder known. */
let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;
let upstream: UpstreamCalls;

beforeEach(async () => {
  service = await startTestService();
  upstream = new UpstreamCalls(service.url);
  gateway = await startTestGateway({ service, holdMs: TEST_MS });
  await gateway.following();
  client = new GatewayClient(gateway.url);
  expect((await client.send('MKCOL', '/d')).status).toBe(201);
  expect((await client.send('PROPFIND', '/d/', DEPTH_1)).status).toBe(207);
  upstream.take();
});
afterEach(async () => {
  client.close();
  upstream.close();
  await gateway.close();
  await service.close();
});

interface Step {
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** One request, which has to be answered with `status`. */
async function ask(status: number, method: string, path: string, { headers = {}, body }: Step = {}) {
  const answer = await client.send(method, path, {
    headers,
    ...(body !== undefined && { body: Buffer.from(body) }),
  });
  expect([method, path, answer.status, String(answer.body)]).toMatchObject([method, path, status, {}]);
  return answer;
}

/** Of one client, at once. */
const CONNECTIONS = 50;

/** Makes a folder of files, past the gateway: the name of each is its content. */
async function fill(folder: string, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, index) => String(index));
  const begin = async (name: string) => {
    const { json } = await upload(service, 'files/upload_session/start', { close: true }, { body: name });
    return (json as { session_id: string }).session_id;
  };
  const sessions: string[] = [];
  // A listening socket of a busy process takes no thousand connections at once.
  for (let from = 0; from < count; from += CONNECTIONS)
    sessions.push(...(await Promise.all(names.slice(from, from + CONNECTIONS).map(begin))));
  const entries = names.map((name, index) => ({
    cursor: { session_id: sessions[index], offset: name.length },
    commit: { path: `${folder}/${name}` },
  }));
  const { status } = await rpc(service, 'files/upload_session/finish_batch_v2', { entries });
  expect(status).toBe(200);
}

const DEPTH_1 = { headers: { depth: '1' } };

const to = (path: string) => ({ headers: { destination: `${gateway.url}${path}` } });

describe('one request is at most one call', () => {
  test('HEAD and PROPFIND of what is known, or known to be missing, are none', async () => {
    await ask(201, 'PUT', '/d/a', { body: 'one' });
    upstream.take();
    await ask(200, 'HEAD', '/d/a');
    await ask(404, 'HEAD', '/d/missing');
    await ask(207, 'PROPFIND', '/d/', DEPTH_1);
    expect(upstream.take()).toEqual([]);
  });

  test('PUT, MKCOL, MOVE, COPY and DELETE are one', async () => {
    await ask(201, 'PUT', '/d/a', { body: 'one' });
    expect(upstream.take()).toEqual(['upload']);
    await ask(204, 'PUT', '/d/a', { body: 'two' });
    expect(upstream.take()).toEqual(['upload']);
    await ask(201, 'MKCOL', '/d/sub');
    expect(upstream.take()).toEqual(['create_folder_v2']);
    await ask(201, 'MOVE', '/d/a', to('/d/b'));
    expect(upstream.take()).toEqual(['move_v2']);
    await ask(201, 'COPY', '/d/b', to('/d/sub/c'));
    expect(upstream.take()).toEqual(['copy_v2']);
    await ask(204, 'DELETE', '/d/b');
    expect(upstream.take()).toEqual(['permanently_delete']);
  });

  test('MOVE, COPY and DELETE of a folder of 1,000 files too', async () => {
    await fill('/d/many', 1000);
    await eventually(async () => expect((await client.send('HEAD', '/d/many/999')).status).toBe(200));
    await ask(207, 'PROPFIND', '/d/many/', DEPTH_1);
    upstream.take();
    await ask(201, 'COPY', '/d/many', to('/d/copy'));
    expect(upstream.take()).toEqual(['copy_v2']);
    await ask(201, 'MOVE', '/d/many', to('/d/moved'));
    expect(upstream.take()).toEqual(['move_v2']);
    await ask(204, 'DELETE', '/d/moved');
    expect(upstream.take()).toEqual(['permanently_delete']);
    expect((await ask(200, 'GET', '/d/copy/999')).body.toString()).toBe('999');
  });

  test('COPY of a folder that was never listed too, while nothing is kept beside the files', async () => {
    await fill('/d/many', 20);
    const shownIn = async (folder: string) => String((await ask(207, 'PROPFIND', folder, DEPTH_1)).body);
    await eventually(async () => expect(await shownIn('/d/')).toContain('/d/many/'));
    upstream.take();
    await ask(201, 'COPY', '/d/many', to('/d/copy'));
    expect(upstream.take()).toEqual(['copy_v2']);
    expect((await ask(200, 'GET', '/d/copy/19')).body.toString()).toBe('19');
    await ask(207, 'PROPPATCH', '/d/many/7', { body: WIN32_TIMES });
    await ask(201, 'COPY', '/d/many', to('/d/kept'));
    const shown = await ask(207, 'PROPFIND', '/d/kept/7', { headers: { depth: '0' } });
    expect(shown.body.toString()).toContain('Thu, 05 Mar 2026 10:00:00 GMT');
  });

  test('PROPPATCH of times is none', async () => {
    await ask(201, 'PUT', '/d/a', { body: 'one' });
    upstream.take();
    await ask(207, 'PROPPATCH', '/d/a', { body: WIN32_TIMES });
    expect(upstream.take()).toEqual([]);
    const shown = await ask(207, 'PROPFIND', '/d/a', { headers: { depth: '0' } });
    expect(shown.body.toString()).toContain('Thu, 05 Mar 2026 10:00:00 GMT');
    expect(upstream.take()).toEqual([]);
  });
});

const LOCK = `<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
<D:locktype><D:write/></D:locktype><D:owner><D:href>http://www.apple.com/webdav_fs/</D:href></D:owner></D:lockinfo>`;

const WIN32_TIMES = `<?xml version="1.0"?><D:propertyupdate xmlns:D="DAV:" xmlns:Z="urn:schemas-microsoft-com:">
<D:set><D:prop><Z:Win32CreationTime>Thu, 05 Mar 2026 10:00:00 GMT</Z:Win32CreationTime>
<Z:Win32LastAccessTime>Thu, 05 Mar 2026 10:00:00 GMT</Z:Win32LastAccessTime>
<Z:Win32LastModifiedTime>Thu, 05 Mar 2026 10:00:00 GMT</Z:Win32LastModifiedTime>
<Z:Win32FileAttributes>00000000</Z:Win32FileAttributes></D:prop></D:set></D:propertyupdate>`;

describe('a create in two halves is one call', () => {
  const finder = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/23.4.0 (arm64)' };
  const explorer = { 'user-agent': 'Microsoft-WebDAV-MiniRedir/10.0.19045', translate: 'f' };
  const lockHeaders = { timeout: 'Second-600', 'content-type': 'text/xml' };

  /** Takes the lock; the header `If` with its token. */
  async function lock(status: number, path: string, headers: Record<string, string>) {
    const answer = await ask(status, 'LOCK', path, { headers: { ...headers, ...lockHeaders }, body: LOCK });
    const token = String(answer.headers['lock-token']);
    return { token, held: { ...headers, if: `(${token})` } };
  }

  const stored = async (path: string, text: string) => {
    upstream.take();
    expect((await ask(200, 'GET', path)).body.toString()).toBe(text);
  };

  test("Finder's: PROPFIND, empty PUT, LOCK, PROPFIND, PUT, UNLOCK", async () => {
    await ask(404, 'PROPFIND', '/d/new', { headers: { ...finder, depth: '0' } });
    await ask(201, 'PUT', '/d/new', { headers: { ...finder, 'content-length': '0' } });
    const { token, held } = await lock(200, '/d/new', { ...finder, depth: '0' });
    await ask(207, 'PROPFIND', '/d/new', { headers: { ...finder, depth: '0' } });
    await ask(204, 'PUT', '/d/new', { headers: held, body: 'the body' });
    await ask(207, 'PROPFIND', '/d/new', { headers: { ...finder, depth: '0' } });
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...finder, 'lock-token': token } });
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', 'the body');
  });

  test("Finder's with LOCK first, and its litter beside it", async () => {
    await ask(404, 'PROPFIND', '/d/new', { headers: { ...finder, depth: '0' } });
    const { token, held } = await lock(201, '/d/new', { ...finder, depth: '0' });
    await ask(404, 'PROPFIND', '/d/._new', { headers: { ...finder, depth: '0' } });
    await ask(201, 'PUT', '/d/._new', { headers: finder, body: 'a resource fork' });
    await ask(204, 'PUT', '/d/new', { headers: held, body: 'the body' });
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...finder, 'lock-token': token } });
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', 'the body');
  });

  test("Explorer's: PROPFIND, empty PUT, LOCK, PROPPATCH, HEAD, PUT, PROPPATCH, UNLOCK", async () => {
    await ask(404, 'PROPFIND', '/d/new', { headers: { ...explorer, depth: '0' } });
    await ask(207, 'PROPFIND', '/d/', { headers: { ...explorer, depth: '1' } });
    await ask(201, 'PUT', '/d/new', { headers: { ...explorer, 'content-length': '0' } });
    const { token, held } = await lock(200, '/d/new', explorer);
    await ask(207, 'PROPPATCH', '/d/new', { headers: held, body: WIN32_TIMES });
    await ask(200, 'HEAD', '/d/new', { headers: explorer });
    await ask(204, 'PUT', '/d/new', { headers: held, body: 'the body' });
    await ask(207, 'PROPPATCH', '/d/new', { headers: held, body: WIN32_TIMES });
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...explorer, 'lock-token': token } });
    const shown = await ask(207, 'PROPFIND', '/d/new', { headers: { ...explorer, depth: '0' } });
    expect(shown.body.toString()).toContain('Thu, 05 Mar 2026 10:00:00 GMT');
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', 'the body');
  });

  test("davfs2's: LOCK that makes the file, PUT under it, UNLOCK", async () => {
    const davfs2 = { 'user-agent': 'davfs2/1.7.0 neon/0.34.0' };
    const { token, held } = await lock(201, '/d/new', { ...davfs2, depth: '0', 'if-none-match': '*' });
    const { 'if-none-match': _, ...without } = held as Record<string, string>;
    await ask(204, 'PUT', '/d/new', { headers: without, body: 'the body' });
    await ask(200, 'HEAD', '/d/new', { headers: davfs2 });
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...davfs2, 'lock-token': token } });
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', 'the body');
  });

  test('without a second half is one too, when the lock is released', async () => {
    await ask(201, 'PUT', '/d/new', { headers: { ...finder, 'content-length': '0' } });
    const { token } = await lock(200, '/d/new', { ...finder, depth: '0' });
    expect(upstream.take()).toEqual([]);
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...finder, 'lock-token': token } });
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', '');
  });
});
