import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PieceStore } from '../../../../src/state/pieces/piece-store.ts';
import { silentLog } from '../../../../src/util/log.ts';
import { type DavServer, startDav } from '../../../support/dav.ts';
import { eventually } from '../../../support/eventually.ts';
import { ManualClock } from '../../../support/manual-clock.ts';
import { parseMultistatus } from '../../../support/multistatus.ts';
import { path } from '../../../support/paths.ts';

// The chunked upload of Nextcloud's clients: MKCOL, PUT of each piece, MOVE of `.file`.

const UPLOAD = '/remote.php/dav/uploads/ann/up';
const FILES = '/remote.php/dav/files/ann';

let directory: string;
let pieces: PieceStore;
let dav: DavServer;
let readOnly: string | undefined;
const places: { isReadOnly: boolean }[] = [];

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'davgate-uploads-'));
  readOnly = undefined;
  places.splice(0, places.length, { isReadOnly: true }, { isReadOnly: false });
  pieces = await PieceStore.open({ directory, clock: new ManualClock(), log: silentLog });
  const isReadOnly = (at: string) => readOnly !== undefined && at.startsWith(readOnly);
  dav = await startDav({ pieces, wrap: (drive) => ({ ...drive, isReadOnly, places }) });
});
afterEach(async () => {
  await dav.close();
  await pieces.close();
  rmSync(directory, { recursive: true });
});

const statusOf = async (method: string, target: string, headers = {}, body?: string) =>
  (await dav.send(method, target, { headers, ...(body !== undefined && { body }) })).status;
const begin = () => statusOf('MKCOL', UPLOAD);
const put = (name: string, body: string, headers = {}) => statusOf('PUT', `${UPLOAD}/${name}`, headers, body);
const moveTo = (target: string, headers = {}) =>
  dav.send('MOVE', `${UPLOAD}/.file`, { headers: { Destination: FILES + target, ...headers } });
const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');

async function rowsAt(
  target: string,
  depth = '1',
): Promise<readonly (readonly [string, string | undefined])[]> {
  const { status, text } = await dav.send('PROPFIND', target, { headers: { Depth: depth } });
  expect(status).toBe(207);
  const rows = await parseMultistatus(text);
  return rows.map(({ href, properties }) => [href, properties.get('{DAV:}getcontentlength')?.text]);
}

test('a request among the uploads sees what other gateways have acknowledged before', async () => {
  await dav.close();
  const told: string[] = [];
  const catchUp = async () => void told.push('/new');
  dav = await startDav({ pieces, wrap: (drive) => ({ ...drive, catchUp }) });
  expect(await begin()).toBe(201);
  expect(await put('1', 'all')).toBe(201);
  const before = told.length;
  expect((await moveTo('/file')).status).toBe(201);
  expect(told.length).toBeGreaterThan(before);
});

