import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Drive } from '../../../src/dav/context.ts';
import { Announcer } from '../../../src/drive/changes.ts';
import { FileError } from '../../../src/drive/errors.ts';
import { createDriveView } from '../../../src/drive/view/drive-view.ts';
import type { ViewedDrive } from '../../../src/drive/view/mounts.ts';
import { type DavServer, startDav } from '../../support/dav.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { MemoryFiles } from '../../support/memory-files.ts';
import { memoryState } from '../../support/memory-state.ts';
import { parseMultistatus } from '../../support/multistatus.ts';
import { NO_HISTORY } from '../../support/no-history.ts';
import { path } from '../../support/paths.ts';

// Users who see several drives as folders, or a folder of a drive as the whole of it.

function memoryDrive(): ViewedDrive & { readonly files: MemoryFiles } {
  const state = memoryState();
  const files = new MemoryFiles({ clock: new ManualClock(), properties: state.properties });
  const more = { search: async () => ({ entries: [] }), thumbnail: async () => new Uint8Array() };
  const parts = { history: NO_HISTORY, changes: new Announcer(), catchUp: undefined };
  return { files: Object.assign(files, more), state, ...parts };
}

let work: ReturnType<typeof memoryDrive>;
let home: ReturnType<typeof memoryDrive>;
let dav: DavServer;

/** Starts a server whose users see `mounts`, each `[at, drive, root, isReadOnly]`. */
async function serve(
  mounts: readonly (readonly [at: string, drive: ViewedDrive, root: string, isReadOnly?: boolean])[],
): Promise<DavServer> {
  const view: Drive = createDriveView(
    mounts.map(([at, drive, root, isReadOnly = false]) => ({
      ...{ at: path(at), drive, root: path(root), isReadOnly },
    })),
  );
  return startDav({ wrap: () => view });
}

async function hrefs(target: string, depth: string): Promise<readonly string[]> {
  const { status, text } = await dav.send('PROPFIND', target, { headers: { Depth: depth } });
  expect(status).toBe(207);
  return (await parseMultistatus(text)).map(({ href }) => href);
}

const statusOf = async (method: string, target: string, headers = {}, body?: string): Promise<number> =>
  (await dav.send(method, target, { headers, ...(body !== undefined && { body }) })).status;

const contentIn = (drive: typeof work, at: string) => drive.files.contentAt(path(at))?.toString();

const LOCK_BODY =
  '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';

async function lockToken(target: string, user = 'ann'): Promise<string> {
  const { status, headers } = await dav.send('LOCK', target, { body: LOCK_BODY, user });
  expect([200, 201]).toContain(status);
  return String(headers['lock-token']);
}

beforeEach(() => {
  work = memoryDrive();
  home = memoryDrive();
});
afterEach(() => dav.close());

