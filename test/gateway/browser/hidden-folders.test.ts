import { describe, expect, test } from 'vitest';
import { expectSoon } from '../../support/eventually.ts';
import {
  ask,
  BOB,
  call,
  dav,
  EVE,
  gatewayUrl,
  hrefs,
  KIM,
  put,
  to,
  withFolderRules,
  zip,
} from '../../support/folder-rules.ts';
import { connectRaw } from '../../support/raw-http.ts';

// What a user learns of folders in which the configuration gives no right.

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;

withFolderRules();

describe('what a user learns', () => {
  test('listings of any depth have no hidden folder, and of a hidden folder on the way only what is shown', async () => {
    const top = await hrefs('/', '1');
    expect(top).toEqual(expect.arrayContaining(['/Open/', '/Public/', '/Team/', '/People/']));
    expect(top).not.toContain('/Private/');
    expect(await hrefs('/Team/', '1')).toEqual(['/Team/', '/Team/secret.txt']);
    expect(await hrefs('/People/', '1')).toEqual(['/People/', '/People/Eve/']);
    const all = (await hrefs('/', 'infinity')).filter((href) => /Private|cher|Max|People/.test(href));
    expect(all.sort()).toEqual([
      ...['/People/', '/People/Eve/', '/People/Eve/Diary/', '/People/Eve/Diary/secret.txt'],
      '/People/Eve/secret.txt',
    ]);
    expect((await dav(EVE, 'GET', '/?plain')).text).not.toContain('Private/');
    expect((await dav(EVE, 'GET', '/People/secret.txt')).status).toBe(404);
  });

  test.each([
    ...['/private/secret.txt', '/PRIVATE/SECRET.TXT', '/Private/', '/Private//secret.txt'],
    ...['/Open/../Private/secret.txt', '/Open/%2e%2e/Private/secret.txt', '/./Private/secret.txt'],
    ...['/%50rivate/secret.txt', '/Private%2Fsecret.txt', '/Private/secret.txt/', '/Private/secret.txt?x#y'],
    ...['/Team/B%C3%BCcher/secret.txt', '/Team/Bu%CC%88cher/secret.txt', '/TEAM/B%C3%9CCHER/secret.txt'],
    ...['/team/BU%CC%88CHER', '/People/Max/secret.txt', '/people/eve/../max/secret.txt'],
  ])('%s shows nothing hidden', async (target) => {
    for (const method of ['GET', 'PROPFIND', 'DELETE', 'MOVE']) {
      const { status, text } = await raw(method, target);
      expect([400, 403, 404], `${method}: ${text}`).toContain(status);
      expect(text).not.toContain('\r\n\r\ncontent');
    }
    expect((await dav(BOB, 'GET', '/Open/stolen')).status).toBe(404);
    expect((await dav(BOB, 'GET', '/Team/Bücher/secret.txt')).status).toBe(200);
  });

  test('a search finds no hidden name', async () => {
    const found = JSON.parse((await ask('search', { query: 'secret' })).text) as {
      readonly items: readonly { readonly path: string }[];
    };
    const paths = found.items.map(({ path }) => path);
    expect(paths).toContain('/People/Eve/secret.txt');
    expect(paths.filter((path) => /^\/(Private|Team\/B|People\/Max|People\/secret)/.test(path))).toEqual([]);
    expect((await ask('search', { query: 'Bücher' })).text).toBe('{"items":[],"cursor":null}');
  });

  test('SEARCH and REPORT find nothing in hidden folders, and answer there as in a missing one', async () => {
    const search = (scope: string) =>
      dav(EVE, 'SEARCH', '/', {
        body: `<D:searchrequest xmlns:D="DAV:"><D:basicsearch><D:select><D:prop><D:displayname/></D:prop></D:select>
          <D:from><D:scope><D:href>${scope}</D:href><D:depth>infinity</D:depth></D:scope></D:from>
          </D:basicsearch></D:searchrequest>`,
      });
    const report = (folder: string) =>
      dav(EVE, 'REPORT', folder, {
        body: `<D:sync-collection xmlns:D="DAV:"><D:sync-token/><D:sync-level>infinite</D:sync-level>
          <D:prop><D:displayname/></D:prop></D:sync-collection>`,
      });
    for (const ask of [search, report]) {
      const { status, text } = await ask('/');
      expect([status, text.includes('/People/Eve/secret.txt')]).toEqual([207, true]);
      expect(text).not.toMatch(/\/Private\/|cher|Max|People\/secret/);
      const [hidden, missing] = [await ask('/Private/'), await ask('/Missing/')];
      expect([hidden.status, hidden.text]).toEqual([
        missing.status,
        missing.text.replaceAll('Missing', 'Private'),
      ]);
      expect(hidden.text).not.toContain('secret.txt');
    }
  });

  test('an archive of a folder leaves the hidden ones in it out', async () => {
    const { status, text } = await zip('/', ['Team']);
    expect([status, text.includes('Team/secret.txt'), text.includes('cher')]).toEqual([200, true, false]);
  });

  test('the trash shows nothing that was deleted in hidden folders, and the folders above them are not restored', async () => {
    await put('/Team/Bücher/deleted.txt');
    await put('/People/deleted.txt');
    const recoverable = { headers: { prefer: 'recoverable' } };
    for (const path of ['/Team/Bücher', '/People/deleted.txt'])
      expect((await dav(BOB, 'DELETE', path, recoverable)).status).toBe(204);
    for (const path of ['/Team', '/People']) {
      const { items } = JSON.parse((await ask('trash', { path })).text) as { readonly items: unknown[] };
      expect(items).toEqual([]);
      expect((await ask('trash', { path }, BOB)).text).toMatch(/Bücher|deleted/);
    }
    expect((await call('undelete', { path: '/Team/Bücher' })).status).toBe(404);
    expect((await call('undelete', { path: '/Team' })).status).toBe(403);
    expect((await call('undelete', { path: '/Team/Bücher' }, BOB)).status).toBe(200);
  });

  test('the shared links of hidden files, and of folders above them, are not shown and not made', async () => {
    for (const path of ['/Private/secret.txt', '/Team', '/Team/Bücher'])
      expect((await call('share', { path }, BOB)).status).toBe(200);
    expect((await ask('links')).text).not.toMatch(/Private|Team/);
    expect((await ask('links', { path: '/Team' })).text).toBe('{"links":[]}');
    const { text } = await dav(EVE, 'PROPFIND', '/Team', {
      headers: { Depth: '0' },
      body: '<propfind xmlns="DAV:"><prop><shared-link xmlns="urn:davgate"/></prop></propfind>',
    });
    expect(text).not.toContain('/scl/');
    for (const path of ['/Team', '/']) {
      const { status, text: reason } = await call('share', { path });
      expect([status, reason]).toEqual([403, expect.stringContaining('a folder in it has other rights')]);
    }
  });

  test('no event of the drive names a hidden path', async () => {
    const stream = await fetch(new URL('/.davgate/api/changes', gatewayUrl()), {
      headers: { 'x-test-user': EVE },
    });
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader();
    let seen = '';
    const follow = async (): Promise<void> => {
      const piece = await reader?.read();
      seen += piece?.value ?? '';
      if (piece && !piece.done) return follow();
    };
    const ended = follow();
    await expectSoon(() => expect(seen).toContain('davgate'));
    await dav(BOB, 'MKCOL', '/Private/new');
    await put('/Team/Bücher/new.txt');
    await put('/People/Max/new.txt');
    await put('/Open/new.txt');
    await expectSoon(() => expect(seen).toContain('"/Open"'));
    expect(seen).not.toMatch(/Private|cher|Max/);
    await reader?.cancel();
    await ended;
  });

  test('a lock in a hidden folder is not seen, also by a request that the lock would stop', async () => {
    const { headers } = await dav(BOB, 'LOCK', '/Team/Bücher/secret.txt', { body: LOCK });
    const body = '<propfind xmlns="DAV:"><prop><lockdiscovery/></prop></propfind>';
    const answers = [
      await dav(EVE, 'PROPFIND', '/Team', { headers: { Depth: 'infinity' }, body }),
      await dav(EVE, 'DELETE', '/Team'),
      await dav(EVE, 'LOCK', '/Team', { body: LOCK }),
      await ask('locks', { path: '/Team' }),
      await ask('locks', { path: '/Team/Bücher' }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([207, 403, 403, 200, 200]);
    for (const { text } of answers) expect(text).not.toMatch(/cher|B%C3|bob|urn:uuid/);
    const token = headers.get('lock-token') ?? '';
    expect(
      (await dav(BOB, 'UNLOCK', '/Team/Bücher/secret.txt', { headers: { 'Lock-Token': token } })).status,
    ).toBe(204);
  });

  test('refusals to a user with a root folder do not name what is above it', async () => {
    for (const [method, path, init] of [
      ['MKCOL', '/Diary', {}],
      ['LOCK', '/Diary', { body: LOCK }],
      ['COPY', '/', to('/new')],
      ['DELETE', '/diary', {}],
      ['GET', '/DIARY/secret.txt', {}],
    ] as const) {
      const { status, text } = await dav(KIM, method, path, init);
      expect([403, 404], method).toContain(status);
      expect(text).not.toMatch(/People|Eve/);
    }
    expect(await hrefs('/', 'infinity', KIM)).toEqual(['/', '/secret.txt']);
  });
});

/** Sends a target that a client of HTTP would change. */
async function raw(
  method: string,
  target: string,
): Promise<{ readonly status: number; readonly text: string }> {
  const fields = `Host: localhost\r\nx-test-user: ${EVE}\r\nDestination: /Open/stolen\r\nConnection: close`;
  const text = await connectRaw(
    Number(new URL(gatewayUrl()).port),
    `${method} ${target} HTTP/1.1\r\n${fields}\r\n\r\n`,
  ).closed();
  return { status: Number(text.split(' ')[1]), text };
}
