import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectSoon } from '../../support/eventually.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { rpc } from '../../support/service-client.ts';

// Users who see a folder of the drive, or two as drives, beside one who sees all of it. What they learn and change by the
// functions of the web application and by WebDAV; each test has a drive of its own.

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;

/** Without it, the test service's account deletes for good. */
const RECOVERABLE = { headers: { prefer: 'recoverable' } };

/** Has the whole drive. */
const BOB = 'bob';
/** Has the folder /People/Ann as the whole drive. */
const ANN = 'ann';
/** May only read the same folder. */
const READER = 'reader';
/** Has /People/Eve as /own, and may only read /Shared as /shared. */
const EVE = 'eve';
/** Has /People/Kim as the whole drive, up to 10 bytes. */
const KIM = 'kim';

let service: TestService;
let gateway: TestGateway;

beforeAll(async () => {
  service = await startTestService();
});
beforeEach(async ({ task }) => {
  const root = `/drive of ${task.id}`;
  await rpc(service, 'files/create_folder_v2', { path: root });
  gateway = await startTestGateway({
    service,
    root,
    views: {
      [ANN]: [{ at: '/', root: '/People/Ann' }],
      [READER]: [{ at: '/', root: '/People/Ann', isReadOnly: true }],
      [KIM]: [{ at: '/', root: '/People/Kim', quotaBytes: 10 }],
      [EVE]: [
        { at: '/own', root: '/People/Eve' },
        { at: '/shared', root: '/Shared', isReadOnly: true },
      ],
    },
  });
  await gateway.following();
  for (const folder of ['/People', '/People/Ann', '/People/Eve', '/Shared', '/Secret'])
    expect((await dav(BOB, 'MKCOL', folder)).status).toBe(201);
});
afterEach(() => gateway.close());
afterAll(() => service.close());

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

async function answered(user: string, at: string, init: RequestInit): Promise<Answer> {
  const headers = new Headers(init.headers);
  headers.set('x-test-user', user);
  const answer = await fetch(new URL(at, gateway.url), { ...init, headers });
  return { status: answer.status, text: await answer.text(), headers: answer.headers };
}

function dav(user: string, method: string, path: string, init: RequestInit = {}): Promise<Answer> {
  return answered(user, encodeURI(path), { method, ...init });
}

async function put(user: string, path: string, body = 'content'): Promise<void> {
  expect([201, 204]).toContain((await dav(user, 'PUT', path, { body })).status);
}

function ask(user: string, name: string, values: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return answered(user, `/.davgate/api/${name}?${new URLSearchParams(values)}`, {});
}

function call(user: string, name: string, values: Readonly<Record<string, string>>): Promise<Answer> {
  const headers = { 'content-type': 'application/json' };
  return answered(user, `/.davgate/api/${name}`, { method: 'POST', headers, body: JSON.stringify(values) });
}

/** Returns the paths in the list `key` of a function's answer. */
async function pathsIn(answer: Promise<Answer>, key: string): Promise<readonly string[]> {
  const { status, text } = await answer;
  expect([status, text]).toEqual([200, expect.anything()]);
  const lists = JSON.parse(text) as Record<string, readonly { readonly path: string }[]>;
  return (lists[key] ?? []).map(({ path }) => path).sort();
}

async function lockedBy(user: string, path: string): Promise<string> {
  const { status, headers } = await dav(user, 'LOCK', path, { body: LOCK });
  expect([200, 201]).toContain(status);
  return headers.get('lock-token') ?? '';
}

