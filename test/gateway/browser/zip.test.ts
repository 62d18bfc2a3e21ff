import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { succeed } from '../../support/command.ts';
import { type FailingFront, startFailingFront } from '../../support/failing-front.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { put, rpc } from '../../support/service-client.ts';

// `/.davgate/api/zip`: the archives of the web application, unpacked by the real unzip.

const large = pseudoRandomBytes(3 * 1024 * 1024 + 17, 1);

let service: TestService;
let front: FailingFront;
let gateway: TestGateway;
let behindFront: Parameters<typeof startTestGateway>[0]['service'];
let directory: string;

beforeAll(async () => {
  service = await startTestService();
  // Before the gateway starts, so that none of its listings is older.
  await put(service, '/One/Grüße \u{1f600}/large.bin', large);
  await put(service, '/One/Grüße \u{1f600}/small.txt', 'small');
  await put(service, '/One/Grüße \u{1f600}/empty', '');
  await rpc(service, 'files/create_folder_v2', { path: '/One/Grüße \u{1f600}/nothing in it' });
  await put(service, '/One/beside', 'not this');
  for (const name of ['a.txt', 'b.txt', 'c.txt', 'sub/d.txt']) await put(service, `/Some/${name}`, name);
  for (const name of ['x/same.txt', 'y/deep/same.txt']) await put(service, `/Spread/${name}`, name);
  await put(service, '/Long/there', 'x');
  await put(service, '/Away/a.txt', 'a');
  front = await startFailingFront(service.url);
  const { appKey, appSecret, refreshToken } = service;
  behindFront = { url: front.url, appKey, appSecret, refreshToken };
  gateway = await startTestGateway({ service: behindFront });
  directory = await mkdtemp(join(tmpdir(), 'davgate-gateway-zip-'));
});
afterEach(() => front.comeBack());
afterAll(async () => {
  await gateway.close();
  await front.close();
  await service.close();
  await rm(directory, { recursive: true });
});

const form = (folder: string, names: readonly unknown[]) =>
  new URLSearchParams({ folder, names: JSON.stringify(names) });

const zipped = (folder: string, names: readonly unknown[], at = gateway.url) =>
  fetch(`${at}/.davgate/api/zip`, { method: 'POST', body: form(folder, names) });

const refusalOf = async (answer: Response) => [answer.status, (await answer.text()).trim()];

/** Returns the paths in an archive and their contents, as unzip unpacks them. A folder's path ends with a slash. */
async function unpacked(answer: Response, name: string): Promise<Map<string, string>> {
  expect(answer.status).toBe(200);
  const archive = new Uint8Array(await answer.arrayBuffer());
  expect(answer.headers.get('content-length')).toBe(String(archive.length));
  const file = join(directory, `${name}.zip`);
  const target = join(directory, name);
  await writeFile(file, archive);
  await succeed('unzip', ['-q', file, '-d', target], { environment: { LC_ALL: 'C.UTF-8' } });
  const found = new Map<string, string>();
  for (const path of await readdir(target, { recursive: true })) {
    const isFolder = (await stat(join(target, path))).isDirectory();
    found.set(isFolder ? `${path}/` : path, isFolder ? '' : await readFile(join(target, path), 'latin1'));
  }
  return found;
}

test('zip answers a folder with everything below it, under its name, with the times of the files', async () => {
  const answer = await zipped('/One', ['Grüße \u{1f600}']);
  expect(answer.headers.get('content-disposition')).toBe(
    'attachment; filename="Gr__e __.zip"; filename*=UTF-8\'\'Gr%C3%BC%C3%9Fe%20%F0%9F%98%80.zip',
  );
  const found = await unpacked(answer, 'one');
  expect([...found.keys()].sort()).toEqual([
    'Grüße \u{1f600}/',
    'Grüße \u{1f600}/empty',
    'Grüße \u{1f600}/large.bin',
    'Grüße \u{1f600}/nothing in it/',
    'Grüße \u{1f600}/small.txt',
  ]);
  expect(found.get('Grüße \u{1f600}/large.bin') === Buffer.from(large).toString('latin1')).toBe(true);
  const { headers } = await fetch(`${gateway.url}/One/${encodeURIComponent('Grüße \u{1f600}')}/small.txt`);
  const { mtimeMs } = await stat(join(directory, 'one/Grüße \u{1f600}/small.txt'));
  expect(mtimeMs).toBe(Date.parse(headers.get('last-modified') ?? ''));
});

