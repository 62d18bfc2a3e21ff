import { once } from 'node:events';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { startGateway } from '../../src/app/gateway.ts';
import { silentLog } from '../../src/util/log.ts';
import { Networks } from '../../src/util/networks.ts';
import { eventually } from '../support/eventually.ts';
import { type GatedService, startGatedService } from '../support/gated-service.ts';
import { temporaryDirectory } from '../support/program.ts';
import { sayToRedis, startRedis, type TestRedis } from '../support/redis.ts';
import { startTestService } from '../support/service.ts';

/** Closers of everything that is open, in the order of opening. */
const closers: (() => Promise<void>)[] = [];
async function closeAll(): Promise<void> {
  for (const close of closers.splice(0).reverse()) await close();
}

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;
const SHARE_LINK = `<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop>
  <shared-link xmlns="https://davgate.dev/ns"/></D:prop></D:set></D:propertyupdate>`;

/** How long a test lets a LOCK wait for another request, in ms: less than LOCK waits. */
const LOCK_WAITS_MS = 300;

/** The status of a LOCK that has waited for too long, because the machine is slow. */
const TOO_SLOW = 423;

/** How often such a LOCK is tried. */
const ROUNDS_MAX = 5;

type Mode = 'write-through' | 'write-back' | 'two gateways on Redis';

interface Deployment {
  readonly service: GatedService;
  /** Addresses of the first and of the second client's gateway. */
  readonly here: string;
  readonly there: string;
  readonly redis: TestRedis | undefined;
}

async function deployment(mode: Mode): Promise<Deployment> {
  const storage = await startTestService();
  closers.push(() => storage.close());
  const service = await startGatedService(storage.url);
  closers.push(() => service.end());
  const redis = mode === 'two gateways on Redis' ? await startRedis() : undefined;
  if (redis) closers.push(() => redis.close());
  const directory = await temporaryDirectory();
  closers.push(() => directory.remove());
  const start = async (name: string) => {
    const { url } = service;
    const login = { apiUrl: url, contentUrl: url, notifyUrl: url, credentials: { token: storage.token } };
    const gateway = await startGateway(
      {
        listen: { host: '127.0.0.1', port: 0 },
        log: { level: 'info', format: 'text' },
        logRequests: true,
        crossOrigins: [],
        trustedProxies: new Networks(),
        basePath: '',
        tls: undefined,
        publicUrl: undefined,
        dataDirectory: join(directory.path, name, 'data'),
        cacheDirectory: join(directory.path, name, 'cache'),
        writeMode: mode === 'write-back' ? 'back' : 'through',
        redisUrl: redis?.url,
        drives: [{ name: 'default', service: login, root: '', deletePolicy: 'auto' }],
        users: undefined,
      },
      silentLog,
    );
    closers.push(() => gateway.close());
    return gateway.url;
  };
  const here = await start('here');
  return { service, here, there: redis ? await start('there') : here, redis };
}