describe('what a user with a root folder learns', () => {
  test('a function that finds nothing is refused with the path that the user sees', async () => {
    const calls = [
      ['versions', { path: '/none.txt' }],
      ['version', { path: '/none.txt', rev: '1' }],
      ['trash', { path: '/none' }],
      ['links', { path: '/none.txt' }],
      ['thumbnail', { path: '/none.png', rev: '1' }],
    ] as const;
    for (const [name, values] of calls) {
      const { status, text } = await ask(ANN, name, values);
      expect(status, name).toBe(404);
      expect(text, name).toContain(values.path);
      expect(text, name).not.toMatch(/People|Ann/);
    }
  });

  test('the refusal of a function that changes something does not name the root folder', async () => {
    const calls = [
      ['restore', { path: '/a.txt', rev: '1' }],
      ['undelete', { path: '/a.txt' }],
      ['undelete', { path: '/' }],
      ['share', { path: '/none.txt' }],
      ['unshare', { path: '/a.txt', url: 'https://links.example/x' }],
      ['change-link', { path: '/a.txt', url: 'https://links.example/x', expires: 'never' }],
      ['upload', { path: '/a.txt', size: '1' }],
      ['upload', { path: '/none/sub/a.txt', size: '1' }],
      ['upload', { path: '/', size: '1' }],
    ] as const;
    await put(ANN, '/a.txt');
    for (const [name, values] of calls) {
      const { status, text } = await call(ANN, name, values);
      const what = `${name} ${values.path}`;
      expect(status, what).toBeGreaterThanOrEqual(400);
      expect(text, what).toContain(values.path);
      expect(text, what).not.toMatch(/People|Ann/);
    }
  });

  test('the refusal of a WebDAV request does not name the root folder', async () => {
    const requests = [
      ['PUT', '/none/a.txt', {}, 'x'],
      ['PUT', '/a.txt/below', {}, 'x'],
      ['MKCOL', '/a.txt', {}, undefined],
      ['MKCOL', '/none/sub', {}, undefined],
      ['DELETE', '/', {}, undefined],
      ['GET', '/none', {}, undefined],
      ['MOVE', '/sub', { destination: '/sub/below' }, undefined],
      ['COPY', '/none', { destination: '/b' }, undefined],
      ['COPY', '/a.txt', { destination: '/none/b' }, undefined],
      ['COPY', '/a.txt', { destination: '/../Eve/b' }, undefined],
      ['LOCK', '/none/a', {}, LOCK],
    ] as const;
    await put(ANN, '/a.txt');
    await dav(ANN, 'MKCOL', '/sub');
    for (const [method, path, headers, body] of requests) {
      const { status, text } = await dav(ANN, method, path, { headers, ...(body && { body }) });
      expect(status, `${method} ${path}`).toBeGreaterThanOrEqual(400);
      expect(text, `${method} ${path}`).not.toMatch(/People|Ann/);
    }
  });

  test('search finds only what lies in the root, with the paths that the user sees, and not the root itself', async () => {
    await put(BOB, '/Secret/report ann.txt');
    await put(BOB, '/People/Eve/report ann.txt');
    await put(ANN, '/report ann.txt');
    await expectSoon(() => pathsIn(ask(BOB, 'search', { query: 'ann' }), 'items')).toHaveLength(4);
    expect(await pathsIn(ask(ANN, 'search', { query: 'ann' }), 'items')).toEqual(['/report ann.txt']);
    expect(await pathsIn(ask(ANN, 'search', { query: 'secret' }), 'items')).toEqual([]);
  });

  test('versions and trash are those of the root, also after a file came from elsewhere', async () => {
    await put(BOB, '/Secret/draft.txt', 'one');
    const moved = { headers: { destination: '/People/Ann/final.txt' } };
    expect((await dav(BOB, 'MOVE', '/Secret/draft.txt', moved)).status).toBe(201);
    await put(ANN, '/final.txt', 'two');
    const { text } = await ask(ANN, 'versions', { path: '/final.txt' });
    expect(text).not.toMatch(/Secret|draft/);
    await put(ANN, '/gone.txt', 'gone');
    await dav(ANN, 'DELETE', '/gone.txt', RECOVERABLE);
    await put(BOB, '/Secret/other.txt');
    await dav(BOB, 'DELETE', '/Secret/other.txt', RECOVERABLE);
    expect(await pathsIn(ask(ANN, 'trash', { path: '/' }), 'items')).toEqual(['/gone.txt']);
    expect((await call(ANN, 'undelete', { path: '/gone.txt' })).status).toBe(200);
    expect((await dav(BOB, 'GET', '/People/Ann/gone.txt')).text).toBe('gone');
  });

  test('restore refuses a version of a file outside the root', async () => {
    await put(BOB, '/Secret/a.txt', 'secret');
    await put(ANN, '/a.txt', 'own');
    const { text } = await ask(BOB, 'versions', { path: '/Secret/a.txt' });
    const rev = /"rev":"([^"]+)"/.exec(text)?.[1] ?? '';
    expect((await call(ANN, 'restore', { path: '/a.txt', rev })).status).toBe(404);
    expect((await ask(ANN, 'version', { path: '/a.txt', rev })).status).toBe(404);
    expect((await dav(ANN, 'GET', '/a.txt')).text).toBe('own');
  });

  test('only the links in the root are listed, and no other one can be changed or revoked', async () => {
    await put(BOB, '/Secret/a.txt');
    await put(ANN, '/a.txt');
    const { url } = JSON.parse((await call(BOB, 'share', { path: '/Secret/a.txt' })).text) as { url: string };
    expect((await call(ANN, 'share', { path: '/a.txt' })).status).toBe(200);
    expect(await pathsIn(ask(ANN, 'links'), 'links')).toEqual(['/a.txt']);
    expect((await ask(ANN, 'links')).text).not.toMatch(/People|Secret/);
    expect((await call(ANN, 'unshare', { path: '/a.txt', url })).status).toBe(404);
    expect((await call(ANN, 'change-link', { path: '/a.txt', url, expires: 'never' })).status).toBe(404);
    expect(await pathsIn(ask(BOB, 'links'), 'links')).toEqual(['/People/Ann/a.txt', '/Secret/a.txt']);
  });

  test('a lock above the root is shown at the top, one beside it not at all, and neither can be ended', async () => {
    await put(ANN, '/a.txt');
    const above = await lockedBy(BOB, '/People');
    const beside = await lockedBy(BOB, '/Secret');
    expect(await pathsIn(ask(ANN, 'locks', { path: '/' }), 'locks')).toEqual(['/']);
    const shown = await dav(ANN, 'PROPFIND', '/a.txt', { headers: { depth: '0' } });
    expect(shown.text).toContain('<D:lockroot><D:href>/</D:href></D:lockroot>');
    expect(shown.text).not.toMatch(/People|Secret/);
    for (const token of [above, beside]) {
      const headers = { 'lock-token': token };
      expect([403, 409]).toContain((await dav(ANN, 'UNLOCK', '/a.txt', { headers })).status);
    }
    expect((await dav(ANN, 'PUT', '/a.txt', { body: 'x' })).status).toBe(423);
    expect((await call(ANN, 'upload', { path: '/b.txt', size: '1' })).status).toBe(423);
    expect((await dav(BOB, 'PUT', '/Secret/x', { body: 'x' })).status).toBe(423);
  });

  test('the stream of changes names what changes in the root, and nothing of a change outside it', async () => {
    const left = new AbortController();
    const headers = { 'x-test-user': ANN };
    const answer = await fetch(`${gateway.url}/.davgate/api/changes`, { headers, signal: left.signal });
    let text = '';
    const reading = (async () => {
      for await (const piece of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) text += piece;
    })().catch(() => undefined);
    await put(BOB, '/Secret/a.txt');
    await dav(BOB, 'MKCOL', '/People/Eve/sub');
    await put(BOB, '/People/Ann/Sub.txt');
    await dav(ANN, 'MKCOL', '/own');
    await put(ANN, '/own/last.txt');
    await expectSoon(() => text).toContain('"/own"');
    expect(text).not.toMatch(/People|Secret|Eve|Ann/);
    expect(text).toContain('"folders":["/"');
    left.abort();
    await reading;
  });
});

