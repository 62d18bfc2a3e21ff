import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HttpTimeouts } from '../../src/api/http.ts';
import { storedBytes, storedTree } from '../faults/upstream-truth.ts';
import { eventually } from '../support/eventually.ts';
import { type Absence, type FailingFront, startFailingFront } from '../support/failing-front.ts';
import {
  type GatewayAnswer,
  GatewayClient,
  startTestGateway,
  TEST_MS,
  type TestGateway,
} from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { upload } from '../support/service-client.ts';

const FINDER = 'WebDAVFS/3.0.0 (03008000) Darwin/23.4.0 (arm64)';
const EXPLORER = 'Microsoft-WebDAV-MiniRedir/10.0.19045';
const DAVFS2 = 'davfs2/1.7.0 neon/0.33.0';

/** Short, because no test depends on the number of retries. */
const DEADLINE_MS = 300;

/** For a service that never answers. A working service that exceeds these on a busy machine is called again. */
const IMPATIENT: HttpTimeouts = {
  connectMs: 2_000,
  answerMs: 1_000,
  firstAnswerMs: 1_000,
  slowAnswerMs: 1_000,
  silenceMs: TEST_MS,
};

const LOCK_BODY = Buffer.from(
  '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>',
);

const TIMES_BODY = Buffer.from(
  '<D:propertyupdate xmlns:D="DAV:" xmlns:Z="urn:schemas-microsoft-com:"><D:set><D:prop>' +
    '<Z:Win32LastModifiedTime>Thu, 01 Jan 2026 10:00:00 GMT</Z:Win32LastModifiedTime></D:prop></D:set></D:propertyupdate>',
);

const HTML_502: Absence = {
  status: 502,
  headers: { 'content-type': 'text/html' },
  body: '<html><h1>502 Bad Gateway</h1></html>',
};

const ABSENCES: readonly (readonly [string, Absence])[] = [
  ['resets connections', 'reset'],
  ['accepts connections and never answers', 'silent'],
  ['answers 500 to everything', { status: 500 }],
  ['answers 503 with Retry-After', { status: 503, headers: { 'retry-after': '30' } }],
  ['issues no access tokens', 'tokenless'],
  ['is behind a proxy that answers 502 with an HTML page', HTML_502],
];

let service: TestService;
let front: FailingFront;
let directory: string;
let gateway: TestGateway;
let client: GatewayClient;

const store = (path: string, text: string) =>
  upload(service, 'files/upload', { path, mode: 'overwrite' }, { body: text });

const stored = async (path: string) => String(await storedBytes(service, path));

async function startGateway(absence: Absence): Promise<void> {
  const { appKey, appSecret, refreshToken } = service;
  gateway = await startTestGateway({
    service: { url: front.url, appKey, appSecret, refreshToken },
    writeBack: true,
    directory,
    deadlineMs: DEADLINE_MS,
    staleMs: 0,
    ...(absence === 'silent' && { timeouts: IMPATIENT }),
  });
  client = new GatewayClient(gateway.url);
}

async function stopGateway(): Promise<void> {
  client.close();
  await gateway.close();
}

beforeEach(async () => {
  service = await startTestService();
  front = await startFailingFront(service.url);
  directory = await mkdtemp(join(tmpdir(), 'davgate-away-'));
  for (const name of ['report', 'shared', 'other', 'unread']) await store(`/docs/${name}.txt`, `${name} v1`);
});

afterEach(async () => {
  await stopGateway();
  await front.close();
  await service.close();
  await rm(directory, { recursive: true, force: true });
});

type Headers = Readonly<Record<string, string>>;

const send = (method: string, path: string, headers: Headers = {}, text?: string) =>
  client.send(method, path, { headers, ...(text !== undefined && { body: Buffer.from(text) }) });

const list = (path: string, headers: Headers = {}) => send('PROPFIND', path, { depth: '1', ...headers });

const stat = (path: string, headers: Headers = {}) => send('PROPFIND', path, { depth: '0', ...headers });

const read = async (path: string) => {
  const { status, body } = await send('GET', path);
  return `${status} ${body}`;
};

async function lock(path: string, headers: Headers = {}): Promise<{ status: number; token: string }> {
  const { status, headers: answered } = await client.send('LOCK', path, {
    headers: { depth: '0', timeout: 'Second-600', ...headers },
    body: LOCK_BODY,
  });
  return { status, token: String(answered['lock-token']) };
}

