import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FileError } from '../../../../src/drive/errors.ts';
import type { FileEntry, Files, Listing } from '../../../../src/drive/files.ts';
import type { RequestState } from '../../../../src/state/state.ts';
import { overlaid } from '../../../../src/util/overlaid.ts';
import type { ByteRange } from '../../../../src/util/ranges.ts';
import { type DavAnswer, type DavServer, startDav } from '../../../support/dav.ts';
import { eventually } from '../../../support/eventually.ts';
import { Gate } from '../../../support/gate.ts';
import { parseMultistatus } from '../../../support/multistatus.ts';
import { path } from '../../../support/paths.ts';

// Checksums of files that nobody gave any for: `--checksums all`.

const PROPERTY = '{http://owncloud.org/ns}checksums';
const NAMES = '<checksums xmlns="http://owncloud.org/ns"/>';
const NAMED = `<D:propfind xmlns:D="DAV:"><D:prop>${NAMES}</D:prop></D:propfind>`;

const hashOf = (algorithm: string, text: string) => createHash(algorithm).update(text).digest('hex');
const checksumsOf = (text: string) => `SHA1:${hashOf('sha1', text)} MD5:${hashOf('md5', text)}`;

let dav: DavServer;
/** Paths of the files whose content was read, in order. */
let reads: string[];
/** Largest number of files that were read at the same time. */
let readsAtOnce: number;
/** Holds all reads before the first byte. */
let gate: Gate | undefined;
/** Whether all listings are the same object, as the drive keeps that of an unchanged folder. */
let keepsListing: boolean;
/** Fails the changes of properties. */
let stateFailure: Error | undefined;
let isReadOnly: boolean;

function watched(files: Files): Files {
  let open = 0;
  let kept: Listing | undefined;
  return overlaid(files, {
    async list(...args: Parameters<Files['list']>) {
      const listing = (keepsListing && kept) || (await files.list(...args));
      kept = listing;
      return listing;
    },
    async *read(file: FileEntry, range: ByteRange | undefined, signal: AbortSignal) {
      reads.push(file.path);
      open += 1;
      readsAtOnce = Math.max(readsAtOnce, open);
      try {
        await gate?.pass();
        yield* files.read(file, range, signal);
      } finally {
        open -= 1;
      }
    },
  });
}

function failing(state: RequestState): RequestState {
  const { properties } = state;
  const change: typeof properties.change = async (id, changes) => {
    if (stateFailure) throw stateFailure;
    return properties.change(id, changes);
  };
  return { ...state, properties: overlaid(properties, { change }) };
}

async function start(checksums: 'given' | 'all'): Promise<void> {
  dav = await startDav({
    checksums,
    wrap: ({ files, state }) => ({
      ...{ files: watched(files), state: failing(state) },
      isReadOnly: () => isReadOnly,
    }),
  });
}

beforeEach(async () => {
  [reads, readsAtOnce, gate, stateFailure] = [[], 0, undefined, undefined];
  [keepsListing, isReadOnly] = [false, false];
  await start('all');
});
afterEach(() => dav.close());

const propfind = (target: string, depth = '0', body = NAMED) =>
  dav.send('PROPFIND', target, { headers: { Depth: depth }, body });

/** Returns the checksums in an answer by href; the status where there are none. */
async function shownIn({ text }: DavAnswer): Promise<Readonly<Record<string, string | undefined>>> {
  const rows = await parseMultistatus(text);
  return Object.fromEntries(
    rows.map(({ href, properties }) => {
      const shown = properties.get(PROPERTY);
      return [href, shown?.text || shown?.status];
    }),
  );
}

const shownAt = async (target: string, depth = '0') => shownIn(await propfind(target, depth));

const NONE = 'HTTP/1.1 404 Not Found';