describe('what a user with a root folder can change', () => {
  test.each(['DELETE', 'MOVE'])(
    'after %s of the root by another user, it is made again, empty',
    async (method) => {
      await put(ANN, '/a.txt');
      const init = method === 'MOVE' ? { headers: { destination: '/Secret/old' } } : {};
      expect([201, 204]).toContain((await dav(BOB, method, '/People/Ann', init)).status);
      const listed = await dav(ANN, 'PROPFIND', '/', { headers: { depth: '1' } });
      expect([listed.status, listed.text.match(/<D:href>/g)?.length]).toEqual([207, 1]);
      await put(ANN, '/b.txt', 'new');
      expect((await dav(BOB, 'GET', '/People/Ann/b.txt')).text).toBe('new');
    },
  );

  test('an upload is stored below the root however many others come meanwhile, and nobody else may send its parts', async () => {
    const { text } = await call(ANN, 'upload', { path: '/big.bin', size: '4' });
    const { id } = JSON.parse(text) as { id: string };
    const headers = { 'content-type': 'application/octet-stream' };
    const part = (user: string) =>
      answered(user, `/.davgate/api/upload-part?id=${id}&offset=0`, {
        method: 'POST',
        headers,
        body: 'data',
      });
    for (const user of [BOB, EVE, READER]) {
      expect((await part(user)).status).toBe(404);
      expect((await ask(user, 'upload-state', { id })).status).toBe(404);
      expect((await call(user, 'end-upload', { id })).status).toBe(404);
    }
    gateway.serveOthers();
    expect(JSON.parse((await part(ANN)).text)).toMatchObject({ isStored: true });
    expect((await dav(BOB, 'GET', '/People/Ann/big.bin')).text).toBe('data');
  });

  test('a path with .. or in another letter case of the root’s name leads nowhere outside', async () => {
    await put(BOB, '/Secret/a.txt');
    for (const path of ['/../../Secret/a.txt', '/%2e%2e/%2e%2e/Secret/a.txt'])
      expect((await ask(ANN, 'versions', { path })).status).toBeGreaterThanOrEqual(400);
    expect((await ask(ANN, 'versions', { path: '/people/ANN/a.txt' })).status).toBe(404);
    const names = JSON.stringify(['../../Secret/a.txt']);
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    const body = new URLSearchParams({ folder: '/', names });
    const zipped = await answered(ANN, '/.davgate/api/zip', { method: 'POST', headers, body });
    expect(zipped.status).toBe(400);
  });
});

