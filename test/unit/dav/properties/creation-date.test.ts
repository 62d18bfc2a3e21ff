import { beforeEach, expect, test } from 'vitest';
import { type PropertyServer, startPropertyServer } from '../../../support/property-server.ts';

const OK = 'HTTP/1.1 200 OK';
const NAMED = '<propfind xmlns="DAV:"><prop><creationdate/></prop></propfind>';
const ALL = '<propfind xmlns="DAV:"><allprop/></propfind>';
const NAMES = '<propfind xmlns="DAV:"><propname/></propfind>';

const update = (inside: string) =>
  `<D:propertyupdate xmlns:D="DAV:" xmlns:m="urn:schemas-microsoft-com:">${inside}</D:propertyupdate>`;
const set = (inside: string) => update(`<D:set><D:prop>${inside}</D:prop></D:set>`);
const created = (text: string) => set(`<D:creationdate>${text}</D:creationdate>`);
const windows = (text: string) => set(`<m:Win32CreationTime>${text}</m:Win32CreationTime>`);
const REMOVE = update('<D:remove><D:prop><D:creationdate/></D:prop></D:remove>');

/** When the service has stored the file. */
const STORED = '2026-01-01T00:00:00Z';

let server: PropertyServer;

beforeEach(async () => {
  server = await startPropertyServer();
  await server.file('/d/a.txt', 'abc');
});

async function shown(target: string, body = NAMED): Promise<readonly [string, string][]> {
  const { text, rows } = await server.send('PROPFIND', target, body, { Depth: '1' });
  // Twice in one row, a client would take either.
  expect(text.match(/creationdate/g)?.length).toBe(body === NAMES ? rows.length : 2 * rows.length);
  return rows.map(({ href, properties }) => [href, properties.get('{DAV:}creationdate')?.text ?? 'none']);
}

async function patch(body: string): Promise<string | undefined> {
  const { rows } = await server.send('PROPPATCH', '/d/a.txt', body);
  return [...(rows[0]?.properties.values() ?? [])][0]?.status;
}

test('a creationdate that is set is shown by PROPFIND, in listings too, until it is removed', async () => {
  expect(await shown('/d')).toEqual([
    ['/d/', STORED],
    ['/d/a.txt', STORED],
  ]);
  expect(await patch(created('1999-12-31T22:30:00.5-01:30'))).toBe(OK);
  for (const body of [NAMED, ALL])
    expect(await shown('/d', body)).toEqual([
      ['/d/', STORED],
      ['/d/a.txt', '2000-01-01T00:00:00Z'],
    ]);
  expect((await shown('/d/a.txt', NAMES)).length).toBe(1);
  expect(await patch(REMOVE)).toBe(OK);
  expect(await shown('/d/a.txt')).toEqual([['/d/a.txt', STORED]]);
});

test.each([
  ['1969-07-20T20:17:40Z', '1969-07-20T20:17:40Z'],
  ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00Z'],
  ['9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z'],
  [' Sun, 06 Nov 1994 08:49:37 GMT ', '1994-11-06T08:49:37Z'],
])('the creationdate %j is shown as %s', async (text, date) => {
  expect(await patch(created(text))).toBe(OK);
  expect(await shown('/d/a.txt')).toEqual([['/d/a.txt', date]]);
});

test.each(['yesterday', '', '2026-02-31', '2026-13-01T00:00:00Z', '9999-12-31T23:59:59-01:00'])(
  'PROPPATCH refuses the creationdate %j with 409 and keeps the one before',
  async (text) => {
    await patch(created('2000-01-01T00:00:00Z'));
    expect(await patch(created(text))).toBe('HTTP/1.1 409 Conflict');
    expect(await shown('/d/a.txt')).toEqual([['/d/a.txt', '2000-01-01T00:00:00Z']]);
  },
);

test('the creation time that Explorer sets is the creationdate, unless it is unknown or creationdate was set', async () => {
  await patch(windows('Wed, 14 Oct 2020 08:00:00 GMT'));
  expect(await shown('/d/a.txt')).toEqual([['/d/a.txt', '2020-10-14T08:00:00Z']]);
  await patch(created('2000-01-01T00:00:00Z'));
  expect(await shown('/d/a.txt')).toEqual([['/d/a.txt', '2000-01-01T00:00:00Z']]);
  await patch(REMOVE);
  await patch(windows('Mon, 01 Jan 1601 00:00:00 GMT'));
  expect(await shown('/d/a.txt')).toEqual([['/d/a.txt', STORED]]);
});

test('PUT stores the creation date in X-OC-CTime and says so, and a later PUT keeps it', async () => {
  const sent = await server.send('PUT', '/d/b.txt', 'abc', { 'X-OC-CTime': '946684800' });
  expect([sent.status, sent.headers.get('x-oc-ctime')]).toEqual([201, 'accepted']);
  const other = await server.send('PUT', '/d/b.txt', 'other');
  expect([other.status, other.headers.get('x-oc-ctime')]).toEqual([204, null]);
  expect(await shown('/d/b.txt')).toEqual([['/d/b.txt', '2000-01-01T00:00:00Z']]);
});

test('PUT ignores an X-OC-CTime that is no time', async () => {
  const sent = await server.send('PUT', '/d/b.txt', 'abc', { 'X-OC-CTime': 'now' });
  expect([sent.status, sent.headers.get('x-oc-ctime')]).toEqual([201, null]);
  expect(await shown('/d/b.txt')).toEqual([['/d/b.txt', STORED]]);
});

test('PUT stores a file whose creation date cannot be stored, and does not say that it was', async () => {
  server.state.properties.change = () => Promise.reject(new Error('the state is away'));
  const sent = await server.send('PUT', '/d/b.txt', 'abc', { 'X-OC-CTime': '946684800' });
  expect([sent.status, sent.headers.get('x-oc-ctime')]).toEqual([201, null]);
  expect(await shown('/d/b.txt')).toEqual([['/d/b.txt', STORED]]);
});

test('a MKCOL with a creationdate makes a folder of that date', async () => {
  const body =
    '<D:mkcol xmlns:D="DAV:"><D:set><D:prop><D:resourcetype><D:collection/></D:resourcetype>' +
    '<D:creationdate>2000-01-01T00:00:00Z</D:creationdate></D:prop></D:set></D:mkcol>';
  const { status } = await server.send('MKCOL', '/new', body, { 'Content-Type': 'application/xml' });
  expect(status).toBe(201);
  expect(await shown('/new')).toEqual([['/new/', '2000-01-01T00:00:00Z']]);
});

test('MOVE and COPY keep a creation date that was set', async () => {
  await patch(created('2000-01-01T00:00:00Z'));
  await server.send('COPY', '/d/a.txt', undefined, { Destination: '/copy' });
  await server.send('MOVE', '/d/a.txt', undefined, { Destination: '/moved' });
  expect([await shown('/copy'), await shown('/moved')]).toEqual([
    [['/copy', '2000-01-01T00:00:00Z']],
    [['/moved', '2000-01-01T00:00:00Z']],
  ]);
});
