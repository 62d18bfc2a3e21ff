import { describe, expect, test } from 'vitest';
import { DAV_NAMESPACE } from '../../../src/dav/xml/xml-element.ts';
import type { Lock } from '../../../src/state/locks.ts';
import { pathOf, ROOT } from '../../../src/util/path.ts';
import type { Row } from '../../support/multistatus.ts';
import { type PropertyServer, startPropertyServer } from '../../support/property-server.ts';

const propBody = (inside: string) => `<propfind xmlns="DAV:"><prop>${inside}</prop></propfind>`;
const allprop = (include = '') => `<propfind xmlns="DAV:"><allprop/>${include}</propfind>`;
const PROPNAME = '<propfind xmlns="DAV:"><propname/></propfind>';
const OK = 'HTTP/1.1 200 OK';
const MISSING = 'HTTP/1.1 404 Not Found';

function shown(row: Row | undefined, name: string, namespace = DAV_NAMESPACE) {
  return row?.properties.get(`{${namespace}}${name}`);
}

async function find(server: PropertyServer, target: string, depth: string, body?: string, headers = {}) {
  return server.send('PROPFIND', target, body, { Depth: depth, ...headers });
}

const hrefsOf = (rows: readonly Row[]) => rows.map((row) => row.href);

function lockOn(server: PropertyServer, path: string, depth: Lock['depth'], seconds = 600): Lock {
  const names = path.split('/').filter(Boolean);
  return {
    token: `urn:uuid:${path}`,
    root: names.length > 0 ? pathOf(names) : ROOT,
    scope: 'exclusive',
    depth,
    ownerXml: 'Ann',
    principal: 'ann',
    timeoutSeconds: seconds,
    expiresMs: server.clock.now() + seconds * 1000,
  };
}

/** A server with a file that has a dead property. */
async function withDeadProperty(): Promise<PropertyServer> {
  const server = await startPropertyServer();
  await server.file('/a.txt', 'abc');
  const set = '<set><prop><x xmlns="urn:x">v</x></prop></set>';
  await server.send('PROPPATCH', '/a.txt', `<propertyupdate xmlns="DAV:">${set}</propertyupdate>`);
  return server;
}

describe('depth', () => {
  async function tree() {
    const server = await startPropertyServer();
    await server.file('/a/one.txt', 'x');
    await server.file('/a/sub/deep/two.txt', 'x');
    return server;
  }

  test('PROPFIND with Depth 0 shows the resource alone', async () => {
    const server = await tree();
    expect(hrefsOf((await find(server, '/a', '0')).rows)).toEqual(['/a/']);
    expect(hrefsOf((await find(server, '/a/one.txt', '0')).rows)).toEqual(['/a/one.txt']);
  });

  test('PROPFIND with Depth 1 shows a folder and its members, with a slash after collections', async () => {
    const server = await tree();
    expect(hrefsOf((await find(server, '/a', '1')).rows)).toEqual(['/a/', '/a/one.txt', '/a/sub/']);
    expect(hrefsOf((await find(server, '/a/one.txt', '1')).rows)).toEqual(['/a/one.txt']);
    expect(hrefsOf((await find(server, '/', '1')).rows)).toEqual(['/', '/a/']);
  });

  test('PROPFIND with Depth infinity, or without Depth, shows everything below', async () => {
    const server = await tree();
    const all = ['/a/', '/a/one.txt', '/a/sub/', '/a/sub/deep/', '/a/sub/deep/two.txt'];
    expect(hrefsOf((await find(server, '/a/', 'infinity')).rows)).toEqual(all);
    expect(hrefsOf((await server.send('PROPFIND', '/a')).rows)).toEqual(all);
  });

  test('PROPFIND with another Depth answers 400, and of an unmapped URL 404', async () => {
    const server = await tree();
    expect(await find(server, '/a', '2')).toMatchObject({
      status: 400,
      text: expect.stringContaining('Depth must be'),
    });
    expect((await find(server, '/nothing', '0')).status).toBe(404);
  });

  test('hrefs of a PROPFIND repeat the letter case and Unicode form of the request', async () => {
    const server = await startPropertyServer();
    await server.file('/Äpfel & Öl/x#y?.txt');
    const nfd = `/${encodeURIComponent('Äpfel & Öl'.normalize('NFD').toUpperCase())}`;
    const { rows } = await find(server, nfd, '1');
    expect(hrefsOf(rows).map(decodeURIComponent)).toEqual([
      `${decodeURIComponent(nfd)}/`,
      `${decodeURIComponent(nfd)}/x#y?.txt`,
    ]);
    expect(rows[1]?.href).toMatch(/\/x%23y%3F\.txt$/);
  });
});