describe('a user who may only read', () => {
  test.each([
    ['upload', { path: '/new.txt', size: '1' }],
    ['restore', { path: '/a.txt', rev: '1' }],
    ['undelete', { path: '/a.txt' }],
    ['share', { path: '/a.txt' }],
    ['change-link', { path: '/a.txt', url: 'x', expires: 'never' }],
    ['unshare', { path: '/a.txt', url: 'x' }],
    ['retry-write', { id: '1' }],
    ['discard-write', { id: '1' }],
    ['end-upload', { id: '1' }],
  ])('%s with %j changes nothing', async (name, values) => {
    await put(ANN, '/a.txt');
    const { status } = await call(READER, name, values);
    expect(status).toBe('id' in values ? 404 : 403);
  });

  test.each([
    ['PUT', '/new.txt', {}],
    ['DELETE', '/a.txt', {}],
    ['MKCOL', '/new', {}],
    ['LOCK', '/new.txt', {}],
    ['UNLOCK', '/a.txt', { 'lock-token': '<urn:x>' }],
    ['PROPPATCH', '/a.txt', {}],
    ['COPY', '/a.txt', { destination: '/b.txt' }],
    ['MOVE', '/a.txt', { destination: '/b.txt' }],
  ] as const)('%s %s is refused', async (method, path, headers) => {
    await put(ANN, '/a.txt');
    expect((await dav(READER, method, path, { headers })).status).toBe(403);
  });

  test('a drive that is only read gives no copy and takes none, although another one may be changed', async () => {
    await put(BOB, '/Shared/a.txt', 'shared');
    await put(EVE, '/own/b.txt', 'own');
    for (const [method, path, destination] of [
      ['MOVE', '/shared/a.txt', '/own/a.txt'],
      ['COPY', '/own/b.txt', '/shared/b.txt'],
      ['MOVE', '/own/b.txt', '/SHARED/b.txt'],
      ['COPY', '/own/b.txt', '/shared'],
    ] as const)
      expect((await dav(EVE, method, path, { headers: { destination } })).status).toBe(403);
    expect((await call(EVE, 'share', { path: '/Shared/a.txt' })).status).toBe(403);
    expect((await dav(BOB, 'GET', '/Shared/b.txt')).status).toBe(404);
    expect((await dav(BOB, 'GET', '/Shared/a.txt')).text).toBe('shared');
  });
});

