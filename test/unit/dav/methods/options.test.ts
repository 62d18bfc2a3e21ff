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

describe('OPTIONS', () => {
  test.each([
    [
      '/a',
      'OPTIONS, LOCK, GET, HEAD, PROPFIND, PROPPATCH, COPY, MOVE, DELETE, UNLOCK, REPORT, SEARCH, PUT, PATCH',
    ],
    ['/f', 'OPTIONS, LOCK, GET, HEAD, PROPFIND, PROPPATCH, COPY, MOVE, DELETE, UNLOCK, REPORT, SEARCH'],
    ['/none', 'OPTIONS, LOCK, PUT, MKCOL'],
    ['*', 'OPTIONS, LOCK, GET, HEAD, PROPFIND, PROPPATCH, COPY, MOVE, DELETE, UNLOCK, REPORT, SEARCH'],
  ])('OPTIONS %s answers 200 with Allow: %s', async (target, allow) => {
    const { status, headers } = await dav.send('OPTIONS', target);
    expect(status).toBe(200);
    expect(headers).toMatchObject({
      allow,
      dav: '1, 2, 3, extended-mkcol, sabredav-partialupdate',
      'ms-author-via': 'DAV',
      'accept-ranges': 'bytes',
      'content-length': '0',
    });
  });

  test('OPTIONS answers 200 while the service is unreachable', async () => {
    dav.files.failNext('stat', new FileError('offline', 'the service cannot be reached'));
    const { status, headers } = await dav.send('OPTIONS', '/');
    expect(status).toBe(200);
    expect(headers.allow).toContain('MKCOL');
  });

  test.each([
    ['POST', 405],
    ['TRACE', 405],
    ['PURGE', 501],
    ['LINK', 501],
  ])('the unsupported method %s answers %d with Allow', async (method, status) => {
    const answer = await dav.send(method, '/a');
    expect(answer.status).toBe(status);
    expect(answer.headers.allow).toContain('PROPFIND');
    expect(answer.text).toContain(method);
  });
});
