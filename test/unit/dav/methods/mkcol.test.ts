import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import { type DavServer, startDav } from '../../../support/dav.ts';

let dav: DavServer;

beforeEach(async () => {
  dav = await startDav();
  await dav.file('/a', 'content of a');
  await dav.file('/f/x', 'content of x');
  await dav.file('/f/sub/y', 'content of y');
});
afterEach(() => dav.close());

const ALL = ['/a', '/f/', '/f/sub/', '/f/sub/y', '/f/x'];

describe('MKCOL', () => {
  test('MKCOL creates a folder, with or without a trailing slash', async () => {
    for (const [target, location] of [
      ['/new/', '/new/'],
      ['/f/other%20one', '/f/other%20one/'],
    ] as const) {
      const answer = await dav.send('MKCOL', target, { headers: { 'If-None-Match': 'JoplinIgnore-1' } });
      expect(answer.status).toBe(201);
      expect(answer.headers.location).toBe(location);
    }
    expect(dav.files.paths()).toEqual(['/a', '/f/', '/f/other one/', '/f/sub/', '/f/sub/y', '/f/x', '/new/']);
  });

  test.each([
    ['/f', 405, 'folder'],
    ['/F/', 405, 'folder'],
    ['/a', 405, 'file'],
    ['/', 405, 'folder'],
    ['/none/new', 409, 'no folder /none'],
    ['/a/new', 409, 'no folder /a'],
  ])('MKCOL %s answers %d with the reason: %s', async (target, status, reason) => {
    const answer = await dav.send('MKCOL', target);
    expect(answer.status).toBe(status);
    expect(answer.text).toContain(reason);
    expect(answer.headers.allow !== undefined).toBe(status === 405);
    expect(dav.files.paths()).toEqual(ALL);
  });

  test('MKCOL answers 405 with Allow when another client creates the folder first', async () => {
    dav.files.failNext('createFolder', new FileError('exists', 'there is a folder already'));
    const answer = await dav.send('MKCOL', '/new');
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBeDefined();
  });

  test('MKCOL with a body answers 415; with a Content-Type (kio) or zero chunks alone it succeeds', async () => {
    const refused = await dav.send('MKCOL', '/new', {
      body: '<x/>',
      headers: { 'Content-Type': 'text/xml' },
    });
    expect(refused.status).toBe(415);
    const chunked =
      'MKCOL /new HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n';
    expect(await dav.raw(`${chunked}1\r\nx\r\n0\r\n\r\n`)).toMatch(/^HTTP\/1.1 415 /);
    expect(dav.files.paths()).toEqual(ALL);
    expect(await dav.raw(`${chunked}0\r\n\r\n`)).toMatch(/^HTTP\/1.1 201 /);
    expect((await dav.send('MKCOL', '/kio', { headers: { 'Content-Type': 'text/xml' } })).status).toBe(201);
  });
});

describe('MKCOL with properties (RFC 5689)', () => {
  const XML = { 'Content-Type': 'application/xml' };
  const TYPE = '<D:resourcetype><D:collection/></D:resourcetype>';
  const mkcol = (prop: string) =>
    dav.send('MKCOL', '/new', {
      headers: XML,
      body: `<D:mkcol xmlns:D="DAV:"><D:set><D:prop>${prop}</D:prop></D:set></D:mkcol>`,
    });

  test('MKCOL with DAV:mkcol creates the folder with its properties, and OPTIONS tells that it may', async () => {
    expect((await mkcol(`${TYPE}<c xmlns="urn:x">blue</c>`)).status).toBe(201);
    const body = '<D:propfind xmlns:D="DAV:"><D:prop><c xmlns="urn:x"/></D:prop></D:propfind>';
    expect((await dav.send('PROPFIND', '/new', { headers: { Depth: '0' }, body })).text).toContain(
      '>blue</c>',
    );
    expect((await dav.send('OPTIONS', '/')).headers['dav']).toContain('extended-mkcol');
  });

  test('a property that cannot be set answers 403 with the refused and the other ones, and makes no folder', async () => {
    const { status, text } = await mkcol(`${TYPE}<c xmlns="urn:x">blue</c><D:getetag>"x"</D:getetag>`);
    expect(status).toBe(403);
    expect(text).toContain('<D:mkcol-response xmlns:D="DAV:">');
    expect(text).toContain('<D:cannot-modify-protected-property/>');
    expect(text).toContain('424 Failed Dependency');
    expect(dav.files.paths()).toEqual(ALL);
  });

  test('a property that is refused after the folder was made removes the folder again', async () => {
    const { status, text } = await mkcol(`${TYPE}<c xmlns="urn:x">${'>'.repeat(300_000)}</c>`);
    expect([status, text]).toEqual([507, expect.stringContaining('507 Insufficient Storage')]);
    expect(dav.files.paths()).toEqual(ALL);
  });

  test('a property that is refused leaves the folder when another client has put a file into it meanwhile', async () => {
    const { change } = dav.state.properties;
    dav.state.properties.change = async (...words) => {
      await dav.file('/new/theirs', 'x');
      return change(...words);
    };
    expect((await mkcol(`${TYPE}<c xmlns="urn:x">${'>'.repeat(300_000)}</c>`)).status).toBe(507);
    expect(dav.content('/new/theirs')).toBe('x');
  });

  test('a type other than a plain folder answers 403 valid-resourcetype; a removal and an unknown root are refused', async () => {
    const typed = await mkcol('<D:resourcetype><D:collection/><c xmlns="urn:x"/></D:resourcetype>');
    expect([typed.status, typed.text]).toEqual([403, expect.stringContaining('<D:valid-resourcetype/>')]);
    const removal =
      '<D:mkcol xmlns:D="DAV:"><D:remove><D:prop><c xmlns="urn:x"/></D:prop></D:remove></D:mkcol>';
    expect((await dav.send('MKCOL', '/new', { headers: XML, body: removal })).status).toBe(400);
    expect(
      (await dav.send('MKCOL', '/new', { headers: XML, body: '<D:other xmlns:D="DAV:"/>' })).status,
    ).toBe(415);
    expect(dav.files.paths()).toEqual(ALL);
  });
});