describe('property selection', () => {
  test('PROPFIND without a body means allprop', async () => {
    const server = await startPropertyServer();
    await server.file('/a.txt', 'abc');
    const [row] = (await find(server, '/a.txt', '0', undefined, { 'Content-Type': 'text/xml' })).rows;
    const [entry] = (await server.files.list(ROOT)).children;
    expect(row?.statuses).toEqual([OK]);
    expect([...(row?.properties.keys() ?? [])].sort()).toEqual(
      [
        'creationdate',
        'displayname',
        'getcontentlength',
        'getcontenttype',
        'getetag',
        'getlastmodified',
        'lockdiscovery',
        'resourcetype',
        'supportedlock',
      ].map((name) => `{DAV:}${name}`),
    );
    expect(shown(row, 'getcontentlength')?.text).toBe('3');
    expect(shown(row, 'getcontenttype')?.text).toBe('text/plain; charset=utf-8');
    expect(shown(row, 'getlastmodified')?.text).toBe('Thu, 01 Jan 2026 00:00:00 GMT');
    expect(shown(row, 'creationdate')?.text).toBe('2026-01-01T00:00:00Z');
    expect(shown(row, 'getetag')?.text).toBe(entry?.kind === 'file' && `"${entry.rev}"`);
    expect(shown(row, 'resourcetype')?.element.content).toEqual([]);
  });

  test('PROPFIND of named properties shows missing ones in a 404 propstat after the 200', async () => {
    const server = await startPropertyServer();
    await server.file('/d/a.txt', 'abc');
    const body = propBody('<getcontentlength/><resourcetype/><unknown xmlns="urn:u"/><plain xmlns=""/>');
    const [folder, file] = (await find(server, '/d', '1', body)).rows;
    expect(folder?.statuses).toEqual([OK, MISSING]);
    expect(shown(folder, 'resourcetype')).toMatchObject({ status: OK });
    expect(shown(folder, 'resourcetype')?.element.content).toMatchObject([{ name: 'collection' }]);
    expect(shown(folder, 'getcontentlength')?.status).toBe(MISSING);
    expect(shown(file, 'getcontentlength')).toMatchObject({ status: OK, text: '3' });
    expect(shown(file, 'unknown', 'urn:u')?.status).toBe(MISSING);
    expect(shown(file, 'plain', '')?.status).toBe(MISSING);
  });

  test('a PROPFIND answer without missing properties has no 404 propstat, whitespace or further href', async () => {
    const server = await startPropertyServer();
    await server.file('/a.txt', 'abc');
    const { text, headers } = await find(server, '/', '1', propBody('<resourcetype/><getlastmodified/>'));
    expect(text.slice(text.indexOf('<D:multistatus'))).not.toMatch(/>\s+</);
    expect(text.match(/<D:href>/g)).toHaveLength(2);
    expect(headers.get('content-type')).toBe('application/xml; charset="utf-8"');
    expect(Number(headers.get('content-length'))).toBe(Buffer.byteLength(text));
  });

  test('PROPFIND with an empty prop answers 200 (NetDrive)', async () => {
    const server = await startPropertyServer();
    const { rows } = await find(server, '/', '0', propBody(''));
    expect(rows).toMatchObject([{ href: '/', statuses: [OK] }]);
  });

  test.each([
    ['Prefer', 'respond-async, return=minimal', 'return=minimal'],
    ['Brief', 't', null],
  ])('PROPFIND with %s: %s omits missing properties', async (header, value, applied) => {
    const server = await startPropertyServer();
    const body = propBody('<getetag/><resourcetype/>');
    const answer = await find(server, '/', '0', body, { [header]: value });
    expect(answer.rows[0]?.statuses).toEqual([OK]);
    expect(answer.headers.get('preference-applied')).toBe(applied);
    const missing = await find(server, '/', '0', propBody('<getetag/>'), { [header]: value });
    expect(missing.rows[0]?.statuses).toEqual([OK]);
  });

  test('propname shows names without values, dead properties included, shared-link not', async () => {
    const server = await withDeadProperty();
    const [row] = (await find(server, '/a.txt', '0', PROPNAME)).rows;
    expect(shown(row, 'x', 'urn:x')).toMatchObject({ status: OK, text: '' });
    expect(shown(row, 'getetag')).toMatchObject({ status: OK, text: '' });
    expect([...(row?.properties.keys() ?? [])].join()).not.toMatch(/shared-link|quota/);
  });

  test('allprop shows the properties in include and dead properties', async () => {
    const server = await withDeadProperty();
    const include =
      '<include><revision xmlns="https://davgate.dev/ns"/><x xmlns="urn:x"/><y xmlns="urn:x"/></include>';
    const [row] = (await find(server, '/a.txt', '0', allprop(include))).rows;
    expect(shown(row, 'revision', 'https://davgate.dev/ns')?.text).toMatch(/^rev/);
    expect(shown(row, 'x', 'urn:x')).toMatchObject({ status: OK, text: 'v' });
    expect(shown(row, 'y', 'urn:x')?.status).toBe(MISSING);
    expect(shown(row, 'displayname')?.text).toBe('a.txt');
  });

  test('allprop for Explorer omits the properties that it does not read', async () => {
    const server = await startPropertyServer();
    await server.file('/a.txt', 'abc');
    const explorer = { 'User-Agent': 'Microsoft-WebDAV-MiniRedir/10.0.19045' };
    const { text, rows } = await find(server, '/', '1', undefined, explorer);
    expect(shown(rows[1], 'getcontentlength')?.text).toBe('3');
    expect(text).not.toContain('supportedlock');
    expect(text.length / rows.length).toBeLessThan(500);
  });

  test('properties of ownCloud and davgate are shown only when named', async () => {
    const server = await startPropertyServer();
    await server.file('/a.txt', 'abc');
    const body = propBody(
      '<o:fileid xmlns:o="http://owncloud.org/ns"/><o:permissions xmlns:o="http://owncloud.org/ns"/>' +
        '<g:content-hash xmlns:g="https://davgate.dev/ns"/><m:Win32LastModifiedTime xmlns:m="urn:schemas-microsoft-com:"/>',
    );
    const [row] = (await find(server, '/a.txt', '0', body)).rows;
    expect(shown(row, 'fileid', 'http://owncloud.org/ns')?.text).toMatch(/^id:/);
    expect(shown(row, 'permissions', 'http://owncloud.org/ns')?.text).toBe('RDNVW');
    expect(shown(row, 'content-hash', 'https://davgate.dev/ns')?.text).toMatch(/^[0-9a-f]{64}$/);
    expect(shown(row, 'Win32LastModifiedTime', 'urn:schemas-microsoft-com:')?.text).toMatch(/GMT$/);
  });

  test.each([
    ['no propfind', '<a/>', 'must be a DAV:propfind'],
    ['two kinds at once', '<propfind xmlns="DAV:"><allprop/><propname/></propfind>', 'exactly one'],
    ['no kind', '<propfind xmlns="DAV:"/>', 'exactly one'],
    ['broken XML', '<propfind xmlns="DAV:"><prop>', 'not well-formed'],
    [
      'litmus propfind_invalid2',
      '<D:propfind xmlns:D="DAV:"><D:prop><b:f xmlns:b=""/></D:prop></D:propfind>',
      'undefine',
    ],
    [
      'too many names',
      propBody(Array.from({ length: 300 }, (_, i) => `<p${i}/>`).join('')),
      'names more than 256 properties',
    ],
    [
      'names that are too long together',
      propBody(Array.from({ length: 100 }, (_, i) => `<p${i}${'x'.repeat(400)}/>`).join('')),
      'more than 32768 characters',
    ],
  ])('PROPFIND with %s in its body answers 400 with the reason', async (_, body, reason) => {
    const server = await startPropertyServer();
    expect(await find(server, '/', '0', body)).toMatchObject({
      status: 400,
      text: expect.stringContaining(reason),
    });
  });

  test('PROPFIND with a body above the limit answers 413', async () => {
    const server = await startPropertyServer();
    const { status } = await find(server, '/', '0', `${propBody('')}${' '.repeat(100_000)}`);
    expect(status).toBe(413);
  });
});

