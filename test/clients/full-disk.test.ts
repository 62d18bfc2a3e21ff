import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { expectSoon } from '../support/eventually.ts';
import { type Program, startProgram } from '../support/program.ts';
import { startTestService } from '../support/service.ts';
import { mountSmallDisk, type SmallDisk } from '../support/small-disk.ts';

const PATCH = `<D:propertyupdate xmlns:D="DAV:"><D:set><D:prop><colour xmlns="urn:x">blue</colour></D:prop></D:set>
  </D:propertyupdate>`;
const FIND = '<D:propfind xmlns:D="DAV:"><D:prop><colour xmlns="urn:x"/></D:prop></D:propfind>';
const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype>
  </D:lockinfo>`;

interface RequestParts {
  readonly body?: string;
  readonly headers?: Record<string, string>;
  /** Destination of COPY and MOVE, relative like the path. */
  readonly to?: string;
}

async function ask(
  { url, authorization }: Program,
  method: string,
  path: string,
  { body, to, headers }: RequestParts = {},
): Promise<{ readonly status: number; readonly text: string }> {
  const destination = to === undefined ? {} : { destination: new URL(to, url).href };
  const answer = await fetch(new URL(path, url), {
    method,
    headers: { authorization, ...destination, ...headers },
    ...(body !== undefined && { body }),
  });
  return { status: answer.status, text: await answer.text() };
}

interface FullDisk {
  readonly disk: SmallDisk;
  readonly program: Program;
}

const BLUE = ['blue', 'blue to delete', 'blue to move'].map(encodeURI);
const UPLOAD = 'remote.php/dav/uploads/tester/up';
const PLAIN = ['old', 'source', 'target', 'to-move', 'to-delete'];

/** Starts davgate on a disk without a free byte, after a kill on that disk. State, journal and cache are on it. */
async function startOnFullDisk(mode: 'through' | 'back'): Promise<FullDisk> {
  const service = await startTestService();
  onTestFinished(() => service.close());
  // write-back keeps 16 MiB free, and reserves room in its journal.
  const disk = await mountSmallDisk(64);
  onTestFinished(() => disk.unmount());
  const dataDirectory = join(disk.path, 'data');
  const args = ['--write-mode', mode, '--api-url', service.url, '--token', service.token];
  let program = await startProgram({ dataDirectory, args });
  onTestFinished(async () => {
    await program.stop();
  });
  for (const path of [...PLAIN, ...BLUE])
    expect((await ask(program, 'PUT', path, { body: `content of ${path}` })).status).toBe(201);
  await expectSoon(async () => (await ask(program, 'GET', '.davgate/healthz')).text).toContain(
    '"journalFiles":0',
  );
  for (const path of BLUE) expect((await ask(program, 'PROPPATCH', path, { body: PATCH })).status).toBe(207);
  expect((await ask(program, 'MKCOL', UPLOAD)).status).toBe(201);
  disk.fill();
  // The disk is full while the state's log is written, and then davgate is killed.
  expect((await ask(program, 'PROPPATCH', 'old', { body: PATCH })).status).toBe(507);
  await program.kill();
  disk.fill();
  program = await startProgram({ dataDirectory, args });
  disk.fill();
  return { disk, program };
}

interface Row extends RequestParts {
  readonly method: string;
  readonly path: string;
  /** Status while the disk is full. */
  readonly full: number;
  /** Status when there is room again; omitted for a request that cannot succeed twice. */
  readonly roomy?: number;
}

const big = 'content '.repeat(20_000);

/** Requests that need no disk in either mode, then those that need it. */
const BOTH: readonly Row[] = [
  { method: 'GET', path: 'old', full: 200, roomy: 200 },
  { method: 'PROPFIND', path: '', headers: { depth: '1' }, full: 207, roomy: 207 },
  { method: 'MKCOL', path: 'folder', full: 201 },
  { method: 'COPY', path: 'source', to: 'copy', full: 201, roomy: 204 },
  { method: 'MOVE', path: 'to-move', to: 'folder/moved', full: 201 },
  { method: 'MOVE', path: encodeURI('blue to move'), to: 'folder/blue', full: 201 },
  { method: 'DELETE', path: 'to-delete', full: 204 },
  { method: 'DELETE', path: encodeURI('blue to delete'), full: 204 },
  { method: 'COPY', path: 'source', to: 'target', full: 507, roomy: 204 },
  { method: 'COPY', path: 'blue', to: 'blue-copy', full: 507, roomy: 201 },
  { method: 'PUT', path: 'empty', body: '', full: 507, roomy: 201 },
  // The same content with a new modification time, which only the state stores.
  {
    method: 'PUT',
    path: 'old',
    body: 'content of old',
    headers: { 'x-oc-mtime': '981173106' },
    full: 507,
    roomy: 204,
  },
  { method: 'PUT', path: '._litter', body: 'fork', full: 507, roomy: 201 },
  { method: 'PUT', path: `${UPLOAD}/1`, body: 'a piece', full: 507, roomy: 201 },
  { method: 'PROPPATCH', path: 'old', body: PATCH, full: 507, roomy: 207 },
  { method: 'LOCK', path: 'old', body: LOCK, full: 507, roomy: 200 },
  { method: 'LOCK', path: 'locked-and-new', body: LOCK, full: 507, roomy: 201 },
  { method: 'MOVE', path: 'source', to: 'target', full: 507, roomy: 204 },
];

const PUTS: Readonly<Record<'through' | 'back', readonly Row[]>> = {
  through: [
    { method: 'PUT', path: 'new', body: 'new', full: 201, roomy: 204 },
    { method: 'PUT', path: 'new-and-big', body: big, full: 201, roomy: 204 },
    { method: 'PUT', path: 'source', body: 'newer', full: 204, roomy: 204 },
  ],
  back: [
    { method: 'PUT', path: 'new', body: 'new', full: 507, roomy: 201 },
    { method: 'PUT', path: 'new-and-big', body: big, full: 507, roomy: 201 },
    { method: 'PUT', path: 'source', body: 'newer', full: 507, roomy: 204 },
  ],
};

const lineOf = ({ method, path, to }: Row) => `${method} ${path}${to === undefined ? '' : ` to ${to}`}`;

test.each(['through', 'back'] as const)(
  'davgate --write-mode %s starts on a full disk after a kill, serves requests that need no disk, answers 507 to the others, and serves all when there is room',
  async (mode) => {
    const { disk, program } = await startOnFullDisk(mode);
    const rows = [...PUTS[mode], ...BOTH];
    const outcome = async (row: Row) => [lineOf(row), (await ask(program, row.method, row.path, row)).status];
    const onFull: unknown[] = [];
    for (const row of rows) onFull.push(await outcome(row));
    expect(onFull).toEqual(rows.map((row) => [lineOf(row), row.full]));

    // Refused requests have changed nothing.
    const contentOf = async (path: string) => (await ask(program, 'GET', path)).text;
    expect(await contentOf('target')).toBe('content of target');
    expect(await contentOf('source')).toBe(mode === 'through' ? 'newer' : 'content of source');
    for (const path of ['blue-copy', 'empty', 'locked-and-new'])
      expect((await ask(program, 'GET', path)).status, path).toBe(404);
    if (mode === 'through') expect(await contentOf('new-and-big')).toBe(big);
    const colourOf = async (path: string) =>
      (await ask(program, 'PROPFIND', path, { headers: { depth: '0' }, body: FIND })).text;
    for (const path of ['blue', 'folder/blue']) expect(await colourOf(path)).toContain('>blue<');

    disk.makeRoom();
    const again = rows.filter(({ roomy }) => roomy !== undefined);
    const withRoom: unknown[] = [];
    for (const row of again) withRoom.push(await outcome(row));
    expect(withRoom).toEqual(again.map((row) => [lineOf(row), row.roomy]));
    expect(await colourOf('blue-copy')).toContain('>blue<');
    const listing = (await ask(program, 'PROPFIND', 'old', { headers: { depth: '0' } })).text;
    expect(listing).toContain('Sat, 03 Feb 2001 04:05:06 GMT');
    expect(await contentOf('target')).toBe('newer');
    expect(await contentOf('new-and-big')).toBe(big);
  },
);
