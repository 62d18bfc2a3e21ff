import { describe, expect, test } from 'vitest';
import {
  type Answer,
  ask,
  BOB,
  call,
  dav,
  EVE,
  everything,
  put,
  to,
  withFolderRules,
  zip,
} from '../../support/folder-rules.ts';

// A user with rights by path, who tries everything, beside one who has the whole drive.

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;
const PATCH = '<propertyupdate xmlns="DAV:"><set><prop><x xmlns="urn:x">1</x></prop></set></propertyupdate>';

withFolderRules();

/** What a client can do at a path; `fresh` is a free name beside it. */
type Act = (path: string, fresh: string) => Promise<Answer>;

/** Each with the answers where the user may write, may read, and may not know of anything. */
const ACTS: readonly (readonly [name: string, act: Act, statuses: readonly [number, number, number]])[] = [
  ['OPTIONS', (path) => dav(EVE, 'OPTIONS', path), [200, 200, 200]],
  ['GET', (path) => dav(EVE, 'GET', path), [200, 200, 404]],
  ['HEAD', (path) => dav(EVE, 'HEAD', path), [200, 200, 404]],
  ['a range', (path) => dav(EVE, 'GET', path, { headers: { Range: 'bytes=0-1' } }), [206, 206, 404]],
  ['PROPFIND', (path) => dav(EVE, 'PROPFIND', path, { headers: { Depth: '0' } }), [207, 207, 404]],
  ['PROPFIND of all', (path) => dav(EVE, 'PROPFIND', path), [207, 207, 404]],
  ['PUT', (path) => dav(EVE, 'PUT', path, { body: 'new' }), [204, 403, 409]],
  ['PUT of a new file', (_, fresh) => dav(EVE, 'PUT', fresh, { body: 'new' }), [201, 403, 409]],
  ['MKCOL', (_, fresh) => dav(EVE, 'MKCOL', fresh), [201, 403, 409]],
  ['PROPPATCH', (path) => dav(EVE, 'PROPPATCH', path, { body: PATCH }), [207, 403, 404]],
  ['LOCK', (path) => dav(EVE, 'LOCK', path, { body: LOCK }), [200, 403, 409]],
  ['LOCK of a new file', (_, fresh) => dav(EVE, 'LOCK', fresh, { body: LOCK }), [201, 403, 409]],
  ['UNLOCK', (path) => dav(EVE, 'UNLOCK', path, { headers: { 'Lock-Token': '<a:b>' } }), [409, 403, 409]],
  ['COPY from there', (path, fresh) => dav(EVE, 'COPY', path, to(`/Open${fresh}`)), [201, 201, 404]],
  ['COPY to there', (path) => dav(EVE, 'COPY', '/Open/secret.txt', to(path)), [204, 403, 409]],
  ['MOVE to there', (_, fresh) => dav(EVE, 'MOVE', '/Open/moving.txt', to(fresh)), [201, 403, 409]],
  ['MOVE from there', (path, fresh) => dav(EVE, 'MOVE', path, to(`/Open${fresh}`)), [201, 403, 404]],
  ['DELETE', (path) => dav(EVE, 'DELETE', path), [204, 403, 404]],
  ['versions', (path) => ask('versions', { path }), [200, 200, 404]],
  ['version', async (path) => ask('version', { path, rev: await revOf(path) }), [200, 200, 404]],
  ['restore', async (path) => call('restore', { path, rev: await revOf(path) }), [200, 403, 404]],
  ['thumbnail', async (path) => ask('thumbnail', { path, rev: await revOf(path) }), [403, 403, 404]],
  ['undelete', (path) => call('undelete', { path }), [412, 403, 404]],
  ['links', (path) => ask('links', { path }), [200, 200, 404]],
  ['share', (path) => call('share', { path }), [200, 403, 404]],
  ['change-link', (path) => call('change-link', { path, url: 'x', expires: 'never' }), [404, 403, 404]],
  ['unshare', (path) => call('unshare', { path, url: 'x' }), [404, 403, 404]],
  ['upload', (_, fresh) => call('upload', { path: fresh, size: '3' }), [200, 403, 409]],
  ['locks', (path) => ask('locks', { path }), [200, 200, 200]],
  ['zip', (path) => zip(path.slice(0, path.lastIndexOf('/')), [nameIn(path)]), [200, 200, 404]],
];

const nameIn = (path: string) => path.slice(path.lastIndexOf('/') + 1);

/** Returns the revision of a file as its owner knows it; none of a missing file. */
async function revOf(path: string): Promise<string> {
  const { headers } = await dav(BOB, 'HEAD', path);
  return (headers.get('etag') ?? '"0123456789abcdef"').slice(1, -1);
}

const id = (name: string) => name.replaceAll(' ', '-');

