import { describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { pathOf } from '../../../../src/util/path.ts';
import { type PropertyServer, startPropertyServer } from '../../../support/property-server.ts';

const NAME = '{https://davgate.dev/ns}shared-link';
const ASKED =
  '<propfind xmlns="DAV:"><prop><resourcetype/><shared-link xmlns="https://davgate.dev/ns"/></prop></propfind>';
const A = pathOf(['a.txt']);

const set = (inside: string) =>
  `<D:propertyupdate xmlns:D="DAV:" xmlns:g="https://davgate.dev/ns"><D:set><D:prop><g:shared-link>${inside}</g:shared-link></D:prop></D:set></D:propertyupdate>`;
const REMOVE =
  '<D:propertyupdate xmlns:D="DAV:"><D:remove><D:prop><shared-link xmlns="https://davgate.dev/ns"/></D:prop></D:remove></D:propertyupdate>';

async function withFile(): Promise<PropertyServer> {
  const server = await startPropertyServer();
  await server.file('/a.txt', 'abc');
  return server;
}

async function linkOf(server: PropertyServer, target = '/a.txt') {
  const [row] = (await server.send('PROPFIND', target, ASKED, { Depth: '0' })).rows;
  return row?.properties.get(NAME);
}

async function patch(server: PropertyServer, body: string) {
  const [row] = (await server.send('PROPPATCH', '/a.txt', body)).rows;
  return row?.properties.get(NAME);
}

test('shared-link is missing at first, is created by setting it and revoked by removing it', async () => {
  const server = await withFile();
  expect((await linkOf(server))?.status).toBe('HTTP/1.1 404 Not Found');
  expect((await patch(server, set('')))?.status).toBe('HTTP/1.1 200 OK');
  const link = await linkOf(server);
  expect(link).toMatchObject({ status: 'HTTP/1.1 200 OK' });
  expect(link?.text).toBe((await server.files.sharedLink(A))?.url);
  expect((await patch(server, REMOVE))?.status).toBe('HTTP/1.1 200 OK');
  expect((await linkOf(server))?.status).toBe('HTTP/1.1 404 Not Found');
  expect((await patch(server, REMOVE))?.status).toBe('HTTP/1.1 200 OK');
});

test('shared-link is shown only when named, and costs no call otherwise', async () => {
  const server = await withFile();
  await patch(server, set(''));
  server.files.failNext('sharedLink', new FileError('broken', 'asked without need'));
  for (const body of [undefined, '<propfind xmlns="DAV:"><propname/></propfind>'])
    expect((await server.send('PROPFIND', '/a.txt', body, { Depth: '0' })).text).not.toContain('shared-link');
});

test.each([
  ['public', { visibility: 'public' }],
  ['<g:visibility> public </g:visibility>', { visibility: 'public' }],
  ['<g:password>s3cret</g:password>', { visibility: 'password', password: 's3cret' }],
  [
    '<g:visibility>password</g:visibility><g:password>s3cret</g:password><g:expires>2030-01-31T12:00:00Z</g:expires>',
    { visibility: 'password', password: 's3cret', expiresMs: Date.UTC(2030, 0, 31, 12) },
  ],
])('setting shared-link to %s creates a link with these settings', async (inside, settings) => {
  const server = await withFile();
  expect((await patch(server, set(inside)))?.status).toBe('HTTP/1.1 200 OK');
  expect(server.files.calls.at(-1)).toMatchObject({ what: 'shareLink', path: '/a.txt' });
  expect(server.files.calls.at(-1)?.options).toEqual(settings);
});

test.each([
  ['secret', /public or password/],
  ['<g:visibility>everyone</g:visibility>', /public or password/],
  ['<g:visibility>password</g:visibility>', /needs a password/],
  ['<g:visibility>public</g:visibility><g:password>s3cret</g:password>', /cannot have the visibility public/],
  ['<g:password></g:password>', /must not be empty/],
  ['<g:password>s3cret</g:password><g:password>s3cret</g:password>', /twice/],
  ['<g:expires>tomorrow</g:expires>', /such as 2030/],
  ['<g:expires>2030-13-01T00:00:00Z</g:expires>', /such as 2030/],
  ['<g:expires>2025-12-31T00:00:00Z</g:expires>', /in the future/],
  ['<g:audience>all</g:audience>', /no setting audience/],
  ['<visibility>public</visibility>', /no setting visibility/],
])('setting shared-link to %s answers 409 with a reason and without the password', async (inside, reason) => {
  const server = await withFile();
  const refused = await patch(server, set(inside));
  expect(refused).toMatchObject({ status: 'HTTP/1.1 409 Conflict', reason: expect.stringMatching(reason) });
  expect(refused?.reason).not.toContain('s3cret');
  expect(await server.files.sharedLink(A)).toBeUndefined();
});

test('the password of a shared-link is stored nowhere', async () => {
  const server = await withFile();
  await patch(server, set('<g:password>s3cret</g:password>'));
  const entry = await server.files.stat(A);
  expect((await server.state.properties.of([entry?.id ?? ''])).size).toBe(0);
  const { text } = await server.send('PROPFIND', '/a.txt', ASKED, { Depth: '0' });
  expect(text).not.toContain('s3cret');
});

describe('shared-link in a PROPFIND of several resources', () => {
  test('PROPFIND of a folder shows the shared-link of each entry', async () => {
    const server = await withFile();
    await server.file('/b.txt');
    await patch(server, set(''));
    const { rows } = await server.send('PROPFIND', '/', ASKED, { Depth: '1' });
    expect(rows.map((row) => row.properties.get(NAME)?.status)).toEqual([
      'HTTP/1.1 404 Not Found',
      'HTTP/1.1 200 OK',
      'HTTP/1.1 404 Not Found',
    ]);
  });

  test.each([
    ['one of very many entries', '1'],
    ['a whole tree', 'infinity'],
  ])('shared-link of %s answers 403 without a call, and other properties are shown', async (_, depth) => {
    const server = await withFile();
    for (let index = 0; index < 120; index += 1) await server.file(`/file ${index}`);
    server.files.failNext('sharedLink', new FileError('broken', 'asked all the same'));
    const { rows } = await server.send('PROPFIND', '/', ASKED, { Depth: depth });
    expect(rows).toHaveLength(122);
    expect(rows[1]?.properties.get(NAME)).toMatchObject({
      status: 'HTTP/1.1 403 Forbidden',
      reason: expect.stringContaining('Depth 0'),
    });
    expect(rows[1]?.properties.get('{DAV:}resourcetype')?.status).toBe('HTTP/1.1 200 OK');
  });
});

test('shared-link shows the error of a failing service, and other properties are shown', async () => {
  const server = await withFile();
  server.files.failNext('sharedLink', new FileError('offline', 'the service is away'));
  const [row] = (await server.send('PROPFIND', '/a.txt', ASKED, { Depth: '0' })).rows;
  expect(row?.statuses).toEqual(['HTTP/1.1 200 OK', 'HTTP/1.1 503 Service Unavailable']);
  expect(row?.properties.get(NAME)?.reason).toBe('the service is away');
});
