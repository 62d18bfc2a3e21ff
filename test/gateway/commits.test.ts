import { basename } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Sqlite } from '../../src/util/sqlite/sqlite.ts';
import { GatewayClient, startTestGateway, TEST_MS, type TestGateway } from '../support/gateway.ts';
import { startTestService, type TestService } from '../support/service.ts';

let service: TestService;
let gateway: TestGateway;
let client: GatewayClient;

beforeEach(async () => {
  service = await startTestService();
  gateway = await startTestGateway({ service, holdMs: TEST_MS });
  client = new GatewayClient(gateway.url);
  expect((await client.send('MKCOL', '/d')).status).toBe(201);
});
afterEach(async () => {
  vi.restoreAllMocks();
  client.close();
  await gateway.close();
  await service.close();
});

/** Returns the number of transactions in `work` that changed davgate's state and were synced to disk. */
async function commitsOf(work: () => Promise<unknown>): Promise<number> {
  const exec = Sqlite.prototype.exec;
  const changesBefore = new Map<object, number>();
  let commits = 0;
  const spy = vi.spyOn(Sqlite.prototype, 'exec').mockImplementation(function (this: Database, sql) {
    const isState = basename(this.name) === 'state.db';
    if (isState && sql.startsWith('BEGIN')) changesBefore.set(this, changesOf(this));
    const isFlushed = isState && this.pragma('synchronous', { simple: true }) === FULL;
    if (isFlushed && sql === 'COMMIT' && changesBefore.get(this) !== changesOf(this)) commits++;
    return exec.call(this, sql);
  });
  await work();
  spy.mockRestore();
  return commits;
}

/** `PRAGMA synchronous`: each commit is followed by an fsync. */
const FULL = 2;

type Database = InstanceType<typeof Sqlite>;

function changesOf(database: Database): number {
  return Number(database.prepare('SELECT total_changes()').pluck().get());
}

const FINDER = { 'user-agent': 'WebDAVFS/3.0.0 (03008000) Darwin/23.4.0 (arm64)' };
const LOCK = `<?xml version="1.0"?><D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
<D:locktype><D:write/></D:locktype></D:lockinfo>`;

async function ask(status: number, method: string, headers: Record<string, string>, body = '') {
  const answer = await client.send(method, '/d/new', {
    headers: { ...FINDER, ...headers },
    body: Buffer.from(body),
  });
  expect([method, answer.status]).toEqual([method, status]);
  return answer;
}

async function lock(status: number): Promise<string> {
  const headers = { depth: '0', timeout: 'Second-600', 'content-type': 'text/xml' };
  return String((await ask(status, 'LOCK', headers, LOCK)).headers['lock-token']);
}

test("Finder's new file costs one synchronous commit each at its empty PUT, LOCK and PUT, and none at PROPFIND and UNLOCK", async () => {
  let token = '';
  const steps: [string, () => Promise<unknown>][] = [
    ['PROPFIND', () => ask(404, 'PROPFIND', { depth: '0' })],
    ['empty PUT', () => ask(201, 'PUT', {})],
    [
      'LOCK',
      async () => {
        token = await lock(200);
      },
    ],
    ['PUT', () => ask(204, 'PUT', { if: `(${token})` }, 'the body')],
    ['UNLOCK', () => ask(204, 'UNLOCK', { 'lock-token': token })],
  ];
  const counts: [string, number][] = [];
  for (const [name, step] of steps) counts.push([name, await commitsOf(step)]);
  expect(counts).toEqual([
    ['PROPFIND', 0],
    ['empty PUT', 1],
    // The placeholder's new expiry; the lock itself is not synced.
    ['LOCK', 1],
    // The removal of the placeholder: it must not come back once the file is deleted.
    ['PUT', 1],
    ['UNLOCK', 0],
  ]);
});

test('a new file made by LOCK, PUT and UNLOCK costs two synchronous commits', async () => {
  let token = '';
  const whole = async () => {
    token = await lock(201);
    await ask(204, 'PUT', { if: `(${token})` }, 'the body');
    await ask(204, 'UNLOCK', { 'lock-token': token });
  };
  // One for the placeholder that LOCK makes, one for its removal.
  expect(await commitsOf(whole)).toBe(2);
});

test('PUT of a new file without a lock costs no synchronous commit', async () => {
  expect(await commitsOf(() => ask(201, 'PUT', {}, 'the body'))).toBe(0);
});