describe('each request', () => {
  test.each(ACTS)('%s answers as the right at the path says', async (name, act, statuses) => {
    const answers: number[] = [];
    for (const folder of ['/Open', '/Public', '/Private']) {
      const path = `${folder}/${id(name)}.txt`;
      await put(path);
      await put('/Open/moving.txt', 'moving');
      await dav(BOB, 'MKCOL', `/Open${folder}`);
      const before = folder === '/Open' ? undefined : await everything();
      const { status } = await act(path, `${folder}/new-${id(name)}`);
      answers.push(status);
      if (status >= 400 && before) expect(await everything()).toBe(before);
    }
    expect(answers).toEqual(statuses);
  });

  test.each(ACTS)('%s answers for a hidden file as for one in a missing folder', async (name, act) => {
    await put('/Open/moving.txt', 'moving');
    await put(`/Private/${id(name)}.txt`);
    const [hidden, absent] = [`/Private/${id(name)}`, `/Missing/${id(name)}`];
    const [found, missing] = [
      await act(`${hidden}.txt`, `${hidden}-new`),
      await act(`${absent}.txt`, `${absent}-new`),
    ];
    expect([found.status, found.text]).toEqual([
      missing.status,
      missing.text.replaceAll('Missing', 'Private'),
    ]);
    expect(namesOf(found)).toEqual(namesOf(missing));
  });

  const readsOrChanges = ACTS.filter(
    ([name]) => !/^(PUT|LOCK|MKCOL|COPY to|MOVE to|upload|locks|OPTIONS)/.test(name),
  );
  test.each(readsOrChanges)('%s answers for a hidden folder as for a missing name', async (_, act) => {
    const [found, missing] = [await act('/Private', '/x'), await act('/Missing', '/y')];
    expect([found.status, found.text]).toEqual([
      missing.status,
      missing.text.replaceAll('Missing', 'Private'),
    ]);
  });
});

/** The names of the headers of an answer. */
function namesOf({ headers }: Answer): readonly string[] {
  return [...headers.keys()].sort();
}

describe('folders with rules in them', () => {
  test.each([
    ['DELETE', '/Team', {}],
    ['DELETE', '/Plans', {}],
    ['DELETE', '/Public/Inbox', {}],
    ['DELETE', '/People', {}],
    ['DELETE', '/People/Eve', {}],
    ['MOVE', '/Team', to('/Open/Team')],
    ['MOVE', '/Plans', to('/Open/Plans')],
    ['MOVE', '/Public/Inbox', to('/Open/Inbox')],
    ['MOVE', '/Team', to('/TEAM')],
    ['MOVE', '/Docs', to('/Team')],
    ['MOVE', '/Docs', to('/Private')],
    ['MOVE', '/Docs', to('/private')],
    ['MOVE', '/Docs', to('/Team/Bücher')],
    ['COPY', '/Open', to('/Team')],
    ['COPY', '/Open', to('/Plans')],
    ['COPY', '/Open', to('/Public/Inbox')],
    ['COPY', '/Team', to('/Open/Team')],
    ['COPY', '/', to('/Open/all')],
    ['COPY', '/People', to('/Open/People')],
    ['MKCOL', '/Private', {}],
    ['MKCOL', '/Team/Bu\u0308cher', {}],
    ['PUT', '/PRIVATE', { body: 'x' }],
    ['LOCK', '/Private', { body: LOCK }],
    ['LOCK', '/Plans', { body: LOCK }],
    ['PUT', '/People/new.txt', { body: 'x' }],
    ['MKCOL', '/Public/new', {}],
  ] as const)('%s %s with %j answers 403 with a reason, and changes nothing', async (method, path, init) => {
    const before = await everything();
    const { status, text } = await dav(EVE, method, path, init);
    const named = [path.normalize(), 'headers' in init ? decodeURI(init.headers.Destination) : ''];
    const reason = named.reduce((left, name) => left.replaceAll(name, ''), text);
    expect([status, text.length > 20, /Bücher|Private|Max/.test(reason)]).toEqual([403, true, false]);
    expect(await everything()).toBe(before);
  });

  test('a folder that may be written in a read-only one takes files, and the copy of a read-only one is writable', async () => {
    expect((await dav(EVE, 'PUT', '/Public/Inbox/a.txt', { body: 'a' })).status).toBe(201);
    expect((await dav(EVE, 'DELETE', '/Public/Inbox/a.txt')).status).toBe(204);
    expect((await dav(EVE, 'COPY', '/Plans/Old', to('/Open/Old'))).status).toBe(201);
    expect((await dav(EVE, 'PUT', '/Open/Old/b.txt', { body: 'b' })).status).toBe(201);
    expect(
      (await dav(EVE, 'COPY', '/Team', { headers: { ...to('/Open/shallow').headers, Depth: '0' } })).status,
    ).toBe(201);
  });

  test('rights are properties of each entry of a listing', async () => {
    const body =
      '<propfind xmlns="DAV:"><prop><permissions xmlns="http://owncloud.org/ns"/></prop></propfind>';
    const { text } = await dav(EVE, 'PROPFIND', '/', { headers: { Depth: '1' }, body });
    const rights = Object.fromEntries(
      Array.from(
        text.matchAll(/<D:href>([^<]*)<\/D:href>.*?permissions[^>]*>(\w*)</gs),
        ([, href, right]) => [href, right],
      ),
    );
    expect(rights).toMatchObject({ '/Public/': 'G', '/Open/': 'RDNVCK', '/People/': 'G' });
  });

  test('the page learns the folders in which the rights change, without the hidden ones', async () => {
    const { places } = JSON.parse((await ask('drive')).text) as { readonly places: unknown };
    expect(places).toEqual([
      { path: '/', isReadOnly: false, keepsDeleted: true },
      { path: '/Public', isReadOnly: true, keepsDeleted: true },
      { path: '/Public/Inbox', isReadOnly: false, keepsDeleted: true },
      { path: '/Plans/Old', isReadOnly: true, keepsDeleted: true },
      { path: '/People', isReadOnly: true, keepsDeleted: true },
      { path: '/People/Eve', isReadOnly: false, keepsDeleted: true },
    ]);
  });
});