describe('two drives of a user', () => {
  beforeEach(async () => {
    dav = await serve([
      ['/Work', work, '/'],
      ['/home', home, '/'],
    ]);
    expect(await statusOf('PUT', '/Work/a.txt', {}, 'at work')).toBe(201);
    expect(await statusOf('MKCOL', '/home/sub')).toBe(201);
    expect(await statusOf('PUT', '/home/sub/b.txt', {}, 'at home')).toBe(201);
  });

  test('each drive is a folder at the top, with hrefs below it, and has its own files', async () => {
    expect(await hrefs('/', '1')).toEqual(['/', '/Work/', '/home/']);
    expect(await hrefs('/Work/', '1')).toEqual(['/Work/', '/Work/a.txt']);
    expect(await hrefs('/work/a.txt', '0')).toEqual(['/work/a.txt']);
    expect(await hrefs('/', 'infinity')).toEqual([
      ...['/', '/Work/', '/home/', '/Work/a.txt', '/home/sub/', '/home/sub/b.txt'],
    ]);
    expect([contentIn(work, '/a.txt'), contentIn(home, '/sub/b.txt')]).toEqual(['at work', 'at home']);
    expect((await dav.send('GET', '/home/sub/b.txt')).text).toBe('at home');
  });

  test('a listing of the top names each drive even while the service of one does not answer', async () => {
    work.files.failNext('stat', new FileError('offline', 'the service cannot be reached'));
    expect(await hrefs('/', '1')).toEqual(['/', '/Work/', '/home/']);
  });

  test.each([
    ['PUT', '/file', {}, 'x', 403],
    ['MKCOL', '/third', {}, undefined, 403],
    ['DELETE', '/Work', {}, undefined, 403],
    ['DELETE', '/', {}, undefined, 403],
    ['MOVE', '/Work/', { Destination: '/Other/' }, undefined, 403],
    ['MOVE', '/Work/', { Destination: '/home/work/' }, undefined, 403],
    ['COPY', '/home/sub/', { Destination: '/Work/' }, undefined, 403],
    ['COPY', '/Work/a.txt', { Destination: '/home/a.txt' }, undefined, 403],
    ['MOVE', '/Work/a.txt', { Destination: '/home/a.txt' }, undefined, 403],
    ['LOCK', '/', {}, LOCK_BODY, 403],
    ['LOCK', '/new', {}, LOCK_BODY, 403],
    ['PUT', '/none/file', {}, 'x', 409],
    ['MKCOL', '/none/sub', {}, undefined, 409],
    ['GET', '/none', {}, undefined, 404],
    ['PROPFIND', '/none/x', {}, undefined, 404],
  ] as const)(
    '%s %s with the headers %j is refused, and both drives stay as they are',
    async (method, target, headers, body, status) => {
      const answer = await dav.send(method, target, { headers, ...(body !== undefined && { body }) });
      expect(answer.status).toBe(status);
      expect(answer.text).not.toBe('');
      expect([contentIn(work, '/a.txt'), contentIn(home, '/sub/b.txt')]).toEqual(['at work', 'at home']);
      expect(await hrefs('/', '1')).toEqual(['/', '/Work/', '/home/']);
      expect(await work.state.locks.within(0, path('/'))).toEqual([]);
    },
  );

  test('COPY and MOVE within a drive work, and Location begins with its folder', async () => {
    const headers = { Destination: `${dav.url}/home/sub/c.txt` };
    const copied = await dav.send('COPY', '/home/sub/b.txt', { headers });
    expect([copied.status, copied.headers.location]).toEqual([201, '/home/sub/c.txt']);
    expect(await statusOf('MOVE', '/home/sub/c.txt', { Destination: '/home/d.txt' })).toBe(201);
    expect(contentIn(home, '/d.txt')).toBe('at home');
  });

  test('a lock in one drive protects the file there, and has its root below that drive’s folder', async () => {
    const token = await lockToken('/home/sub/b.txt');
    expect((await home.state.locks.within(0, path('/'))).map(({ root }) => root)).toEqual(['/sub/b.txt']);
    expect(await work.state.locks.within(0, path('/'))).toEqual([]);
    expect(await statusOf('PUT', '/home/sub/b.txt', {}, 'other')).toBe(423);
    expect(await statusOf('DELETE', '/home/sub')).toBe(423);
    const shown = await dav.send('PROPFIND', '/home/sub/b.txt', { headers: { Depth: '0' } });
    expect(shown.text).toContain('<D:lockroot><D:href>/home/sub/b.txt</D:href></D:lockroot>');
    expect(await statusOf('PUT', '/home/sub/b.txt', { If: `(${token})` }, 'mine')).toBe(204);
    expect(await statusOf('LOCK', '/home/sub/b.txt', { If: `(${token})` })).toBe(200);
    expect(await statusOf('UNLOCK', '/home/sub/b.txt', { 'Lock-Token': token })).toBe(204);
    expect(await statusOf('PUT', '/home/sub/b.txt', {}, 'again')).toBe(204);
  });

  test('properties of the two roots, which have the same id in their drives, are kept apart', async () => {
    const set = (value: string) =>
      `<propertyupdate xmlns="DAV:"><set><prop><x xmlns="urn:x">${value}</x></prop></set></propertyupdate>`;
    expect(await statusOf('PROPPATCH', '/Work/', {}, set('of work'))).toBe(207);
    expect(await statusOf('PROPPATCH', '/home/', {}, set('of home'))).toBe(207);
    const body = '<propfind xmlns="DAV:"><prop><x xmlns="urn:x"/></prop></propfind>';
    const listed = await dav.send('PROPFIND', '/', { headers: { Depth: '1' }, body });
    expect(listed.text).toMatch(/\/Work\/<.*of work.*\/home\/<.*of home/s);
    const refused = await dav.send('PROPPATCH', '/', { body: set('of both') });
    expect(refused.text).toContain('403 Forbidden');
  });

  test('one of two drives can be read-only', async () => {
    await dav.close();
    dav = await serve([
      ['/Work', work, '/', true],
      ['/home', home, '/'],
    ]);
    expect(await statusOf('PUT', '/Work/a.txt', {}, 'other')).toBe(403);
    expect(await statusOf('PUT', '/home/new', {}, 'x')).toBe(201);
    expect((await dav.send('OPTIONS', '/', { agent: 'WebDAVFS/3.0.0' })).headers['dav']).toMatch(
      /^1, 2, 3\b/,
    );
  });
});

describe('a root folder of a user', () => {
  beforeEach(async () => {
    dav = await serve([['/', work, '/People/Ann']]);
  });

  test('the folder is made at the first request, and the user sees nothing above it', async () => {
    expect(await hrefs('/', '1')).toEqual(['/']);
    expect(await statusOf('PUT', '/a%20b.txt', {}, 'of ann')).toBe(201);
    expect(contentIn(work, '/People/Ann/a b.txt')).toBe('of ann');
    expect(await hrefs('/', 'infinity')).toEqual(['/', '/a%20b.txt']);
    expect(await statusOf('GET', '/People/Ann/a%20b.txt')).toBe(404);
    expect(await statusOf('GET', '/../Ann/a%20b.txt')).toBe(400);
    expect(await statusOf('MOVE', '/a%20b.txt', { Destination: '/c.txt' })).toBe(201);
    expect(contentIn(work, '/People/Ann/c.txt')).toBe('of ann');
    expect(await statusOf('DELETE', '/')).toBe(403);
  });

  test('PUT below a lock that another user holds above the root folder answers 423 with the lock root /', async () => {
    const whole = await startDav({ wrap: () => ({ files: work.files, state: work.state }) });
    expect(await statusOf('PUT', '/c.txt', {}, 'of ann')).toBe(201);
    const locked = await whole.send('LOCK', '/People', { body: LOCK_BODY, user: 'bob' });
    expect(locked.status).toBe(200);
    const refused = await dav.send('PUT', '/c.txt', { body: 'other' });
    expect([refused.status, refused.text]).toEqual([423, expect.stringContaining('<D:href>/</D:href>')]);
    await whole.close();
  });
});
