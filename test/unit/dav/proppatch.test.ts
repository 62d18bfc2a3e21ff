import { describe, expect, test } from 'vitest';
import { FileError } from '../../../src/drive/errors.ts';
import { pathOf } from '../../../src/util/path.ts';
import { type PropertyServer, startPropertyServer } from '../../support/property-server.ts';

const OK = 'HTTP/1.1 200 OK';
const DEPENDS = 'HTTP/1.1 424 Failed Dependency';
const A = pathOf(['a.txt']);

const update = (inside: string) =>
  `<D:propertyupdate xmlns:D="DAV:" xmlns:x="urn:x" xmlns:m="urn:schemas-microsoft-com:">${inside}</D:propertyupdate>`;
const set = (inside: string) => `<D:set><D:prop>${inside}</D:prop></D:set>`;
const remove = (inside: string) => `<D:remove><D:prop>${inside}</D:prop></D:remove>`;

/** Returns `count` elements with distinct names. */
const named = (count: number) => Array.from({ length: count }, (_, index) => `<x:n${index}/>`).join('');

async function withFile(): Promise<PropertyServer> {
  const server = await startPropertyServer();
  await server.file('/a.txt', 'abc');
  return server;
}

async function patch(
  server: PropertyServer,
  body: string,
  headers: Record<string, string> = {},
  target = '/a.txt',
) {
  const answer = await server.send('PROPPATCH', target, body, headers);
  const properties = [...(answer.rows[0]?.properties ?? [])];
  return { ...answer, of: Object.fromEntries(properties.map(([name, { status }]) => [name, status])) };
}

/** The dead properties of `/a.txt`, as they are stored. */
async function stored(server: PropertyServer): Promise<string[]> {
  const entry = await server.files.stat(A);
  const properties = await server.state.properties.of([entry?.id ?? '']);
  return (properties.get(entry?.id ?? '') ?? []).map(({ xml }) => xml);
}

describe('dead properties', () => {
  test('PROPPATCH carries out several set and remove blocks in document order', async () => {
    const server = await withFile();
    const body = update(
      set('<x:a>1</x:a><x:b>1</x:b>') + remove('<x:a/>') + set('<x:b>2</x:b><x:c/>') + set('<x:a>3</x:a>'),
    );
    const { status, of, rows } = await patch(server, body);
    expect(status).toBe(207);
    expect(rows).toMatchObject([{ href: '/a.txt', statuses: [OK] }]);
    expect(of).toEqual({ '{urn:x}a': OK, '{urn:x}b': OK, '{urn:x}c': OK });
    expect((await stored(server)).sort()).toEqual([
      '<x:a xmlns:x="urn:x">3</x:a>',
      '<x:b xmlns:x="urn:x">2</x:b>',
      '<x:c xmlns:x="urn:x"/>',
    ]);
  });

  test('stored property values keep their namespaces, language and mixed content', async () => {
    const server = await withFile();
    const value = '<x:a k="x:y">one <b xmlns="urn:b">two<!-- - --></b><![CDATA[ <3> ]]></x:a>';
    await patch(
      server,
      `<P:propertyupdate xmlns:P="DAV:" xmlns:x="urn:x" xml:lang="de"><P:set><P:prop>${value}</P:prop></P:set></P:propertyupdate>`,
    );
    expect(await stored(server)).toEqual([
      '<x:a xmlns:x="urn:x" k="x:y" xml:lang="de">one <b xmlns="urn:b">two</b> &lt;3&gt; </x:a>',
    ]);
  });

  test('PROPPATCH that prefers a minimal answer gets 204 without a body, and the refused properties when there are any', async () => {
    const server = await withFile();
    const minimal = { Prefer: 'return=minimal' };
    const done = await server.send('PROPPATCH', '/a.txt', update(set('<x:a>1</x:a>')), minimal);
    expect([done.status, done.text]).toEqual([204, '']);
    expect(done.headers.get('preference-applied')).toBe('return=minimal');
    expect(await stored(server)).toEqual(['<x:a xmlns:x="urn:x">1</x:a>']);
    const { status, of } = await patch(server, update(set('<x:b/><D:getetag/>')), minimal);
    expect(status).toBe(207);
    expect(of).toEqual({ '{urn:x}b': DEPENDS, '{DAV:}getetag': 'HTTP/1.1 403 Forbidden' });
  });

  test('PROPPATCH that removes a missing property answers 200 for it', async () => {
    const server = await withFile();
    expect((await patch(server, update(remove('<x:a/><plain/>')))).of).toEqual({
      '{urn:x}a': OK,
      '{}plain': OK,
    });
  });

  test('PROPPATCH of a folder answers with the href that the client used', async () => {
    const server = await startPropertyServer();
    await server.file('/Folder/a.txt');
    const { rows } = await patch(server, update(set('<x:a>1</x:a>')), {}, '/folder');
    expect(rows).toMatchObject([{ href: '/folder/', statuses: [OK] }]);
  });

  test('properties of Windows and Apache are stored and shown again', async () => {
    const server = await withFile();
    const values =
      '<m:Win32CreationTime>Tue, 03 Mar 2020 10:00:00 GMT</m:Win32CreationTime>' +
      '<m:Win32FileAttributes>00000020</m:Win32FileAttributes>' +
      '<executable xmlns="http://apache.org/dav/props/">T</executable>';
    const { rows } = await patch(server, update(set(values)));
    expect(rows[0]?.statuses).toEqual([OK]);
    const [row] = (await server.send('PROPFIND', '/a.txt', undefined, { Depth: '0' })).rows;
    expect(row?.properties.get('{urn:schemas-microsoft-com:}Win32FileAttributes')?.text).toBe('00000020');
    expect(row?.properties.get('{http://apache.org/dav/props/}executable')?.text).toBe('T');
  });

  test('PROPPATCH above the limit of a resource answers 507 and stores nothing', async () => {
    const server = await withFile();
    await patch(server, update(set('<x:old>1</x:old>')));
    const half = (name: string) => set(`<x:${name}>${'y'.repeat(40_000)}</x:${name}>`);
    await patch(server, update(half('a')));
    const { of, rows } = await patch(server, update(remove('<x:old/>') + half('b')));
    expect(of).toMatchObject({ '{urn:x}b': 'HTTP/1.1 507 Insufficient Storage' });
    expect(rows[0]?.properties.get('{urn:x}b')?.reason).toMatch(/65536 bytes/);
    expect((await stored(server)).join()).toMatch(/x:old.*x:a /);
  });
});