interface RequestParts {
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

async function ask(base: string, method: string, path: string, { headers = {}, body }: RequestParts = {}) {
  const response = await fetch(new URL(path, base), { method, headers, ...(body !== undefined && { body }) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

/** Sends the first half of a PUT of 20 bytes. `finish` sends the rest and returns the status; `disconnect` gives up. */
async function halfPut(base: string, path: string, headers: Readonly<Record<string, string>> = {}) {
  const put = request(new URL(path, base), {
    method: 'PUT',
    headers: { 'Content-Length': 20, Expect: '100-continue', ...headers },
  });
  put.on('error', () => {});
  const answered = once(put, 'response');
  answered.catch(() => {});
  await once(put, 'continue');
  put.write('ten bytes.');
  return {
    disconnect: () => void put.destroy(),
    async finish(): Promise<number> {
      put.end('and ten...');
      const [answer] = await answered;
      await text(answer);
      return answer.statusCode;
    },
  };
}

describe.each<Mode>(['write-through', 'write-back', 'two gateways on Redis'])('%s', (mode) => {
  // One for all tests; each test has files of its own.
  let deployed: Deployment;
  beforeAll(async () => {
    deployed = await deployment(mode);
  });
  afterAll(closeAll);

  test('LOCK during a PUT of the same file answers 423; after the PUT it succeeds and blocks writes', async () => {
    const { here, there } = deployed;
    expect((await ask(here, 'PUT', '/race.txt', { body: 'original' })).status).toBe(201);
    const put = await halfPut(here, '/race.txt');
    expect((await ask(there, 'LOCK', '/race.txt', { body: LOCK })).status).toBe(423);
    expect(await put.finish()).toBe(204);
    expect((await ask(there, 'LOCK', '/race.txt', { body: LOCK })).status).toBe(200);
    expect((await ask(here, 'PUT', '/race.txt', { body: 'intruder' })).status).toBe(423);
  });

  test('a LOCK that waits for a PUT which makes its condition false answers 412 and locks nothing', async () => {
    const { here, there } = deployed;
    let status = TOO_SLOW;
    for (let round = 0; round < ROUNDS_MAX && status === TOO_SLOW; round++) {
      const { headers } = await ask(here, 'PUT', '/tagged.txt', { body: 'original' });
      expect((await ask(there, 'GET', '/tagged.txt')).text).toBe('original');
      const put = await halfPut(here, '/tagged.txt');
      const If = `([${headers.get('etag')}])`;
      const waiting = ask(there, 'LOCK', '/tagged.txt', { headers: { If }, body: LOCK });
      await setTimeout(LOCK_WAITS_MS);
      expect(await put.finish()).toBe(204);
      ({ status } = await waiting);
    }
    expect(status).toBe(412);
    await eventually(async () =>
      expect((await ask(here, 'PUT', '/tagged.txt', { body: 'next' })).status).toBe(204),
    );
  });

  test('LOCK succeeds once the client of a PUT of the same file has disconnected', async () => {
    const { here, there } = deployed;
    const put = await halfPut(here, '/new.txt');
    put.disconnect();
    await eventually(async () =>
      expect((await ask(there, 'LOCK', '/new.txt', { body: LOCK })).status).toBe(201),
    );
  });

  test.each([
    ['MOVE', 'the target', 'move_v2', 201, ''],
    ['COPY', 'the target', 'copy_v2', 201, ''],
    ['DELETE', 'the file', 'permanently_delete', 204, ''],
    ['PROPPATCH', 'the file', 'create_shared_link_with_settings', 207, SHARE_LINK],
    ['MKCOL', 'the new folder', 'create_folder_v2', 201, ''],
  ])('during a %s, LOCK of %s answers 423', async (method, at, call, status, body) => {
    const { service, here, there } = deployed;
    const [file, target, folder] = [`/${method}-file`, `/${method}-target`, `/${method}-folder`];
    const locked = { 'the target': target, 'the file': file, 'the new folder': folder }[at] ?? '';
    expect((await ask(here, 'PUT', file, { body: 'content' })).status).toBe(201);
    const gate = service.close(call);
    const headers: Record<string, string> =
      at === 'the target' ? { Destination: new URL(target, here).href } : {};
    const running = ask(here, method, method === 'MKCOL' ? folder : file, {
      headers,
      ...(body !== '' && { body }),
    });
    await gate.reached;
    expect((await ask(there, 'LOCK', locked, { body: LOCK })).status).toBe(423);
    gate.open();
    expect((await running).status).toBe(status);
  });
});

test('a LOCK that waits for a DELETE of its file at another gateway creates the file again', async () => {
  onTestFinished(closeAll);
  const { service, here, there } = await deployment('two gateways on Redis');
  let status = TOO_SLOW;
  for (let round = 0; round < ROUNDS_MAX && status === TOO_SLOW; round++) {
    expect((await ask(here, 'PUT', '/again.txt', { body: 'original' })).status).toBe(201);
    expect((await ask(there, 'GET', '/again.txt')).text).toBe('original');
    const gate = service.close('permanently_delete');
    const running = ask(here, 'DELETE', '/again.txt');
    await gate.reached;
    const waiting = ask(there, 'LOCK', '/again.txt', { body: LOCK });
    await setTimeout(LOCK_WAITS_MS);
    gate.open();
    expect((await running).status).toBe(204);
    ({ status } = await waiting);
  }
  expect(status).toBe(201);
  const file = await ask(here, 'GET', '/again.txt');
  expect([file.status, file.text]).toEqual([200, '']);
});

test.each([
  [503, 'other clients', 'cadaver/0.24'],
  [423, 'Finder, which drops a file at 503,', 'WebDAVFS/3.0.0 (03008000) Darwin/23.4.0 (arm64)'],
  [504, 'davfs2, which does not repeat after 503,', 'davfs2/1.7.0 neon/0.33.0'],
])(
  'PUT whose claim Redis lost while another client took the lock answers %d to %s and changes nothing',
  async (status, _, agent) => {
    onTestFinished(closeAll);
    const { here, there, redis } = await deployment('two gateways on Redis');
    expect((await ask(here, 'PUT', '/race.txt', { body: 'original' })).status).toBe(201);
    const put = await halfPut(here, '/race.txt', { 'User-Agent': agent });
    await sayToRedis(redis, 'FLUSHALL');
    const locked = await ask(there, 'LOCK', '/race.txt', { body: LOCK });
    expect(locked.status).toBe(200);
    expect(await put.finish()).toBe(status);
    const headers = { 'Lock-Token': String(locked.headers.get('lock-token')) };
    expect((await ask(there, 'UNLOCK', '/race.txt', { headers })).status).toBe(204);
    expect((await ask(here, 'GET', '/race.txt')).text).toBe('original');
    expect((await ask(here, 'PUT', '/race.txt', { body: 'new' })).status).toBe(204);
  },
);