test('zip answers a selection of files and folders under the name of their folder', async () => {
  const answer = await zipped('/Some', ['a.txt', 'sub', 'c.txt', 'sub/d.txt', 'A.TXT']);
  expect(answer.headers.get('content-disposition')).toContain('filename="Some.zip"');
  expect(Object.fromEntries(await unpacked(answer, 'some'))).toEqual({
    'a.txt': 'a.txt',
    'c.txt': 'c.txt',
    'sub/': '',
    'sub/d.txt': 'sub/d.txt',
  });
});

test('files of the same name from several folders keep their folders in the archive', async () => {
  const found = await unpacked(await zipped('/', ['Spread/x/same.txt', 'Spread/y/deep/same.txt']), 'spread');
  expect(found.get('Spread/x/same.txt')).toBe('x/same.txt');
  expect(found.get('Spread/y/deep/same.txt')).toBe('y/deep/same.txt');
});

test('10,000 long names are one selection, and files of the list that are not there refuse it with 404', async () => {
  const names = Array.from({ length: 10_000 }, (_, index) => `${'x'.repeat(200)} ${index}`);
  expect(await refusalOf(await zipped('/Long', ['there', ...names]))).toEqual([
    404,
    `/Long/${names[0]} is not there`,
  ]);
});

test('a selection of more names than an archive has room for is refused before the first of them is looked at', async () => {
  const names = Array.from({ length: 300_000 }, (_, index) => `${index}`);
  const [status, text] = await refusalOf(await zipped('/Nowhere', names));
  expect([status, text]).toEqual([403, 'an archive holds 200000 files and folders at most; choose fewer']);
});

test('a selection whose paths would be longer together than davgate keeps is refused before any of them is made', async () => {
  const folder = `/${'x'.repeat(30_000)}`;
  const names = Array.from({ length: 2_000 }, (_, index) => `${index}`);
  const [status, text] = await refusalOf(await zipped(folder, names));
  expect([status, text]).toEqual([403, 'an archive holds 200000 files and folders at most; choose fewer']);
});

const NO_LIST = '"names" must be a JSON list of paths below "folder"';

test.each([
  ['of nothing', [], NO_LIST],
  ['of the folder itself', [''], '"names" is no path: a name may not be empty'],
  ['of a path that leads out of the folder', ['../x'], '"names" is no path: a name may not be ".."'],
  ['of a number', [1], NO_LIST],
  [
    'of a path of a million characters',
    ['a'.repeat(1_000_000)],
    '"names" has a path of 1000005 characters; at most 32768 are allowed',
  ],
  [
    'of a path of 10,000 levels',
    [`${'a/'.repeat(10_000)}a`],
    '"names" has a path of 10002 levels; at most 256 are allowed',
  ],
])('zip %s is refused with 400', async (_what, names, refused) => {
  expect(await refusalOf(await zipped('/One', names))).toEqual([400, refused]);
});

test('zip of a folder that is not there answers 404, and zip that is not sent as a form 415', async () => {
  expect((await zipped('/Nowhere', ['x'])).status).toBe(404);
  const json = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' };
  expect((await fetch(`${gateway.url}/.davgate/api/zip`, json)).status).toBe(415);
});

test('zip answers 503 when the first file cannot be read because the service is away', async () => {
  const impatient = await startTestGateway({ service: behindFront, deadlineMs: 300 });
  onTestFinished(() => impatient.close());
  await (await fetch(`${impatient.url}/Away/`)).text();
  front.leave('reset');
  const answer = await zipped('/', ['Away'], impatient.url);
  expect(await refusalOf(answer)).toEqual([503, 'the storage service cannot be reached']);
});