describe('atomicity', () => {
  test('PROPPATCH with a protected property answers 403 for it, 424 for the others, and stores nothing', async () => {
    const server = await withFile();
    const { of, text } = await patch(
      server,
      update(set('<x:a>1</x:a>') + set('<D:getetag>"x"</D:getetag>') + remove('<D:resourcetype/>')),
    );
    expect(of).toEqual({
      '{urn:x}a': DEPENDS,
      '{DAV:}getetag': 'HTTP/1.1 403 Forbidden',
      '{DAV:}resourcetype': 'HTTP/1.1 403 Forbidden',
    });
    expect(text).toContain('<D:error><D:cannot-modify-protected-property/></D:error>');
    expect(await stored(server)).toEqual([]);
    expect(server.files.calls.map(({ what }) => what)).toEqual(['write']);
  });

  test('PROPPATCH undoes its changes when the service fails', async () => {
    const server = await withFile();
    await patch(server, update(set('<x:old>1</x:old>')));
    const before = await server.files.stat(A);
    server.files.failNext('shareLink', new FileError('unsupported', 'links are switched off'));
    const { of, rows } = await patch(
      server,
      update(
        set('<x:new>1</x:new><D:lastmodified>1000000000</D:lastmodified><x:old>2</x:old>') +
          set('<shared-link xmlns="https://davgate.dev/ns"/>'),
      ),
    );
    expect(of).toMatchObject({
      '{https://davgate.dev/ns}shared-link': 'HTTP/1.1 403 Forbidden',
      '{urn:x}new': DEPENDS,
      '{DAV:}lastmodified': DEPENDS,
    });
    expect(rows[0]?.properties.get('{https://davgate.dev/ns}shared-link')?.reason).toBe(
      'links are switched off',
    );
    expect(await stored(server)).toEqual(['<x:old xmlns:x="urn:x">1</x:old>']);
    expect(await server.files.stat(A)).toEqual(before);
  });
});