describe('an upload in pieces', () => {
  test.each([
    ['numbers from 1', ['1', '2', '3']],
    ['numbers from 0 with zeros', ['0000000000000000', '0000000000000001', '0000000000000002']],
    ['numbers of different lengths', ['8', '9', '10']],
    ['offsets', ['0', '4', '8']],
    [
      'first and last bytes',
      [
        '000000000000000-000000000000003',
        '000000000000004-000000000000007',
        '000000000000008-000000000000009',
      ],
    ],
  ])(
    'pieces named by %s become the file in their order, whatever comes first',
    async (_, [a = '', b = '', c = '']) => {
      expect(await begin()).toBe(201);
      expect(await Promise.all([put(c, '89'), put(a, '0123'), put(b, '4567')])).toEqual([201, 201, 201]);
      expect(dav.files.paths()).toEqual([]);
      const headers = {
        'X-OC-Mtime': '1000000',
        'OC-Total-Length': '10',
        'OC-Checksum': `SHA1:${sha1('0123456789')}`,
      };
      const moved = await moveTo('/file', headers);
      expect(moved.status).toBe(201);
      expect(moved.headers).toMatchObject({ location: `${FILES}/file`, 'x-oc-mtime': 'accepted' });
      expect(moved.headers.etag).toMatch(/^"/);
      expect(dav.content('/file')).toBe('0123456789');
      expect((await dav.files.stat(path('/file')))?.modifiedMs).toBe(1_000_000_000);
      expect(await statusOf('PROPFIND', UPLOAD, { Depth: '0' })).toBe(404);
      expect(pieces.uploadsOf('ann')).toEqual([]);
    },
  );

  test('PROPFIND shows the uploads, the pieces that are there, and their sizes', async () => {
    expect(await rowsAt('/remote.php/dav/uploads/ann/')).toEqual([
      ['/remote.php/dav/uploads/ann/', undefined],
    ]);
    await begin();
    await put('1', '0123');
    await put('2', '45');
    expect(await rowsAt(UPLOAD)).toEqual([
      [`${UPLOAD}/`, undefined],
      [`${UPLOAD}/1`, '4'],
      [`${UPLOAD}/2`, '2'],
    ]);
    expect(await rowsAt(`${UPLOAD}/2`, '0')).toEqual([[`${UPLOAD}/2`, '2']]);
    expect((await rowsAt('/remote.php/dav/uploads/ann/')).map(([href]) => href)).toEqual([
      '/remote.php/dav/uploads/ann/',
      `${UPLOAD}/`,
    ]);
    expect(await rowsAt('/remote.php/dav/uploads/ann/', 'infinity')).toHaveLength(4);
    expect(await rowsAt(`${FILES}/`)).toEqual([[`${FILES}/`, undefined]]);
  });

  test('PROPFIND of many pieces with many properties sends the rows as they are made', async () => {
    await begin();
    for (let number = 1; number <= 20; number++) await put(`${number}`, 'x');
    const names = Array.from({ length: 256 }, (_, index) => `<p${String(index).padEnd(100, 'x')}/>`);
    const body = `<propfind xmlns="DAV:"><prop>${names.join('')}</prop></propfind>`;
    const { headers, text } = await dav.send('PROPFIND', UPLOAD, { headers: { Depth: '1' }, body });
    expect(headers).toMatchObject({ 'transfer-encoding': 'chunked' });
    expect(await parseMultistatus(text)).toHaveLength(21);
  });

  test('a piece that is sent again replaces the one before with 204', async () => {
    await begin();
    await put('1', 'wrong');
    expect(await put('1', 'right')).toBe(204);
    await moveTo('/file');
    expect(dav.content('/file')).toBe('right');
  });

  test('MOVE replaces a file with 204, unless Overwrite is F or If-Match is stale', async () => {
    await dav.file('/file', 'old');
    const old = String((await dav.send('HEAD', '/file')).headers.etag);
    await begin();
    await put('1', 'new');
    expect((await moveTo('/file', { Overwrite: 'F' })).status).toBe(412);
    expect((await moveTo('/file', { 'If-Match': '"stale"' })).status).toBe(412);
    expect((await moveTo('/file', { If: `<${FILES}/file> (["stale"])` })).status).toBe(412);
    expect(dav.content('/file')).toBe('old');
    expect((await moveTo('/file', { If: `<${FILES}/file> ([${old}])` })).status).toBe(204);
    expect(dav.content('/file')).toBe('new');
  });

  test('the same MOVE again, because its answer was lost, answers the same and stores nothing', async () => {
    await begin();
    await put('1', 'text');
    const first = await moveTo('/file');
    const again = await moveTo('/file');
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(again.headers.etag).toBe(first.headers.etag);
    expect(dav.files.calls.filter(({ what }) => what === 'write')).toHaveLength(1);
    expect((await moveTo('/other')).status).toBe(409);
    expect(await begin()).toBe(201);
    await put('1', 'other');
    expect((await moveTo('/other')).status).toBe(201);
    expect([dav.content('/file'), dav.content('/other')]).toEqual(['text', 'other']);
  });

  test('while MOVE stores the file, a second MOVE waits for it, and PUT and DELETE answer 423', async () => {
    await begin();
    await put('1', 'text');
    let open: () => void = () => {};
    dav.files.commitGate = new Promise((resolve) => {
      open = resolve;
    });
    const first = moveTo('/file');
    while (dav.files.writing === 0) await new Promise((resolve) => setImmediate(resolve));
    const second = moveTo('/file');
    expect([await put('2', 'more'), await statusOf('DELETE', UPLOAD)]).toEqual([423, 423]);
    open();
    expect([(await first).status, (await second).status]).toEqual([201, 201]);
    expect(dav.files.calls.filter(({ what }) => what === 'write')).toHaveLength(1);
  });

  test('a MOVE goes on when its client leaves, and the same MOVE again answers its outcome', async () => {
    await begin();
    await put('1', 'text');
    let open: () => void = () => {};
    dav.files.commitGate = new Promise((resolve) => {
      open = resolve;
    });
    const socket = dav.socket();
    socket.write(`MOVE ${UPLOAD}/.file HTTP/1.1\r\nHost: x\r\nDestination: ${FILES}/file\r\n\r\n`);
    while (dav.files.writing === 0) await new Promise((resolve) => setImmediate(resolve));
    socket.destroy();
    await dav.untilAlone();
    open();
    await eventually(() => expect(dav.content('/file')).toBe('text'));
    expect((await moveTo('/file')).status).toBe(201);
    expect(dav.files.calls.filter(({ what }) => what === 'write')).toHaveLength(1);
  });

  test('an upload that begins while the pieces of the one before are being removed becomes a file of its own', async () => {
    await begin();
    await put('1', 'text');
    let open: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const remove = pieces.remove.bind(pieces);
    pieces.remove = async (user, id) => {
      await remove(user, id);
      await gate;
    };
    const first = moveTo('/file');
    while (pieces.upload('ann', 'up')) await new Promise((resolve) => setImmediate(resolve));
    expect([await begin(), await put('1', 'newer')]).toEqual([201, 201]);
    open();
    expect((await first).status).toBe(201);
    expect((await moveTo('/file')).status).toBe(204);
    expect(dav.content('/file')).toBe('newer');
  });

  test('DELETE ends an upload with its pieces, and answers 404 for one that is not there', async () => {
    await begin();
    await put('1', 'text');
    expect(await statusOf('DELETE', `${UPLOAD}/`)).toBe(204);
    expect(await statusOf('DELETE', `${UPLOAD}/`)).toBe(404);
    expect([(await moveTo('/file')).status, await put('1', 'text')]).toEqual([404, 404]);
    expect(dav.files.paths()).toEqual([]);
  });

  test('MOVE to a locked file needs the token of the lock', async () => {
    const body =
      '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';
    await dav.file('/file', 'old');
    const { headers } = await dav.send('LOCK', '/file', { body });
    await begin();
    await put('1', 'new');
    expect((await moveTo('/file')).status).toBe(423);
    const If = `<${FILES}/file> (${headers['lock-token']})`;
    expect((await moveTo('/file', { If })).status).toBe(204);
  });
});

describe('a refused upload in pieces', () => {
  test.each([
    [['1', '3'], {}, 'a piece is missing'],
    [['0-3', '5-8'], {}, 'a piece is missing'],
    [['2', '3'], {}, 'a piece is missing'],
    [['1', '2'], { 'OC-Total-Length': '9' }, '9 of OC-Total-Length'],
    [['1', '01'], {}, 'the same place'],
    [['1', '2'], { 'OC-Checksum': `SHA1:${sha1('other')}` }, 'checksum'],
    [[], {}, 'no pieces'],
  ])(
    'MOVE with the pieces %j and the headers %j answers 400, and the pieces stay',
    async (names, headers, reason) => {
      await begin();
      for (const name of names) await put(name, '0123');
      const answer = await moveTo('/file', headers);
      expect([answer.status, answer.text]).toEqual([400, expect.stringContaining(reason)]);
      expect(dav.files.paths()).toEqual([]);
      expect(pieces.upload('ann', 'up')?.pieces.size).toBe(names.length);
    },
  );

  test('MOVE into a folder that is not there answers 409, and succeeds when it is', async () => {
    await begin();
    await put('1', 'text');
    expect((await moveTo('/folder/file')).status).toBe(409);
    await dav.folder('/folder');
    expect((await moveTo('/folder/file')).status).toBe(201);
  });

  test('a piece with a wrong checksum answers 400 and is not kept', async () => {
    await begin();
    expect(await put('1', 'text', { 'OC-Checksum': `SHA1:${sha1('other')}` })).toBe(400);
    expect(pieces.upload('ann', 'up')?.pieces.size).toBe(0);
  });

  test('a piece of a file that is larger than the free space answers 507', async () => {
    await begin();
    const headers = { Destination: `${FILES}/file`, 'OC-Total-Length': '10000' };
    expect(await put('1', 'text', headers)).toBe(507);
    expect(await put('1', 'text', { ...headers, 'OC-Total-Length': '8000' })).toBe(201);
  });

  test('a read-only user can neither begin an upload nor put its pieces at their place', async () => {
    readOnly = '/closed';
    const Destination = `${FILES}/closed/file`;
    expect(await statusOf('MKCOL', UPLOAD, { Destination })).toBe(403);
    expect(await begin()).toBe(201);
    expect(await put('1', 'text', { Destination })).toBe(403);
    expect(await put('1', 'text')).toBe(201);
    expect((await moveTo('/closed/file')).status).toBe(403);
    readOnly = '/';
    places.splice(0, places.length, { isReadOnly: true });
    expect([await statusOf('MKCOL', `${UPLOAD}2`), await put('2', 'text')]).toEqual([403, 403]);
  });

  test.each([
    ['PUT', '/up/name', 403],
    ['PUT', '/up/.file', 403],
    ['GET', '/up/1', 405],
    ['MOVE', '/up/1', 405],
    ['DELETE', '/up/1', 403],
    ['PUT', '/up', 405],
    ['LOCK', '/up', 405],
    ['MKCOL', '/up', 405],
    ['MKCOL', '/up/folder', 405],
    ['DELETE', '', 405],
    ['PUT', '/none/1', 404],
    ['PROPFIND', '/none', 404],
    ['PROPFIND', '/up/7', 404],
    ['MKCOL', `/${'x'.repeat(300)}`, 403],
  ])('%s of uploads/ann%s answers %d', async (method, below, status) => {
    await begin();
    await put('1', 'text');
    const headers = { Destination: `${FILES}/file` };
    const body = method === 'PUT' ? 'x' : undefined;
    expect(await statusOf(method, `/remote.php/dav/uploads/ann${below}`, headers, body)).toBe(status);
    expect(dav.files.paths()).toEqual([]);
  });

  test('another user sees neither the uploads nor the files of an address', async () => {
    await begin();
    for (const target of [UPLOAD, `${FILES}/`]) {
      const answer = await dav.send('PROPFIND', target, { user: 'bob', headers: { Depth: '0' } });
      expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('for the user ann')]);
    }
    const own = await dav.send('PROPFIND', UPLOAD.replace('ann', 'bob'), {
      user: 'bob',
      headers: { Depth: '0' },
    });
    expect(own.status).toBe(404);
  });
});
