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