describe('quota', () => {
  const body = propBody('<quota-available-bytes/><quota-used-bytes/>');

  test('quota properties of folders are shown when named', async () => {
    const server = await startPropertyServer();
    await server.file('/a.txt');
    const [folder, file] = (await find(server, '/', '1', body)).rows;
    expect(shown(folder, 'quota-available-bytes')).toMatchObject({ status: OK, text: '9000' });
    expect(shown(folder, 'quota-used-bytes')).toMatchObject({ status: OK, text: '1000' });
    expect(shown(file, 'quota-used-bytes')?.status).toBe(MISSING);
    const [old] = (await find(server, '/', '0', propBody('<quota/><quotaused/>'))).rows;
    expect(shown(old, 'quota')).toMatchObject({ status: OK, text: '20' });
    expect(shown(old, 'quotaused')).toMatchObject({ status: OK, text: '2' });
    expect((await find(server, '/', '0')).text).not.toContain('quota');
  });

  test('quota properties are missing, never 0, when unknown and for new Finders', async () => {
    const server = await startPropertyServer();
    const finder = { 'User-Agent': 'WebDAVFS/3.0.0 (03008000) Darwin/24.5.0 (arm64)' };
    const [finderRow] = (await find(server, '/', '0', body, finder)).rows;
    expect(finderRow?.statuses).toEqual([MISSING]);
    server.files.space = undefined;
    const [unknown] = (await find(server, '/', '0', body)).rows;
    expect(unknown?.statuses).toEqual([MISSING]);
  });
});