describe('modification times', () => {
  test.each([
    ['<D:getlastmodified>Sun, 09 Sep 2001 01:46:40 GMT</D:getlastmodified>', '{DAV:}getlastmodified'],
    ['<D:lastmodified>1000000000</D:lastmodified>', '{DAV:}lastmodified'],
    ['<D:lastmodified>1000000000.25</D:lastmodified>', '{DAV:}lastmodified'],
    [
      '<m:Win32LastModifiedTime>Sun, 09 Sep 2001 01:46:40 GMT</m:Win32LastModifiedTime>',
      '{urn:schemas-microsoft-com:}Win32LastModifiedTime',
    ],
  ])('setting %s sets the modification time', async (value, name) => {
    const server = await withFile();
    expect((await patch(server, update(set(value)))).of).toEqual({ [name]: OK });
    expect(Math.floor(((await server.files.stat(A))?.modifiedMs ?? 0) / 1000)).toBe(1_000_000_000);
    const body = `<propfind xmlns="DAV:"><prop><getlastmodified/><Win32LastModifiedTime xmlns="urn:schemas-microsoft-com:"/></prop></propfind>`;
    const [row] = (await server.send('PROPFIND', '/a.txt', body, { Depth: '0' })).rows;
    expect(row?.properties.get('{DAV:}getlastmodified')?.text).toBe('Sun, 09 Sep 2001 01:46:40 GMT');
    expect(row?.properties.get('{urn:schemas-microsoft-com:}Win32LastModifiedTime')?.text).toBe(
      'Sun, 09 Sep 2001 01:46:40 GMT',
    );
    expect(await stored(server)).toEqual([]);
  });

  test("setting a time to other text answers 409, and Explorer's time of 1601 is accepted and ignored", async () => {
    const server = await withFile();
    const before = await server.files.stat(A);
    const { of, rows } = await patch(
      server,
      update(set('<D:getlastmodified>yesterday</D:getlastmodified><x:a/>')),
    );
    expect(of).toEqual({ '{DAV:}getlastmodified': 'HTTP/1.1 409 Conflict', '{urn:x}a': DEPENDS });
    expect(rows[0]?.properties.get('{DAV:}getlastmodified')?.reason).toMatch(/not a time since 1970/);
    const none = '<m:Win32LastModifiedTime>Mon, 01 Jan 1601 00:00:00 GMT</m:Win32LastModifiedTime>';
    expect((await patch(server, update(set(none)))).rows[0]?.statuses).toEqual([OK]);
    expect(await server.files.stat(A)).toEqual(before);
  });
});

describe('checksums, as rclone sets them with the time', () => {
  const SHA1 = 'SHA1:a9993e364706816aba3e25717850c26c9cd0d89d';
  const name = '{http://owncloud.org/ns}checksums';
  const asked = '<propfind xmlns="DAV:"><prop><checksums xmlns="http://owncloud.org/ns"/></prop></propfind>';
  const given = (value: string) =>
    update(
      set(
        `<D:lastmodified>1000000000</D:lastmodified><c:checksums xmlns:c="http://owncloud.org/ns"><c:checksum>${value}</c:checksum></c:checksums>`,
      ),
    );

  test('checksums set by PROPPATCH are shown until the content changes', async () => {
    const server = await withFile();
    expect((await patch(server, given(SHA1))).rows[0]?.statuses).toEqual([OK]);
    const find = async () => (await server.send('PROPFIND', '/a.txt', asked, { Depth: '0' })).rows[0];
    const shown = (await find())?.properties.get(name);
    expect(shown).toMatchObject({ status: OK, text: SHA1 });
    expect(shown?.element.content).toMatchObject([{ namespace: 'http://owncloud.org/ns', name: 'checksum' }]);
    expect((await server.send('PROPFIND', '/a.txt', undefined, { Depth: '0' })).text).not.toContain(
      'checksum',
    );
    await server.file('/a.txt', 'something else');
    expect((await find())?.properties.get(name)?.status).toMatch(/404/);
    await server.file('/a.txt', 'abc');
    expect((await find())?.properties.get(name)?.text).toBe(SHA1);
  });

  test('setting checksums to other text answers 409', async () => {
    const server = await withFile();
    expect((await patch(server, given('&lt;b>hello&lt;/b>'))).of[name]).toBe('HTTP/1.1 409 Conflict');
    expect(await stored(server)).toEqual([]);
  });
});

