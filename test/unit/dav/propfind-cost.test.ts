import { request } from 'node:http';
import { expect, test } from 'vitest';
import type { Drive } from '../../../src/dav/context.ts';
import { FileError } from '../../../src/drive/errors.ts';
import type { Listing } from '../../../src/drive/files.ts';
import { Networks } from '../../../src/util/networks.ts';
import { pathOf, ROOT } from '../../../src/util/path.ts';
import { type PropertyServer, startPropertyServer } from '../../support/property-server.ts';

const NAMED = '<propfind xmlns="DAV:"><prop><getetag/><x xmlns="urn:x"/></prop></propfind>';
const LIVE = '<propfind xmlns="DAV:"><prop><getetag/><getlastmodified/></prop></propfind>';

/** Returns `drive` with every call of its files and stores recorded in `calls` by name. */
function counted(drive: Drive, calls: string[]): Drive {
  const watch = <T extends object>(what: string, target: T): T =>
    new Proxy(target, {
      get: (_, name) => {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => {
          calls.push(`${what}.${String(name)}`);
          return Reflect.apply(value, target, args);
        };
      },
    });
  const { locks, properties } = drive.state;
  return {
    files: watch('files', drive.files),
    state: {
      ...drive.state,
      locks: watch('locks', locks),
      properties: watch('properties', properties),
    },
  };
}

async function callsOf(rows: number, depth: string, body: string | undefined): Promise<string[]> {
  const calls: string[] = [];
  const server = await startPropertyServer({ wrap: (drive) => counted(drive, calls) });
  for (let row = 0; row < rows; row += 1) await server.file(`/file ${row}.txt`);
  const answer = await server.send('PROPFIND', '/', body, { Depth: depth });
  expect(answer.rows).toHaveLength(depth === '0' ? 1 : rows + 1);
  return calls.sort();
}

test.each([
  [
    'allprop',
    '1',
    undefined,
    ['files.list', 'locks.covering', 'locks.within', 'properties.of', 'properties.version'],
  ],
  ['live properties by name', '1', LIVE, ['files.list']],
  ['a dead property by name', '1', NAMED, ['files.list', 'properties.of', 'properties.version']],
  ['the resource alone', '0', undefined, ['files.known', 'files.stat', 'locks.covering', 'properties.of']],
])(
  'PROPFIND of %s at depth %s makes the same few calls for 2 rows and for 500',
  async (_, depth, body, expected) => {
    expect(await callsOf(2, depth, body)).toEqual(expected);
    expect(await callsOf(500, depth, body)).toEqual(expected);
  },
);

async function textOf(server: PropertyServer, body?: string, headers: Record<string, string> = {}) {
  return (await server.send('PROPFIND', '/', body, { Depth: '1', ...headers })).text;
}

test('a cached PROPFIND answer is identical, and unused once anything in it has changed', async () => {
  const server = await startPropertyServer();
  await server.file('/a.txt', 'abc');
  await server.file('/b.txt', 'abc');
  const first = await textOf(server);
  expect(await textOf(server)).toBe(first);

  await server.file('/a.txt', 'abcd');
  const second = await textOf(server);
  expect(second).toContain('<D:getcontentlength>4</D:getcontentlength>');

  const set = (value: string) =>
    `<propertyupdate xmlns="DAV:"><set><prop><x xmlns="urn:x">${value}</x></prop></set></propertyupdate>`;
  for (const value of ['one', 'two']) {
    await server.send('PROPPATCH', '/b.txt', set(value));
    expect(await textOf(server)).toContain(`<x xmlns="urn:x">${value}</x>`);
    expect(await textOf(server, NAMED)).toContain(`<x xmlns="urn:x">${value}</x>`);
  }

  await server.files.setModified(pathOf(['b.txt']), Date.UTC(2020, 1, 2));
  expect(await textOf(server)).toContain('Sun, 02 Feb 2020 00:00:00 GMT');
  await server.files.remove(pathOf(['a.txt']), { recoverable: true });
  expect(await textOf(server)).not.toContain('a.txt');
});

test('clients with equal requests and different needs do not share a cached answer', async () => {
  const server = await startPropertyServer();
  await server.file('/a.txt', 'abc');
  const full = await textOf(server);
  const lean = await textOf(server, undefined, { 'User-Agent': 'Microsoft-WebDAV-MiniRedir/10.0' });
  const brief = await textOf(server, NAMED, { Brief: 't' });
  expect(lean).not.toBe(full);
  expect(await textOf(server)).toBe(full);
  expect(brief).not.toContain('404');
  expect(await textOf(server, NAMED)).toContain('404');
});

function replacing<T extends object, K extends keyof T>(target: T, name: K, value: T[K]): T {
  return new Proxy(target, {
    get: (_, wanted) => {
      if (wanted === name) return value;
      const own: unknown = Reflect.get(target, wanted);
      return typeof own === 'function' ? own.bind(target) : own;
    },
  });
}

/** Returns a drive whose walk has `folders` folders of 100 files each, and counts the folders it has yielded. */
function walking(folders: number, walked: { count: number }, failAt?: number) {
  return ({ files, state }: Drive): Drive => {
    async function* walk(): AsyncIterable<Listing> {
      const { folder } = await files.list(ROOT);
      for (walked.count = 0; walked.count < folders; walked.count += 1) {
        if (walked.count === failAt) throw new FileError('offline', 'the service is away');
        const path = pathOf([`folder ${walked.count}`]);
        const children = Array.from({ length: 100 }, (_, index) => {
          const name = `file ${index}`;
          return {
            ...folder,
            id: `${walked.count} ${index}`,
            name,
            path: pathOf([...path.slice(1).split('/'), name]),
          };
        });
        yield { folder: { ...folder, path, name: path.slice(1) }, children };
      }
    }
    return { files: replacing(files, 'walk', walk), state };
  };
}

test('PROPFIND with depth infinity walks only as far as its client reads', async () => {
  const walked = { count: 0 };
  const server = await startPropertyServer({ wrap: walking(20_000, walked) });
  const response = await new Promise<NodeJS.ReadableStream & { destroy(): void }>((resolve) => {
    request({ port: server.port, method: 'PROPFIND', headers: { Depth: 'infinity' } }, resolve).end();
  });
  // The client reads nothing, so the walk fills the buffers, a few MB of 900, and stops.
  const follow = async (before: number): Promise<number> => {
    const answer = await server.send('PROPFIND', '/', LIVE, { Depth: '0' });
    expect(answer.status).toBe(207);
    return walked.count === before && before > 0 ? before : follow(walked.count);
  };
  const stoodAt = await follow(-1);
  expect(stoodAt).toBeLessThan(2_000);
  response.destroy();
});

test.each([
  ['plain', {}],
  ['compressed', { 'X-Forwarded-For': '192.0.2.7', 'Accept-Encoding': 'gzip' }],
])(
  'PROPFIND with depth infinity closes the connection when the walk fails in the middle of a %s answer',
  async (_, headers) => {
    const trustedProxies = new Networks(['127.0.0.1']);
    const server = await startPropertyServer({ wrap: walking(1_000, { count: 0 }, 500), trustedProxies });
    await expect(server.send('PROPFIND', '/', LIVE, { Depth: 'infinity', ...headers })).rejects.toThrow();
  },
);

test('PROPFIND with depth infinity answers an error when the walk fails at once', async () => {
  const server = await startPropertyServer({ wrap: walking(10, { count: 0 }, 0) });
  expect(await server.send('PROPFIND', '/', LIVE, { Depth: 'infinity' })).toMatchObject({
    status: 503,
    text: expect.stringContaining('the service is away'),
  });
});