describe('a file that was uploaded elsewhere', () => {
  beforeEach(() => dav.file('/a.txt', 'hello'));

  test('has SHA-1 and MD5 when a client names oc:checksums, and is read once for them', async () => {
    for (let time = 0; time < 2; time++)
      expect(await shownAt('/a.txt')).toEqual({ '/a.txt': checksumsOf('hello') });
    expect(await shownAt('/', '1')).toEqual({ '/': NONE, '/a.txt': checksumsOf('hello') });
    expect(reads).toEqual(['/a.txt']);
  });

  test('is not read for allprop and propname, which do not show the checksums', async () => {
    for (const what of ['<D:allprop/>', '<D:propname/>'])
      for (const depth of ['0', '1', 'infinity']) {
        const body = `<D:propfind xmlns:D="DAV:">${what}</D:propfind>`;
        expect((await propfind('/', depth, body)).text).not.toContain('checksum');
      }
    expect(reads).toEqual([]);
  });

  test('has them for allprop that includes them by name', async () => {
    const body = `<D:propfind xmlns:D="DAV:"><D:allprop/><D:include>${NAMES}</D:include></D:propfind>`;
    expect(await shownIn(await propfind('/a.txt', '0', body))).toEqual({ '/a.txt': checksumsOf('hello') });
  });

  test('has new ones when its content changes', async () => {
    await shownAt('/', '1');
    await dav.file('/a.txt', 'other');
    expect(await shownAt('/', '1')).toMatchObject({ '/a.txt': checksumsOf('other') });
    expect(reads).toEqual(['/a.txt', '/a.txt']);
  });

  test('keeps its other properties beside them', async () => {
    const body =
      '<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><x xmlns="urn:x">1</x></D:prop></D:set></D:propertyupdate>';
    await dav.send('PROPPATCH', '/a.txt', { body });
    const named = NAMED.replace(NAMES, `${NAMES}<x xmlns="urn:x"/>`);
    for (let time = 0; time < 2; time++) {
      const [row] = await parseMultistatus((await propfind('/a.txt', '0', named)).text);
      expect(row?.properties.get('{urn:x}x')?.text).toBe('1');
      expect(row?.properties.get(PROPERTY)?.text).toBe(checksumsOf('hello'));
    }
  });

  test('has them for a user who may only read', async () => {
    isReadOnly = true;
    expect(await shownAt('/a.txt')).toEqual({ '/a.txt': checksumsOf('hello') });
    await shownAt('/a.txt');
    expect(reads).toEqual(['/a.txt']);
  });

  test('has them although they cannot be kept, and a warning is not an error', async () => {
    stateFailure = new Error('the disk is full');
    for (let time = 0; time < 2; time++)
      expect(await shownAt('/a.txt')).toEqual({ '/a.txt': checksumsOf('hello') });
    expect(reads).toEqual(['/a.txt', '/a.txt']);
    expect(dav.errors).toEqual([]);
  });

  test('is read once for clients that ask at the same time', async () => {
    gate = new Gate();
    const answers = Promise.all(Array.from({ length: 5 }, () => shownAt('/a.txt')));
    await gate.reached;
    gate.open();
    for (const answer of await answers) expect(answer).toEqual({ '/a.txt': checksumsOf('hello') });
    expect(reads).toEqual(['/a.txt']);
  });

  test('leaves nothing behind when it is deleted while it is read', async () => {
    gate = new Gate();
    const answer = shownAt('/a.txt');
    await gate.reached;
    await dav.files.remove(path('/a.txt'), { recoverable: false });
    gate.open();
    await answer;
    expect(await dav.state.properties.ids()).toEqual([]);
  });

  test('keeps the checksums of newer content that comes while it is read', async () => {
    gate = new Gate();
    const answer = shownAt('/a.txt');
    await gate.reached;
    expect((await dav.send('PUT', '/a.txt', { body: 'newer' })).status).toBe(204);
    gate.open();
    await answer;
    expect(await shownAt('/a.txt')).toEqual({ '/a.txt': checksumsOf('newer') });
    expect(reads).toEqual(['/a.txt']);
  });

  test('also has the SHA-256 that a client has asked for with X-Recalculate-Hash', async () => {
    const answer = await dav.send('PATCH', '/a.txt', { headers: { 'X-Recalculate-Hash': 'sha256' } });
    const sha256 = `SHA256:${hashOf('sha256', 'hello')}`;
    expect(answer.headers['oc-checksum']).toBe(sha256);
    expect(await shownAt('/a.txt')).toEqual({ '/a.txt': `${sha256} ${checksumsOf('hello')}` });
  });

  test('has them in a SEARCH that selects them', async () => {
    const body =
      `<D:searchrequest xmlns:D="DAV:"><D:basicsearch><D:select><D:prop>${NAMES}</D:prop></D:select>` +
      '<D:from><D:scope><D:href>/</D:href><D:depth>infinity</D:depth></D:scope></D:from></D:basicsearch></D:searchrequest>';
    const answer = await dav.send('SEARCH', '/', { body });
    expect(await shownIn(answer)).toMatchObject({ '/a.txt': checksumsOf('hello') });
  });

  test('without --checksums all has none, and no request reads it', async () => {
    await dav.close();
    await start('given');
    await dav.file('/a.txt', 'hello');
    await dav.send('PUT', '/b.txt', { body: 'hello' });
    expect(await shownAt('/', '1')).toEqual({ '/': NONE, '/a.txt': NONE, '/b.txt': NONE });
    expect((await dav.send('GET', '/a.txt')).text).toBe('hello');
    expect(await shownAt('/', '1')).toEqual({ '/': NONE, '/a.txt': NONE, '/b.txt': NONE });
    expect(reads).toEqual(['/a.txt']);
  });
});