describe('locks and conditions', () => {
  async function locked(principal: string) {
    const server = await withFile();
    const nowMs = server.clock.now();
    await server.state.locks.create(nowMs, {
      token: 'urn:uuid:1',
      root: A,
      scope: 'exclusive',
      depth: '0',
      ownerXml: '',
      principal,
      timeoutSeconds: 600,
      expiresMs: nowMs + 600_000,
    });
    return server;
  }

  test('PROPPATCH of a locked resource answers 423 without the token', async () => {
    const server = await locked('ann');
    const body = update(set('<x:a>1</x:a>'));
    expect((await patch(server, body)).status).toBe(423);
    expect(await stored(server)).toEqual([]);
    expect((await patch(server, body, { If: '(<urn:uuid:1>)' })).status).toBe(207);
  });

  test("PROPPATCH of Office's properties needs no token from the owner of the lock, but from other users", async () => {
    const body = update(set('<m:Win32FileAttributes>00000020</m:Win32FileAttributes>'));
    expect((await patch(await locked('ann'), body)).status).toBe(207);
    expect((await patch(await locked('bob'), body)).status).toBe(423);
    const mixed = update(set('<m:Win32FileAttributes>00000020</m:Win32FileAttributes><x:a/>'));
    expect((await patch(await locked('ann'), mixed)).status).toBe(423);
  });

  test('PROPPATCH with an unmet condition answers 412', async () => {
    const server = await withFile();
    expect((await patch(server, update(set('<x:a/>')), { 'If-Match': '"other"' })).status).toBe(412);
    expect(await stored(server)).toEqual([]);
  });
});

describe('unexpected bodies', () => {
  const nested = (depth: number) => `${'<x:a>'.repeat(depth)}${'</x:a>'.repeat(depth)}`;
  const doctype = (inside: string) => `<!DOCTYPE r [${inside}]>`;
  test.each([
    ['a document type', doctype('') + update(set('<x:a/>')), 400, 'document type'],
    ['an entity', doctype('<!ENTITY e "v">') + update(set('<x:a>&e;</x:a>')), 400, 'document type'],
    [
      'a file as an entity',
      doctype('<!ENTITY e SYSTEM "file:///etc/passwd">') + update(set('<x:a>&e;</x:a>')),
      400,
      'document type',
    ],
    ['an undefined entity', update(set('<x:a>&e;</x:a>')), 400, 'undefined entity'],
    ['20 MB', update(set(`<x:a>${'y'.repeat(20 * 1024 * 1024)}</x:a>`)), 413, 'larger than 1048576 bytes'],
    ['10,000 levels', update(set(nested(10_000))), 400, 'deeper than 64'],
    ['a set that breaks off after a good one', update(set('<x:a/>')).slice(0, -3), 400, 'not well-formed'],
    ['a prefix bound to nothing', update(set('<y:a xmlns:y=""/>')), 400, 'undefine prefix'],
    ['no body', '', 400, 'needs a body'],
    ['another element', '<x/>', 400, 'DAV:propertyupdate'],
    ['nothing to do', update(''), 400, 'names no property'],
    ['a set without a prop', update('<D:set/>'), 400, 'no DAV:prop'],
    [
      '257 properties',
      update(set(named(200)) + remove(named(57))),
      400,
      'names 257 properties; send at most 256',
    ],
  ])('PROPPATCH with %s is refused with a reason and stores nothing', async (_, body, status, reason) => {
    const server = await withFile();
    expect(await patch(server, body)).toMatchObject({ status, text: expect.stringContaining(reason) });
    expect(await stored(server)).toEqual([]);
    expect(server.files.calls.map(({ what }) => what)).toEqual(['write']);
  });

  test('PROPPATCH of 256 properties answers 207', async () => {
    const server = await withFile();
    expect((await patch(server, update(set(named(200)) + remove(named(56))))).status).toBe(207);
    expect(await stored(server)).toHaveLength(144);
  });

  test('PROPPATCH with two set blocks answers 207 and stores both properties', async () => {
    const server = await withFile();
    expect(
      (await patch(server, update(set('<x:a>1</x:a>') + set('<x:b>2</x:b>')))).rows[0]?.statuses,
    ).toEqual([OK]);
    expect(await stored(server)).toHaveLength(2);
  });

  test('PROPPATCH of an unmapped URL answers 404 and creates nothing', async () => {
    const server = await startPropertyServer();
    expect((await patch(server, update(set('<x:a/>')), {}, '/none')).status).toBe(404);
    expect(server.files.paths()).toEqual([]);
  });
});
