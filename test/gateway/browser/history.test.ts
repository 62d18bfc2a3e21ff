import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { type FailingFront, startFailingFront } from '../../support/failing-front.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';

// Versions, trash and undo as the web application calls them; each test has a folder of its own.

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;

let service: TestService;
let front: FailingFront;
let gateway: TestGateway;
let folder = '';
let folders = 0;

beforeAll(async () => {
  service = await startTestService();
  front = await startFailingFront(service.url);
  gateway = await startTestGateway({ service: { ...service, url: front.url } });
});
beforeEach(async () => {
  folders += 1;
  folder = `/folder ${folders}`;
  await dav('MKCOL', '');
});
afterAll(async () => {
  await gateway.close();
  await front.close();
  await service.close();
});

/** Sends a WebDAV request for a path below the folder. */
function dav(method: string, path: string, init: RequestInit = {}): Promise<Response> {
  return fetch(new URL(encodeURI(`${folder}${path}`), gateway.url), { method, ...init });
}

async function put(path: string, body: string): Promise<void> {
  expect([201, 204]).toContain((await dav('PUT', path, { body })).status);
}

async function textOf(path: string): Promise<string> {
  const answer = await dav('GET', path);
  return answer.ok ? answer.text() : String(answer.status);
}

async function remove(path: string): Promise<void> {
  const answer = await dav('DELETE', path, { headers: { prefer: 'recoverable' } });
  expect([answer.status, answer.headers.get('preference-applied')]).toEqual([204, 'recoverable']);
}

function ask(name: string, values: Readonly<Record<string, string>>, at = gateway.url): Promise<Response> {
  return fetch(new URL(`/.davgate/api/${name}?${new URLSearchParams(values)}`, at));
}

function call(name: string, values: Readonly<Record<string, string>>, at = gateway.url): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  const body = JSON.stringify(values);
  return fetch(new URL(`/.davgate/api/${name}`, at), { method: 'POST', headers, body });
}

interface Version {
  readonly rev: string;
  readonly sizeBytes: number;
  readonly isCurrent: boolean;
}

async function versionsOf(path: string): Promise<readonly Version[]> {
  const answer = await ask('versions', { path: `${folder}${path}` });
  expect(answer.status).toBe(200);
  const { versions } = (await answer.json()) as { readonly versions: readonly Version[] };
  return versions;
}

interface Deleted {
  readonly name: string;
  readonly kind: string;
}

async function trashed(): Promise<readonly Deleted[]> {
  const answer = await ask('trash', { path: folder });
  expect(answer.status).toBe(200);
  const { items } = (await answer.json()) as { readonly items: readonly Deleted[] };
  return items;
}

describe('versions', () => {
  test('the versions of a file are listed with their sizes, the current one first', async () => {
    for (const text of ['1', '22', '333']) await put('/a.txt', text);
    expect(await versionsOf('/a.txt')).toMatchObject([
      { sizeBytes: 3, isCurrent: true },
      { sizeBytes: 2, isCurrent: false },
      { sizeBytes: 1, isCurrent: false },
    ]);
  });

  test('an old version is downloaded as a file that no browser shows as a page', async () => {
    await put('/a.html', '<script>evil()</script>');
    await put('/a.html', 'new');
    const [, old] = await versionsOf('/a.html');
    const answer = await ask('version', { path: `${folder}/a.html`, rev: old?.rev ?? '' });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-disposition')).toBe('attachment');
    expect(answer.headers.get('content-type')).toBe('application/octet-stream');
    expect(answer.headers.get('content-security-policy')).toBe('sandbox');
    expect(await answer.text()).toBe('<script>evil()</script>');
  });

  test('a restored version is what GET answers, and the replaced one stays a version', async () => {
    await put('/a.txt', 'old');
    await put('/a.txt', 'newer');
    const [, old] = await versionsOf('/a.txt');
    expect((await call('restore', { path: `${folder}/a.txt`, rev: old?.rev ?? '' })).status).toBe(200);
    expect(await textOf('/a.txt')).toBe('old');
    expect((await versionsOf('/a.txt')).map(({ sizeBytes }) => sizeBytes)).toEqual([3, 5, 3]);
  });

  test('a renamed file keeps its versions', async () => {
    await put('/a.txt', 'old');
    await put('/a.txt', 'newer');
    const Destination = new URL(encodeURI(`${folder}/b.txt`), gateway.url).href;
    expect((await dav('MOVE', '/a.txt', { headers: { Destination } })).status).toBe(201);
    const versions = await versionsOf('/b.txt');
    expect(versions.filter(({ isCurrent }) => isCurrent)).toMatchObject([{ sizeBytes: 5 }]);
    const rev = versions.find(({ sizeBytes }) => sizeBytes === 3)?.rev ?? '';
    expect((await call('restore', { path: `${folder}/b.txt`, rev })).status).toBe(200);
    expect([await textOf('/b.txt'), await textOf('/a.txt')]).toEqual(['old', '404']);
  });

  test('what is no file has no versions, and a revision of another file is refused with 404', async () => {
    await put('/a.txt', 'a');
    await put('/b.txt', 'b');
    const [other] = await versionsOf('/b.txt');
    const rev = other?.rev ?? '';
    expect((await ask('versions', { path: `${folder}/never` })).status).toBe(404);
    expect((await ask('versions', { path: folder })).status).toBe(405);
    expect((await ask('versions', {})).status).toBe(400);
    expect((await ask('version', { path: `${folder}/a.txt`, rev })).status).toBe(404);
    expect((await call('restore', { path: `${folder}/a.txt`, rev })).status).toBe(404);
    expect((await call('restore', { path: `${folder}/a.txt` })).status).toBe(400);
    expect(await textOf('/a.txt')).toBe('a');
  });

  test('a version is not restored over a file that somebody has locked', async () => {
    await put('/a.txt', 'old');
    await put('/a.txt', 'new');
    const [, old] = await versionsOf('/a.txt');
    expect((await dav('LOCK', '/a.txt', { body: LOCK })).status).toBe(200);
    expect((await call('restore', { path: `${folder}/a.txt`, rev: old?.rev ?? '' })).status).toBe(423);
    expect(await textOf('/a.txt')).toBe('new');
  });
});

