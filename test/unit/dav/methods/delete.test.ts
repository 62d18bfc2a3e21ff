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

describe('DELETE', () => {
  test('DELETE removes a file, or a folder with everything below it', async () => {
    expect((await dav.send('DELETE', '/a')).status).toBe(204);
    expect((await dav.send('DELETE', '/f/', { headers: { Depth: 'infinity' } })).status).toBe(204);
    expect(dav.files.paths()).toEqual([]);
    expect((await dav.send('DELETE', '/f/')).status).toBe(404);
  });

  test('DELETE with a condition removes exactly the revision that met it', async () => {
    const tag = (await dav.send('HEAD', '/a')).headers.etag ?? '';
    for (const headers of [{ 'If-Match': tag }, { If: `([${tag}])` }]) {
      dav.files.failNext('remove', new FileError('changed', 'somebody else has written it'));
      expect((await dav.send('DELETE', '/a', { headers })).status).toBe(412);
      const { options } = dav.files.calls.findLast(({ what }) => what === 'remove') ?? {};
      expect(options).toMatchObject({ rev: tag.slice(1, -1) });
    }
    expect((await dav.send('DELETE', '/a', { headers: { 'If-Match': '*' } })).status).toBe(204);
    expect(dav.files.calls.at(-1)?.options).not.toHaveProperty('rev');
  });

  test.each([
    ['/f', { Depth: '0' }, 400],
    ['/f', { Depth: '1' }, 400],
    ['/', {}, 403],
    ['/none', {}, 404],
    ['/a', { 'If-Match': '"other"' }, 412],
    ['/a', { 'If-None-Match': '*' }, 412],
    ['/a', { If: '(["other"])' }, 412],
  ])('DELETE %s with %j answers %d', async (target, headers, status) => {
    expect((await dav.send('DELETE', target, { headers })).status).toBe(status);
    expect(dav.files.paths()).toEqual(ALL);
  });

  test('DELETE is permanent, and recoverable after a failed PUT of the same path', async () => {
    const recoverable = async (target: string, user = 'ann') => {
      await dav.send('DELETE', target, { user });
      return dav.files.calls.at(-1)?.options;
    };
    const failPut = (target: string) =>
      dav.send('PUT', target, { body: 'new', headers: { 'If-Match': '"other"' } });

    await failPut('/A');
    expect(await recoverable('/a', 'ben')).toEqual({ recoverable: false });
    await dav.file('/a');
    expect(await recoverable('/a')).toEqual({ recoverable: true });

    await failPut('/f/x');
    await dav.send('PUT', '/f/x', { body: 'new' });
    expect(await recoverable('/f/x')).toEqual({ recoverable: false });

    await failPut('/f/sub/y');
    await dav.clock.advance(15 * 60_000);
    expect(await recoverable('/f/sub/y')).toEqual({ recoverable: false });
  });

  test('DELETE by rclone is recoverable while a PUT may have failed before the last start or at another gateway', async () => {
    const removed = async (target: string, agent: string) => {
      await dav.send('DELETE', target, { headers: { 'User-Agent': agent } });
      return dav.files.calls.at(-1)?.options;
    };
    expect(await removed('/a', 'rclone/v1.60.1')).toEqual({ recoverable: true });
    await dav.file('/a');
    expect(await removed('/a', 'cadaver/0.24')).toEqual({ recoverable: false });
    await dav.clock.advance(15 * 60_000);
    expect(await removed('/f/x', 'rclone/v1.60.1')).toEqual({ recoverable: false });
    await dav.close();
    dav = await startDav({ wrap: (drive) => ({ ...drive, catchUp: async () => {} }) });
    await dav.file('/a');
    await dav.clock.advance(60 * 60_000);
    expect(await removed('/a', 'rclone/v1.60.1')).toEqual({ recoverable: true });
  });

  test.each([
    ['was cut off', 'half', 'content of a'],
    ['was committed, but its answer did not arrive', 'whole new', 'whole new'],
  ])('DELETE is recoverable after a PUT that %s', async (_, body, content) => {
    let open = () => {};
    dav.files.commitGate = new Promise((resolve) => {
      open = resolve;
    });
    const socket = dav.socket();
    socket.write(`PUT /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n${body}`);
    while (dav.files.writing === 0) await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    await dav.untilAlone();
    open();
    while (dav.files.writing > 0) await new Promise((resolve) => setImmediate(resolve));
    expect(dav.content('/a')).toBe(content);
    await dav.send('DELETE', '/a');
    expect(dav.files.calls.at(-1)).toEqual({ what: 'remove', path: '/a', options: { recoverable: true } });
  });
});