describe('many files at once', () => {
  const names = Array.from({ length: 40 }, (_, index) => `/folder/${index}.txt`);
  const all = Object.fromEntries(names.map((name) => [name, checksumsOf(name)]));

  beforeEach(async () => {
    for (const name of names) await dav.file(name, name);
  });

  test.each(['1', 'infinity'])('a listing with Depth %s reads four at a time', async (depth) => {
    expect(await shownAt('/folder/', depth)).toEqual({ '/folder/': NONE, ...all });
    expect(reads.toSorted()).toEqual(names.toSorted());
    expect(readsAtOnce).toBe(4);
  });

  test('several clients together read four at a time', async () => {
    for (const name of names) await dav.file(`/other${name}`, name);
    await Promise.all([shownAt('/folder/', '1'), shownAt('/other/folder/', '1')]);
    expect(reads.length).toBe(80);
    expect(readsAtOnce).toBe(4);
  });

  test('reading ends when the client goes away, and the next client gets all checksums', async () => {
    gate = new Gate();
    const socket = dav.socket();
    socket.on('error', () => {});
    socket.write(
      `PROPFIND /folder/ HTTP/1.1\r\nHost: x\r\nDepth: 1\r\nContent-Length: ${NAMED.length}\r\n\r\n${NAMED}`,
    );
    await eventually(() => expect(reads.length).toBe(4));
    socket.destroy();
    await dav.untilAlone();
    gate.open();
    expect(await shownAt('/', '0')).toEqual({ '/': NONE });
    expect(reads.length).toBe(4);
    gate = undefined;
    expect(await shownAt('/folder/', '1')).toEqual({ '/folder/': NONE, ...all });
  });

  test('a file that cannot be read has a status and a reason, the others have checksums, and the next request tries again', async () => {
    keepsListing = true;
    dav.files.failNext('read', new FileError('offline', 'the service is away'));
    const { text } = await propfind('/folder/', '1');
    const rows = await parseMultistatus(text);
    const shown = rows.map(({ href, properties }) => [href, properties.get(PROPERTY)] as const);
    const failed = shown.filter(
      ([href, property]) => href !== '/folder/' && !property?.status.includes('200'),
    );
    expect(failed).toMatchObject([
      [expect.any(String), { status: expect.stringContaining('503'), reason: 'the service is away' }],
    ]);
    expect(await shownAt('/folder/', '1')).toEqual({ '/folder/': NONE, ...all });
  });
});

describe('bytes that pass', () => {
  test.each([
    ['without a checksum', {}, checksumsOf('hello')],
    ['with a SHA-1', { 'OC-Checksum': `SHA1:${hashOf('sha1', 'hello')}` }, checksumsOf('hello')],
    [
      'with an MD5 and an Adler-32',
      { 'OC-Checksum': `ADLER32:062c0215 MD5:${hashOf('md5', 'hello')}` },
      `ADLER32:062c0215 MD5:${hashOf('md5', 'hello')} SHA1:${hashOf('sha1', 'hello')}`,
    ],
  ])('an upload %s is not read again for its checksums', async (_, headers, shown) => {
    expect((await dav.send('PUT', '/a.txt', { body: 'hello', headers })).status).toBe(201);
    expect(await shownAt('/a.txt')).toEqual({ '/a.txt': shown });
    expect(reads).toEqual([]);
  });

  test('an append gives the file the checksums of its whole content', async () => {
    await dav.send('PUT', '/log', { body: 'hello' });
    const headers = { 'Content-Type': 'application/x-sabredav-partialupdate', 'X-Update-Range': 'append' };
    expect((await dav.send('PATCH', '/log', { body: ' world', headers })).status).toBe(204);
    const readsBefore = reads.length;
    expect(await shownAt('/log')).toEqual({ '/log': checksumsOf('hello world') });
    expect(reads.length).toBe(readsBefore);
  });

  test('a file that was downloaded is not read again for its checksums', async () => {
    const text = 'x'.repeat(200_000);
    await dav.file('/a.txt', text);
    for (let time = 0; time < 2; time++) expect((await dav.send('GET', '/a.txt')).text).toBe(text);
    expect(await shownAt('/a.txt')).toEqual({ '/a.txt': checksumsOf(text) });
    expect(reads).toEqual(['/a.txt', '/a.txt']);
  });

  test('a range of a file, or a download that fails, gives it no checksums', async () => {
    const text = 'x'.repeat(200_000);
    await dav.file('/a.txt', text);
    await dav.send('GET', '/a.txt', { headers: { Range: 'bytes=0-9' } });
    dav.files.readCutBytes = 100_000;
    await expect(dav.send('GET', '/a.txt')).rejects.toThrow();
    expect(await dav.state.properties.ids()).toEqual([]);
    dav.files.readCutBytes = undefined;
    expect(await shownAt('/a.txt')).toEqual({ '/a.txt': checksumsOf(text) });
  });

  test('a download succeeds although its checksums cannot be kept', async () => {
    stateFailure = new Error('the disk is full');
    await dav.file('/a.txt', 'hello');
    expect((await dav.send('GET', '/a.txt')).text).toBe('hello');
    expect((await dav.send('PUT', '/b.txt', { body: 'hello' })).status).toBe(201);
    expect(dav.errors).toEqual([]);
  });

  test('an empty file has the checksums of nothing', async () => {
    await dav.send('PUT', '/put', { body: '' });
    await dav.file('/elsewhere', '');
    expect(await shownAt('/', '1')).toMatchObject({ '/put': checksumsOf(''), '/elsewhere': checksumsOf('') });
  });
});
