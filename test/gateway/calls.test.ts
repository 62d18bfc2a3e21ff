import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { GatewayClient, startTestGateway, TEST_MS, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';
import { UpstreamCalls } from '../support/upstream-calls.ts';

/** One service for all tests. The drive of each is a folder of its own, `root`. */
let service: TestService;
let root: string;
let roots = 0;
let gateway: TestGateway;
let client: GatewayClient;
let upstream: UpstreamCalls;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

/** Starts a gateway, lets it list `/d`, and counts its API calls from then on. */
beforeEach(async () => {
  root = `/root-${++roots}`;
  await rpc(service, 'files/create_folder_v2', { path: root });
  upstream = new UpstreamCalls(service.url);
  gateway = await startTestGateway({ service, root, holdMs: TEST_MS });
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
});

interface Step {
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Sends a request and checks the status of its answer. */
async function ask(status: number, method: string, path: string, { headers = {}, body }: Step = {}) {
  const answer = await client.send(method, path, {
    headers,
    ...(body !== undefined && { body: Buffer.from(body) }),
  });
  expect([method, path, answer.status, String(answer.body)]).toMatchObject([method, path, status, {}]);
  return answer;
}

/** Writes files `0`, `1`, … with the same content into a folder at the service. */
async function fill(folder: string, count: number): Promise<void> {
  const first = `${root}${folder}/0`;
  await put(service, first, 'content');
  const entries = Array.from({ length: count - 1 }, (_, index) => ({
    from_path: first,
    to_path: `${root}${folder}/${index + 1}`,
  }));
  const started = await rpc(service, 'files/copy_batch_v2', { entries });
  const { async_job_id } = started.json as { async_job_id?: string };
  if (async_job_id === undefined) return expect(started.json).toMatchObject({ '.tag': 'complete' });
  await eventually(async () =>
    expect((await rpc(service, 'files/copy_batch/check_v2', { async_job_id })).json).toMatchObject({
      '.tag': 'complete',
    }),
  );
}

const DEPTH_1 = { headers: { depth: '1' } };

const to = (path: string) => ({ headers: { destination: `${gateway.url}${path}` } });

describe('requests in a cached folder', () => {
  test('HEAD and PROPFIND in a cached folder make no API call, even for missing names', async () => {
    await ask(201, 'PUT', '/d/a', { body: 'one' });
    upstream.take();
    await ask(200, 'HEAD', '/d/a');
    await ask(404, 'HEAD', '/d/missing');
    await ask(207, 'PROPFIND', '/d/', DEPTH_1);
    expect(upstream.take()).toEqual([]);
  });

  test('PUT, MKCOL, MOVE, COPY and DELETE in a cached folder make one API call each', async () => {
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

  test('MOVE, COPY and DELETE of a folder of 100 files make one API call each', async () => {
    await fill('/d/many', 100);
    await eventually(async () => expect((await client.send('HEAD', '/d/many/99')).status).toBe(200));
    await ask(207, 'PROPFIND', '/d/many/', DEPTH_1);
    upstream.take();
    await ask(201, 'COPY', '/d/many', to('/d/copy'));
    expect(upstream.take()).toEqual(['copy_v2']);
    await ask(201, 'MOVE', '/d/many', to('/d/moved'));
    expect(upstream.take()).toEqual(['move_v2']);
    await ask(204, 'DELETE', '/d/moved');
    expect(upstream.take()).toEqual(['permanently_delete']);
    expect((await ask(200, 'GET', '/d/copy/99')).body.toString()).toBe('content');
  });

  test('COPY of a folder that was never listed makes one API call, and a later COPY takes along the times that PROPPATCH has set since', async () => {
    await fill('/d/many', 20);
    const shownIn = async (folder: string) => String((await ask(207, 'PROPFIND', folder, DEPTH_1)).body);
    await eventually(async () => expect(await shownIn('/d/')).toContain('/d/many/'));
    upstream.take();
    await ask(201, 'COPY', '/d/many', to('/d/copy'));
    expect(upstream.take()).toEqual(['copy_v2']);
    expect((await ask(200, 'GET', '/d/copy/19')).body.toString()).toBe('content');
    await ask(207, 'PROPPATCH', '/d/many/7', { body: WIN32_TIMES });
    await ask(201, 'COPY', '/d/many', to('/d/kept'));
    const shown = await ask(207, 'PROPFIND', '/d/kept/7', { headers: { depth: '0' } });
    expect(shown.body.toString()).toContain('Thu, 05 Mar 2026 10:00:00 GMT');
  });

  test('PROPPATCH of the Win32 times makes no API call, and PROPFIND shows them without one', async () => {
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

describe('a new file created in two steps', () => {
  const finder = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/23.4.0 (arm64)' };
  const explorer = { 'user-agent': 'Microsoft-WebDAV-MiniRedir/10.0.19045', translate: 'f' };
  const lockHeaders = { timeout: 'Second-600', 'content-type': 'text/xml' };

  /** Takes a lock; returns its token and the headers of requests under it. */
  async function lock(status: number, path: string, headers: Record<string, string>) {
    const answer = await ask(status, 'LOCK', path, { headers: { ...headers, ...lockHeaders }, body: LOCK });
    const token = String(answer.headers['lock-token']);
    return { token, withToken: { ...headers, if: `(${token})` } };
  }

  const stored = async (path: string, text: string) => {
    upstream.take();
    expect((await ask(200, 'GET', path)).body.toString()).toBe(text);
  };

  test("Finder's new file (PROPFIND, empty PUT, LOCK, PROPFIND, PUT, UNLOCK) makes one API call", async () => {
    await ask(404, 'PROPFIND', '/d/new', { headers: { ...finder, depth: '0' } });
    await ask(201, 'PUT', '/d/new', { headers: { ...finder, 'content-length': '0' } });
    const { token, withToken } = await lock(200, '/d/new', { ...finder, depth: '0' });
    await ask(207, 'PROPFIND', '/d/new', { headers: { ...finder, depth: '0' } });
    await ask(204, 'PUT', '/d/new', { headers: withToken, body: 'the body' });
    await ask(207, 'PROPFIND', '/d/new', { headers: { ...finder, depth: '0' } });
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...finder, 'lock-token': token } });
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', 'the body');
  });

  test("Finder's new file that is locked first, with an AppleDouble file beside it, makes one API call", async () => {
    await ask(404, 'PROPFIND', '/d/new', { headers: { ...finder, depth: '0' } });
    const { token, withToken } = await lock(201, '/d/new', { ...finder, depth: '0' });
    await ask(404, 'PROPFIND', '/d/._new', { headers: { ...finder, depth: '0' } });
    await ask(201, 'PUT', '/d/._new', { headers: finder, body: 'a resource fork' });
    await ask(204, 'PUT', '/d/new', { headers: withToken, body: 'the body' });
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...finder, 'lock-token': token } });
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', 'the body');
  });

  test("Explorer's new file (PROPFIND, empty PUT, LOCK, PROPPATCH, HEAD, PUT, PROPPATCH, UNLOCK) makes one API call", async () => {
    await ask(404, 'PROPFIND', '/d/new', { headers: { ...explorer, depth: '0' } });
    await ask(207, 'PROPFIND', '/d/', { headers: { ...explorer, depth: '1' } });
    await ask(201, 'PUT', '/d/new', { headers: { ...explorer, 'content-length': '0' } });
    const { token, withToken } = await lock(200, '/d/new', explorer);
    await ask(207, 'PROPPATCH', '/d/new', { headers: withToken, body: WIN32_TIMES });
    await ask(200, 'HEAD', '/d/new', { headers: explorer });
    await ask(204, 'PUT', '/d/new', { headers: withToken, body: 'the body' });
    await ask(207, 'PROPPATCH', '/d/new', { headers: withToken, body: WIN32_TIMES });
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...explorer, 'lock-token': token } });
    const shown = await ask(207, 'PROPFIND', '/d/new', { headers: { ...explorer, depth: '0' } });
    expect(shown.body.toString()).toContain('Thu, 05 Mar 2026 10:00:00 GMT');
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', 'the body');
  });

  test("davfs2's new file (LOCK, PUT, HEAD, UNLOCK) makes one API call", async () => {
    const davfs2 = { 'user-agent': 'davfs2/1.7.0 neon/0.34.0' };
    const { token, withToken } = await lock(201, '/d/new', { ...davfs2, depth: '0', 'if-none-match': '*' });
    const { 'if-none-match': _, ...without } = withToken as Record<string, string>;
    await ask(204, 'PUT', '/d/new', { headers: without, body: 'the body' });
    await ask(200, 'HEAD', '/d/new', { headers: davfs2 });
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...davfs2, 'lock-token': token } });
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', 'the body');
  });

  test('an empty file without a second PUT is stored by one API call when its lock is released', async () => {
    await ask(201, 'PUT', '/d/new', { headers: { ...finder, 'content-length': '0' } });
    const { token } = await lock(200, '/d/new', { ...finder, depth: '0' });
    expect(upstream.take()).toEqual([]);
    await ask(204, 'UNLOCK', '/d/new', { headers: { ...finder, 'lock-token': token } });
    expect(upstream.take()).toEqual(['upload']);
    await stored('/d/new', '');
  });
});