describe('a user with two drives', () => {
  test('search, links, trash and locks name each with its folder', async () => {
    await put(BOB, '/Shared/plan one.txt');
    await put(BOB, '/Secret/plan two.txt');
    await put(EVE, '/own/plan three.txt');
    await expectSoon(() => pathsIn(ask(BOB, 'search', { query: 'plan' }), 'items')).toHaveLength(3);
    const found: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const { text } = await ask(EVE, 'search', { query: 'plan', ...(cursor && { cursor }) });
      const page = JSON.parse(text) as { items: { path: string }[]; cursor: string | null };
      found.push(...page.items.map(({ path }) => path));
      cursor = page.cursor;
    }
    expect(found).toEqual(['/own/plan three.txt', '/shared/plan one.txt']);
    expect((await call(EVE, 'share', { path: '/own/plan three.txt' })).status).toBe(200);
    expect(await pathsIn(ask(EVE, 'links'), 'links')).toEqual(['/own/plan three.txt']);
    expect(await pathsIn(ask(EVE, 'links', { path: '/' }), 'links')).toEqual([]);
    await lockedBy(EVE, '/own/plan three.txt');
    expect(await pathsIn(ask(EVE, 'locks', { path: '/own' }), 'locks')).toEqual(['/own/plan three.txt']);
    await dav(BOB, 'DELETE', '/Shared/plan one.txt', RECOVERABLE);
    expect(await pathsIn(ask(EVE, 'trash', { path: '/shared' }), 'items')).toEqual(['/shared/plan one.txt']);
    expect(await pathsIn(ask(EVE, 'trash', { path: '/' }), 'items')).toEqual([]);
    const { text } = await ask(EVE, 'versions', { path: '/own/none.txt' });
    expect(text).toContain('/own/none.txt');
    expect(text).not.toMatch(/People/);
  });

  test('PUT at the folder of a drive that was removed makes no file there', async () => {
    await put(EVE, '/own/a.txt');
    await dav(BOB, 'DELETE', '/People/Eve');
    expect((await dav(EVE, 'PUT', '/own', { body: 'x' })).status).toBe(405);
    expect((await dav(BOB, 'GET', '/People/Eve')).text).not.toBe('x');
  });
});

test('an upload in parts beyond the quota is refused before any byte is sent, and a running one reserves its size', async () => {
  const begin = (path: string, size: string) => call(KIM, 'upload', { path, size });
  const refused = await begin('/big', '11');
  expect([refused.status, refused.text]).toEqual([507, expect.stringContaining('no room for /big')]);
  const { status, text } = await begin('/fits', '10');
  expect(status).toBe(200);
  expect((await begin('/more', '1')).status).toBe(507);
  expect((await dav(KIM, 'PUT', '/more', { body: 'x' })).status).toBe(507);
  const { id } = JSON.parse(text) as { readonly id: string };
  expect((await call(KIM, 'end-upload', { id })).status).toBe(200);
  await expectSoon(async () => (await dav(KIM, 'PUT', '/more', { body: 'x' })).status).toBe(201);
});