describe('the trash', () => {
  test('a DELETE that prefers to be recoverable fills the trash, and any other deletes for good', async () => {
    await put('/kept.txt', 'x');
    await put('/gone.txt', 'x');
    await remove('/kept.txt');
    expect((await dav('DELETE', '/gone.txt')).headers.get('preference-applied')).toBeNull();
    expect(await trashed()).toMatchObject([{ name: 'kept.txt', kind: 'file', sizeBytes: 1 }]);
  });

  test('a deleted file and a deleted folder come back as they were', async () => {
    await dav('MKCOL', '/in');
    await dav('MKCOL', '/in/empty');
    await put('/a.txt', 'a');
    await put('/in/b.txt', 'b');
    await remove('/a.txt');
    await remove('/in');
    expect(await trashed()).toMatchObject([
      { name: 'a.txt', kind: 'file' },
      { name: 'in', kind: 'folder' },
    ]);
    for (const path of [`${folder}/a.txt`, `${folder}/in`])
      expect((await call('undelete', { path })).status).toBe(200);
    expect([await textOf('/a.txt'), await textOf('/in/b.txt')]).toEqual(['a', 'b']);
    expect((await dav('PROPFIND', '/in/empty', { headers: { depth: '0' } })).status).toBe(207);
    expect(await trashed()).toEqual([]);
  });

  test('a file that was renamed is not in the trash', async () => {
    await put('/a.txt', 'a');
    const Destination = new URL(encodeURI(`${folder}/b.txt`), gateway.url).href;
    expect((await dav('MOVE', '/a.txt', { headers: { Destination } })).status).toBe(201);
    expect(await trashed()).toEqual([]);
  });

  test('what is there again is not replaced by a deleted file: 412, which says so', async () => {
    await put('/a.txt', 'old');
    await remove('/a.txt');
    await put('/a.txt', 'new');
    const answer = await call('undelete', { path: `${folder}/a.txt` });
    expect([answer.status, (await answer.text()).trim()]).toEqual([
      412,
      `something is at ${folder}/a.txt again`,
    ]);
    expect(await textOf('/a.txt')).toBe('new');
  });

  test('what was never there, or is in a folder that somebody has locked, is not brought back', async () => {
    await put('/a.txt', 'a');
    await remove('/a.txt');
    expect((await call('undelete', { path: `${folder}/never` })).status).toBe(404);
    const headers = { depth: 'infinity' };
    expect((await dav('LOCK', '', { body: LOCK, headers })).status).toBe(200);
    expect((await call('undelete', { path: `${folder}/a.txt` })).status).toBe(423);
    expect(await textOf('/a.txt')).toBe('404');
  });

  test('the trash of a missing folder is answered 404', async () => {
    expect((await ask('trash', { path: `${folder}/never` })).status).toBe(404);
  });
});

test('while the service is away, versions, trash and restores are answered 503, and afterwards they work', async () => {
  await put('/a.txt', 'a');
  const [current] = await versionsOf('/a.txt');
  const values = { path: `${folder}/a.txt`, rev: current?.rev ?? '' };
  const impatient = await startTestGateway({ service: { ...service, url: front.url }, deadlineMs: 300 });
  onTestFinished(() => impatient.close());
  front.leave({ status: 500 });
  const answers = [
    await ask('versions', values, impatient.url),
    await ask('trash', { path: folder }, impatient.url),
    await ask('version', values, impatient.url),
    await call('restore', values, impatient.url),
    await call('undelete', { path: `${folder}/deleted` }, impatient.url),
  ];
  front.comeBack();
  expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503]);
  expect(await versionsOf('/a.txt')).toHaveLength(1);
});
