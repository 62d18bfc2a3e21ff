import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Gateway } from '../../src/app/gateway.ts';
import { type LogFields, silentLog } from '../../src/util/log.ts';
import { eventually, expectSoon } from '../support/eventually.ts';
import { temporaryDirectory } from '../support/program.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { startSharedGateway } from '../support/shared-gateway.ts';

/** Two gateways on one account share one Redis. */
let service: TestService;
let redis: TestRedis;
let directory: { readonly path: string; remove(): Promise<void> };
const gateways: Gateway[] = [];
/** Fields of the errors that the gateways logged. */
let errors: (LogFields | undefined)[];

beforeEach(async () => {
  errors = [];
  directory = await temporaryDirectory();
  [service, redis] = await Promise.all([startTestService(), startRedis()]);
  await startNextGateway();
  await startNextGateway();
});
afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  await redis.close();
  await service.close();
  await directory.remove();
});

async function startNextGateway(): Promise<void> {
  const own = join(directory.path, String(gateways.length));
  const log = { ...silentLog, error: (_: string, fields?: LogFields) => void errors.push(fields) };
  gateways.push(await startSharedGateway({ service, redis, directory: own, log }));
}

interface RequestParts {
  readonly headers?: Record<string, string>;
  readonly body?: string;
}

/** Sends a request to gateway 0 or 1. */
async function ask(gateway: 0 | 1, method: string, path: string, { headers = {}, body }: RequestParts = {}) {
  const url = new URL(path, gateways[gateway]?.url);
  const response = await fetch(url, { method, headers, ...(body !== undefined && { body }) });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype><D:owner>Ann</D:owner></D:lockinfo>`;

const setProperty = (text: string) => `<D:propertyupdate xmlns:D="DAV:" xmlns:t="urn:test"><D:set><D:prop>
  <t:colour>${text}</t:colour></D:prop></D:set></D:propertyupdate>`;

const FIND_PROPERTY = `<D:propfind xmlns:D="DAV:" xmlns:t="urn:test"><D:prop><t:colour/></D:prop></D:propfind>`;

test('a lock made through one gateway is enforced, shown, refreshed and released by another on the same Redis', async () => {
  expect((await ask(0, 'PUT', '/a', { body: 'one' })).status).toBe(201);
  const locked = await ask(0, 'LOCK', '/a', { body: LOCK, headers: { Timeout: 'Second-600' } });
  expect(locked.status).toBe(200);
  const token = locked.headers.get('lock-token') ?? '';
  expect((await ask(1, 'PUT', '/a', { body: 'two' })).status).toBe(423);
  expect((await ask(1, 'LOCK', '/a', { body: LOCK })).status).toBe(423);
  expect((await ask(1, 'PROPFIND', '/a', { headers: { Depth: '0' } })).text).toContain(token.slice(1, -1));
  expect((await ask(1, 'PUT', '/a', { body: 'two', headers: { If: `(${token})` } })).status).toBe(204);
  expect((await ask(1, 'LOCK', '/a', { headers: { If: `(${token})` } })).status).toBe(200);
  expect((await ask(1, 'UNLOCK', '/a', { headers: { 'Lock-Token': token } })).status).toBe(204);
  expect((await ask(0, 'PUT', '/a', { body: 'three' })).status).toBe(204);
});

test('a dead property set through one gateway appears at once in a listing that another on the same Redis has cached', async () => {
  await ask(0, 'MKCOL', '/folder');
  await ask(0, 'PUT', '/folder/a', { body: 'one' });
  const listing = async (gateway: 0 | 1) =>
    (await ask(gateway, 'PROPFIND', '/folder/', { body: FIND_PROPERTY, headers: { Depth: '1' } })).text;
  await eventually(async () => expect(await listing(1)).toContain('/folder/a'));
  for (const colour of ['red', 'blue']) {
    expect((await ask(0, 'PROPPATCH', '/folder/a', { body: setProperty(colour) })).status).toBe(207);
    expect(await listing(1)).toContain(`>${colour}<`);
    expect(await listing(0)).toContain(`>${colour}<`);
  }
});

test('a placeholder made through one gateway is listed by another on the same Redis, and a PUT there stores its content', async () => {
  const before = await ask(1, 'PROPFIND', '/', { headers: { Depth: '1' } });
  expect([before.status, (await ask(1, 'GET', '/new')).status]).toEqual([207, 404]);
  expect((await ask(0, 'PUT', '/new', { body: '' })).status).toBe(201);
  const found = await ask(1, 'PROPFIND', '/', { headers: { Depth: '1' } });
  expect(found.text).toContain('/new');
  expect((await ask(1, 'GET', '/new')).status).toBe(200);
  expect((await ask(1, 'PUT', '/new', { body: 'the body' })).status).toBe(204);
  await eventually(async () => expect((await ask(0, 'GET', '/new')).text).toBe('the body'));
});

test('a PUT whose folder another gateway on the same Redis deletes while its body arrives answers 409, and the folder stays away', async () => {
  await ask(0, 'MKCOL', '/d');
  expect((await ask(1, 'PROPFIND', '/d', { headers: { Depth: '1' } })).status).toBe(207);
  const headers = { Expect: '100-continue' };
  const putting = request(new URL('/d/x', gateways[1]?.url), { method: 'PUT', headers });
  putting.flushHeaders();
  await once(putting, 'continue');
  putting.write('half');
  expect((await ask(0, 'DELETE', '/d')).status).toBe(204);
  putting.end(' and half');
  const [answer]: IncomingMessage[] = await once(putting, 'response');
  answer?.resume();
  expect(answer?.statusCode).toBe(409);
  expect((await ask(0, 'GET', '/d/')).status).toBe(404);
});

test('COPY on a fresh Redis copies the file and its dead properties', async () => {
  expect((await ask(0, 'PUT', '/a', { body: 'one' })).status).toBe(201);
  expect((await ask(0, 'PROPPATCH', '/a', { body: setProperty('red') })).status).toBe(207);
  const Destination = new URL('/b', gateways[0]?.url).href;
  expect((await ask(0, 'COPY', '/a', { headers: { Destination } })).status).toBe(201);
  expect((await ask(0, 'GET', '/b')).text).toBe('one');
  const found = await ask(0, 'PROPFIND', '/b', { body: FIND_PROPERTY, headers: { Depth: '0' } });
  expect(found.text).toContain('red');
});

test('a local file made through one gateway is read and moved through another on the same Redis, and deleted for both', async () => {
  expect((await ask(0, 'PUT', '/._a', { body: 'fork' })).status).toBe(201);
  expect((await ask(1, 'GET', '/._a')).text).toBe('fork');
  const to = new URL('/._b', gateways[1]?.url).href;
  expect((await ask(1, 'MOVE', '/._a', { headers: { Destination: to } })).status).toBe(201);
  expect((await ask(0, 'GET', '/._b')).text).toBe('fork');
  expect((await ask(0, 'GET', '/._a')).status).toBe(404);
  expect((await ask(0, 'DELETE', '/._b')).status).toBe(204);
  expect((await ask(1, 'GET', '/._b')).status).toBe(404);
});

test('PUT while Redis is away answers 503 with Retry-After, logs the reason and keeps the old content', async () => {
  await ask(0, 'PUT', '/a', { body: 'one' });
  await redis.kill();
  const refused = await ask(0, 'PUT', '/a', { body: 'two' });
  expect(refused.status).toBe(503);
  expect(refused.headers.get('retry-after')).toBe('10');
  expect(refused.text).not.toContain(String(redis.port));
  expect(String(errors[0]?.['reason'])).toMatch(
    /^StateUnavailable: .*check that Redis runs|^StateUnavailable: .*nothing listens there/,
  );
  await redis.start();
  await expectSoon(async () => (await ask(0, 'GET', '/a')).text).toBe('one');
  await eventually(async () => expect((await ask(0, 'PUT', '/a', { body: 'two' })).status).toBe(204));
});

test('while Redis is away, readyz answers 503 without its address, healthz 200 with the reason, and metrics 0', async () => {
  const check = async (name: string) => (await ask(0, 'GET', `/.davgate/${name}`)).text;
  expect((await ask(0, 'GET', '/.davgate/readyz')).status).toBe(200);
  expect(await check('metrics')).toContain('\ndavgate_shared_state_up 1\n');
  await redis.kill();
  const unready = { status: 503, text: '{"status":"unready","reason":"the shared state is away"}' };
  await expectSoon(() => ask(0, 'GET', '/.davgate/readyz')).toMatchObject(unready);
  const health = await ask(0, 'GET', '/.davgate/healthz');
  expect(health.status).toBe(200);
  expect(JSON.parse(health.text)).toMatchObject({
    status: 'ok',
    stateTrouble: expect.stringContaining(`127.0.0.1:${redis.port}`),
  });
  expect(await check('metrics')).toContain('\ndavgate_shared_state_up 0\n');
  await redis.start();
  await expectSoon(() => ask(0, 'GET', '/.davgate/readyz')).toMatchObject({ status: 200 });
  expect(await check('healthz')).not.toContain('stateTrouble');
});

test('with Redis a local file has at most 1 MiB: PUT and MOVE of a larger one answer 413, and the moved file stays', async () => {
  const allowed = 'x'.repeat(1024 * 1024);
  expect((await ask(0, 'PUT', '/._a', { body: allowed })).status).toBe(201);
  expect((await ask(0, 'PUT', '/._a', { body: `${allowed}x` })).status).toBe(413);
  expect((await ask(1, 'GET', '/._a')).text === allowed).toBe(true);
  expect((await ask(0, 'PUT', '/large', { body: `${allowed}x` })).status).toBe(201);
  const headers = { Destination: new URL('/._large', gateways[0]?.url).href };
  expect((await ask(0, 'MOVE', '/large', { headers })).status).toBe(413);
  expect((await ask(0, 'GET', '/large')).status).toBe(200);
});