function expectRefusedForNow({ status, headers }: GatewayAnswer): void {
  expect(status).toBe(503);
  expect(Number(headers['retry-after'])).toBeGreaterThan(0);
}

/** Lets the gateway list `/docs` and read all its files but one. */
async function fillCache(): Promise<void> {
  await eventually(async () => {
    expect((await list('/')).status).toBe(207);
    expect((await list('/docs/')).status).toBe(207);
    for (const name of ['report', 'shared', 'other'])
      expect(await read(`/docs/${name}.txt`)).toBe(`200 ${name} v1`);
  });
}

async function stopService(absence: Absence): Promise<void> {
  await eventually(() => expect(gateway.isFollowing()).toBe(true));
  front.leave(absence);
  // A silent service cannot be told from one whose long poll has no changes.
  if (absence !== 'silent') await eventually(() => expect(gateway.isFollowing()).toBe(false));
}

async function startService(): Promise<void> {
  front.comeBack();
  await eventually(() => expect(gateway.depth()).toMatchObject({ files: 0, lostFiles: 0 }));
}

/** Saves as davfs2 does: LOCK, PUT, UNLOCK, for an existing and for a new file. */
async function saveLocked(
  path: string,
  text: string,
  statuses: { lock: number; put: number },
): Promise<void> {
  const agent = { 'user-agent': DAVFS2 };
  const { status, token } = await lock(path, agent);
  expect([path, status]).toEqual([path, statuses.lock]);
  expect((await send('PUT', path, { ...agent, if: `(${token})` }, text)).status).toBe(statuses.put);
  expect(await read(path)).toBe(`200 ${text}`);
  expect((await send('UNLOCK', path, { ...agent, 'lock-token': token })).status).toBe(204);
}

/** Saves a new file as Finder and Explorer do: PROPFIND, empty PUT, LOCK, PUT with the content, UNLOCK. */
async function saveInTwoSteps(path: string, text: string, agent: string): Promise<void> {
  const headers = { 'user-agent': agent };
  expect((await stat(path, headers)).status).toBe(404);
  expect((await send('PUT', path, headers, '')).status).toBe(201);
  const { status, token } = await lock(path, headers);
  expect(status).toBe(200);
  expect((await stat(path, headers)).status).toBe(207);
  expect((await send('PUT', path, { ...headers, if: `(${token})` }, text)).status).toBe(204);
  const times = await client.send('PROPPATCH', path, {
    headers: { ...headers, if: `(${token})` },
    body: TIMES_BODY,
  });
  expect(String(times.body)).toContain('HTTP/1.1 200 OK');
  expect(await read(path)).toBe(`200 ${text}`);
  expect((await send('UNLOCK', path, { ...headers, 'lock-token': token })).status).toBe(204);
}