describe('lockdiscovery', () => {
  const body = propBody('<lockdiscovery/>');
  const countsOf = (rows: readonly Row[]) =>
    rows.map((row) => [row.href, shown(row, 'lockdiscovery')?.element.content.length]);

  test('lockdiscovery shows the locks on a resource and those above it with depth infinity', async () => {
    const server = await startPropertyServer();
    await server.file('/d/a.txt');
    await server.file('/d/b.txt');
    await server.file('/d/sub/c.txt');
    const before = await find(server, '/d', '1', body);
    expect(before.text).not.toContain('activelock');
    await server.state.locks.create(server.clock.now(), lockOn(server, '/d/a.txt', '0'));
    await server.state.locks.create(server.clock.now(), lockOn(server, '/d/sub', 'infinity'));
    const { rows, text } = await find(server, '/d', 'infinity', body);
    expect(countsOf(rows)).toEqual([
      ['/d/', 0],
      ['/d/a.txt', 1],
      ['/d/b.txt', 0],
      ['/d/sub/', 1],
      ['/d/sub/c.txt', 1],
    ]);
    expect(text).toContain('<D:lockroot><D:href>/d/sub/</D:href></D:lockroot>');
    expect(countsOf((await find(server, '/d/sub/c.txt', '0', body)).rows)).toEqual([['/d/sub/c.txt', 1]]);
  });

  test('lockdiscovery omits an expired lock, also after an answer that showed it', async () => {
    const server = await startPropertyServer();
    await server.file('/d/a.txt');
    await server.state.locks.create(server.clock.now(), lockOn(server, '/d/a.txt', '0', 600));
    const [, before] = (await find(server, '/d', '1', body)).rows;
    expect(shown(before, 'lockdiscovery')?.text).toContain('Second-600');
    await server.clock.advance(590_000);
    const [, late] = (await find(server, '/d', '1', body)).rows;
    expect(shown(late, 'lockdiscovery')?.text).toContain('Second-10');
    await server.clock.advance(10_000);
    const [, after] = (await find(server, '/d', '1', body)).rows;
    expect(shown(after, 'lockdiscovery')?.text).toBe('');
  });
});

test('Depth with noroot answers the members without the folder itself, in the spelling with or without a space', async () => {
  const server = await startPropertyServer();
  await server.file('/f/a.txt');
  await server.file('/f/sub/b.txt');
  const hrefs = async (target: string, depth: string) =>
    (await find(server, target, depth, propBody('<getetag/>'))).rows.map(({ href }) => href).sort();
  expect(await hrefs('/f/', '1,noroot')).toEqual(['/f/a.txt', '/f/sub/']);
  expect(await hrefs('/f', 'Infinity, NoRoot')).toEqual(['/f/a.txt', '/f/sub/', '/f/sub/b.txt']);
  expect(await hrefs('/f/a.txt', '1,noroot')).toEqual([]);
});