describe.each(ABSENCES)('a gateway with write-back while the service %s', (_, absence) => {
  beforeEach(async () => {
    await startGateway(absence);
    await fillCache();
    await stopService(absence);
  });

  test('with write-back and the service away, writes in a cached folder succeed, other requests answer 503, and all writes are sent when the service is back', async () => {
    expect((await send('OPTIONS', '/docs/')).status).toBe(200);
    expect((await list('/docs/')).status).toBe(207);
    await saveLocked('/docs/report.txt', 'report v2', { lock: 200, put: 204 });
    await saveLocked('/docs/report.txt', 'report v3', { lock: 200, put: 204 });
    await saveLocked('/docs/locked.txt', 'new, locked first', { lock: 201, put: 204 });
    await saveInTwoSteps('/docs/finder.txt', 'by Finder', FINDER);
    await saveInTwoSteps('/docs/explorer.txt', 'by Explorer', EXPLORER);
    expect((await send('PUT', '/docs/shared.txt', {}, 'shared, ours')).status).toBe(204);
    expect((await send('PUT', '/docs/both.txt', {}, 'both, ours')).status).toBe(201);
    expect((await send('PUT', '/docs/report.tmp', {}, 'report v4')).status).toBe(201);
    const listing = String((await list('/docs/')).body);
    for (const name of ['report.txt', 'locked.txt', 'finder.txt', 'explorer.txt', 'both.txt', 'report.tmp'])
      expect(listing).toContain(`<D:href>/docs/${name}</D:href>`);

    // Requests that need the service are refused and change nothing.
    const to = { destination: `${gateway.url}/docs/report.txt` };
    expectRefusedForNow(await send('MOVE', '/docs/report.tmp', to));
    expectRefusedForNow(await send('GET', '/docs/unread.txt'));
    expectRefusedForNow(await list('/elsewhere/'));
    expectRefusedForNow(await send('PUT', '/elsewhere/new.txt', {}, 'new'));
    expect(await read('/docs/report.tmp')).toBe('200 report v4');
    expect(await read('/docs/report.txt')).toBe('200 report v3');
    expect(await read('/docs/other.txt')).toBe('200 other v1');
    expectRefusedForNow(await send('MKCOL', '/docs/folder/'));
    expectRefusedForNow(await send('DELETE', '/docs/other.txt'));
    // Whether the service did the DELETE may be unknown: then GET answers 503, and never 404.
    expect(await read('/docs/other.txt')).toMatch(/^200 other v1$|^503 /);
    expect(await read('/docs/report.txt')).toBe('200 report v3');

    await store('/docs/shared.txt', 'shared, theirs');
    await store('/docs/both.txt', 'both, theirs');
    await startService();
    expect(await stored('/docs/report.txt')).toBe('report v3');
    expect(await stored('/docs/report.tmp')).toBe('report v4');
    expect(await stored('/docs/locked.txt')).toBe('new, locked first');
    expect(await stored('/docs/finder.txt')).toBe('by Finder');
    expect(await stored('/docs/explorer.txt')).toBe('by Explorer');
    expect(await stored('/docs/other.txt')).toBe('other v1');
    for (const name of ['shared', 'both']) {
      expect(await stored(`/docs/${name}.txt`)).toBe(`${name}, theirs`);
      const paths = Object.keys(await storedTree(service, '/docs'));
      const copies = paths.filter((path) => path.startsWith(`/docs/${name} (conflicted copy `));
      expect(copies).toHaveLength(1);
      expect(await stored(copies[0] ?? '')).toBe(`${name}, ours`);
    }
    await eventually(async () => {
      await send('MOVE', '/docs/report.tmp', to);
      expect(await stored('/docs/report.txt')).toBe('report v4');
    });
  });
});

test('with write-back, a restart while the service is away keeps saved files and locks, and all writes are sent when the service is back', async () => {
  await startGateway('reset');
  await fillCache();
  await stopService('reset');
  const { token } = await lock('/docs/report.txt');
  const withToken = { if: `(${token})` };
  expect((await send('PUT', '/docs/report.txt', withToken, 'report v2')).status).toBe(204);
  expect((await send('PUT', '/docs/new.txt', {}, 'new')).status).toBe(201);
  expect((await send('PUT', '/docs/shared.txt', {}, 'shared, ours')).status).toBe(204);
  await stopGateway();
  await startGateway('reset');

  expect(await read('/docs/report.txt')).toBe('200 report v2');
  expect((await stat('/docs/new.txt')).status).toBe(207);
  expect((await send('PUT', '/docs/report.txt', {}, 'not mine')).status).toBe(423);
  expect((await send('PUT', '/docs/report.txt', withToken, 'report v3')).status).toBe(204);
  expect((await send('PUT', '/docs/new.txt', {}, 'newer')).status).toBe(204);
  expect((await send('UNLOCK', '/docs/report.txt', { 'lock-token': token })).status).toBe(204);
  // The restart emptied the metadata cache.
  expectRefusedForNow(await list('/docs/'));
  expectRefusedForNow(await send('GET', '/docs/other.txt'));
  expectRefusedForNow(await stat('/docs/unknown.txt'));
  expectRefusedForNow(await send('PUT', '/docs/unknown.txt', {}, 'text'));

  await store('/docs/shared.txt', 'shared, theirs');
  await startService();
  expect(await stored('/docs/report.txt')).toBe('report v3');
  expect(await stored('/docs/new.txt')).toBe('newer');
  expect(await stored('/docs/shared.txt')).toBe('shared, theirs');
  const paths = Object.keys(await storedTree(service, '/docs'));
  const copies = paths.filter((path) => path.includes('conflicted copy'));
  expect(copies).toHaveLength(1);
  expect(await stored(copies[0] ?? '')).toBe('shared, ours');
});
