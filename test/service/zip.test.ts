import { mkdtemp, open, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ZipEntry, zipBytes, zipSizeBytes } from '../../src/util/zip.ts';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { command, succeed } from '../support/command.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { headerJson, put, refusal, refusalIn, rpc, send } from '../support/service-client.ts';

const MIB = 1024 * 1024;

let service: TestService;
let directory: string;

beforeAll(async () => {
  service = await startTestService();
  directory = await mkdtemp(join(tmpdir(), 'davgate-zip-'));
});
afterAll(async () => {
  await service.close();
  await rm(directory, { recursive: true });
});

const headersFor = (path: string) => ({
  authorization: `Bearer ${service.token}`,
  'dropbox-api-arg': headerJson({ path }),
});
const zipped = (path: string): Promise<Response> =>
  fetch(`${service.url}/2/files/download_zip`, { method: 'POST', headers: headersFor(path) });
const refusedZip = (path: string) =>
  send(`${service.url}/2/files/download_zip`, { method: 'POST', headers: headersFor(path) });

/** Returns the paths in an archive and their contents, as unzip unpacks them. A folder's path ends with a slash. */
async function unpacked(archive: Uint8Array | string, name: string): Promise<Map<string, Buffer>> {
  const file = typeof archive === 'string' ? archive : join(directory, `${name}.zip`);
  if (typeof archive !== 'string') await writeFile(file, archive);
  const target = join(directory, name);
  await succeed('unzip', ['-q', file, '-d', target], { environment: { LC_ALL: 'C.UTF-8' } });
  const found = new Map<string, Buffer>();
  for (const path of await readdir(target, { recursive: true })) {
    const isFolder = (await stat(join(target, path))).isDirectory();
    found.set(isFolder ? `${path}/` : path, isFolder ? Buffer.alloc(0) : await readFile(join(target, path)));
  }
  return found;
}

describe('files/download_zip', () => {
  test('download_zip answers the folder and all below it as an archive that unzip unpacks', async () => {
    const large = pseudoRandomBytes(9 * MIB + 17, 1);
    await put(service, '/Zipped/Grüße \u{1f600}/large.bin', large);
    await put(service, '/Zipped/exact', large.subarray(0, 2 * 65_535));
    await put(service, '/Zipped/empty', '');
    await rpc(service, 'files/create_folder_v2', { path: '/Zipped/nothing in it' });
    await put(service, '/Zipped beside', 'not this');
    const { json: metadata } = await rpc(service, 'files/get_metadata', { path: '/Zipped' });
    const answered = await zipped('/zipped');
    expect(answered.status).toBe(200);
    expect(answered.headers.get('content-type')).toBe('application/zip');
    const { '.tag': _, ...folder } = metadata as Record<string, unknown>;
    expect(JSON.parse(answered.headers.get('dropbox-api-result') ?? '')).toEqual({ metadata: folder });
    expect([answered.headers.get('etag'), answered.headers.get('accept-ranges')]).toEqual([null, null]);
    const archive = new Uint8Array(await answered.arrayBuffer());
    expect(answered.headers.get('content-length')).toBe(String(archive.length));
    const found = await unpacked(archive, 'whole');
    expect([...found.keys()].sort()).toEqual([
      'Zipped/',
      'Zipped/Grüße \u{1f600}/',
      'Zipped/Grüße \u{1f600}/large.bin',
      'Zipped/empty',
      'Zipped/exact',
      'Zipped/nothing in it/',
    ]);
    expect(found.get('Zipped/Grüße \u{1f600}/large.bin')?.equals(large)).toBe(true);
    expect(found.get('Zipped/exact')?.equals(large.subarray(0, 2 * 65_535))).toBe(true);
  });

  test('unzip restores client_modified of a file from the archive of download_zip', async () => {
    await rpc(service, 'files/create_folder_v2', { path: '/Dated' });
    await fetch(`${service.url}/2/files/upload`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.token}`,
        'content-type': 'application/octet-stream',
        'dropbox-api-arg': headerJson({ path: '/Dated/file', client_modified: '2001-02-03T04:05:07Z' }),
      },
      body: 'text',
    });
    await unpacked(new Uint8Array(await (await zipped('/Dated')).arrayBuffer()), 'dated');
    const { mtime } = await stat(join(directory, 'dated/Dated/file'));
    expect(mtime.toISOString()).toBe('2001-02-03T04:05:07.000Z');
  });

  test('a name with control characters has `_` for each in the archive, and no two files share a name', async () => {
    const names = {
      'a\n\rb.txt': 'a__b.txt',
      'a\r\nb.txt': 'a__b (1).txt',
      'c\u009b31m': 'c_31m (1)',
      'safe\u202egpj.exe': 'safe_gpj.exe',
      'line\u2028line': 'line_line',
      c_31m: 'c_31m',
    };
    for (const name of Object.keys(names)) await put(service, `/Names\u0007/${name}`, name);
    const answered = await zipped('/Names\u0007');
    const found = await unpacked(new Uint8Array(await answered.arrayBuffer()), 'names');
    const files = [...found].filter(([path]) => !path.endsWith('/'));
    expect(Object.fromEntries(files.map(([path, bytes]) => [bytes.toString(), path]))).toEqual(
      Object.fromEntries(Object.entries(names).map(([name, inArchive]) => [name, `Names_/${inArchive}`])),
    );
    expect(found.has('Names_/')).toBe(true);
  });

  test('download_zip of a file answers not_folder, of nothing not_found, and of the root 400', async () => {
    await put(service, '/Not a folder', 'text');
    const lookup = (tag: string) => refusal(409, `path/${tag}`, { '.tag': 'path', path: { '.tag': tag } });
    expect(refusalIn(await refusedZip('/Not a folder'))).toEqual(lookup('not_folder'));
    expect(refusalIn(await refusedZip('/Nothing'))).toEqual(lookup('not_found'));
    expect((await refusedZip('/')).status).toBe(400);
  });

  test('download_zip of 10,000 files and folders answers too_many_files, and of 9,999 an archive', async () => {
    const copy = (to_path: string) => rpc(service, 'files/copy_v2', { from_path: '/Hundred', to_path });
    const paths = Array.from({ length: 99 }, (_, index) => `/Hundred/${index}`);
    // No more than 20 at once: for more the service answers with a job.
    for (let index = 0; index < paths.length; index += 20)
      await rpc(service, 'files/create_folder_batch', { paths: paths.slice(index, index + 20) });
    for (let index = 0; index < 99; index++) await copy(`/Crowd/${index}`);
    // With the folder itself, 98 more make 10,000.
    await rpc(service, 'files/delete_v2', { path: '/Hundred/0' });
    await copy('/Crowd/99');
    expect(refusalIn(await refusedZip('/Crowd'))).toEqual(
      refusal(409, 'too_many_files', { '.tag': 'too_many_files' }),
    );
    await rpc(service, 'files/delete_v2', { path: '/Crowd/99/1' });
    const answered = await zipped('/Crowd');
    expect(answered.status).toBe(200);
    await answered.body?.cancel();
  });

  test('download_zip of 20 GB answers too_large, and of 19 GB an archive', async () => {
    const copy = (from_path: string, to_path: string) =>
      rpc(service, 'files/copy_v2', { from_path, to_path });
    await put(service, '/Heavy/0/file', new Uint8Array(32 * MIB));
    // Copies share blocks. Each step doubles the folder, to 1 GiB at the end.
    for (let step = 1; step <= 5; step++) {
      await copy('/Heavy', '/Twin');
      await rpc(service, 'files/move_v2', { from_path: '/Twin', to_path: `/Heavy/${step}` });
    }
    const twenty = Array.from({ length: 19 }, (_, index) => copy('/Heavy', `/Huge/${index}`));
    expect((await Promise.all(twenty)).map(({ status }) => status)).toEqual(twenty.map(() => 200));
    expect(refusalIn(await refusedZip('/Huge'))).toEqual(refusal(409, 'too_large', { '.tag': 'too_large' }));
    await rpc(service, 'files/delete_v2', { path: '/Huge/0' });
    const answered = await zipped('/Huge');
    expect([answered.status, Number(answered.headers.get('content-length')) > 19_000_000_000]).toEqual([
      200,
      true,
    ]);
    await answered.body?.cancel();
  });

  test('an archive holds the folder as it was when the download began, also when its files are overwritten meanwhile', async () => {
    const old = pseudoRandomBytes(6 * MIB, 2);
    await put(service, '/Steady/a', old);
    await put(service, '/Steady/b', old);
    const answered = await zipped('/Steady');
    await put(service, '/Steady/b', 'new');
    await put(service, '/Steady/c', 'new');
    const found = await unpacked(new Uint8Array(await answered.arrayBuffer()), 'steady');
    expect([...found.keys()].sort()).toEqual(['Steady/', 'Steady/a', 'Steady/b']);
    expect(found.get('Steady/b')?.equals(old)).toBe(true);
  });
});

describe('archive of a folder link', () => {
  test('a folder link with dl=1 answers the folder as an archive, and the page of the link leads there', async () => {
    await put(service, '/Linked/sub/file', 'text');
    const { json } = await rpc(service, 'sharing/create_shared_link_with_settings', { path: '/Linked' });
    const { url } = json as { url: string };
    const answered = await fetch(url.replace('dl=0', 'dl=1'));
    expect(answered.headers.get('content-disposition')).toMatch(/^attachment; filename="Linked\.zip"/);
    const found = await unpacked(new Uint8Array(await answered.arrayBuffer()), 'linked');
    expect([...found.keys()].sort()).toEqual(['Linked/', 'Linked/sub/', 'Linked/sub/file']);
    const sub = url.replace('/h?', '/h/sub?');
    const page = await (await fetch(sub)).text();
    const download = /href="([^"]*dl=1)">Download all</.exec(page)?.[1] ?? '';
    const below = await fetch(new URL(download.replaceAll('&amp;', '&'), service.url));
    const inSub = await unpacked(new Uint8Array(await below.arrayBuffer()), 'linked-sub');
    expect([...inSub.keys()].sort()).toEqual(['sub/', 'sub/file']);
  });

  test('a folder link without downloads answers dl=1 with 403, and its page offers no archive', async () => {
    await put(service, '/Looked at/file', 'text');
    const argument = { path: '/Looked at', settings: { allow_download: false } };
    const { json } = await rpc(service, 'sharing/create_shared_link_with_settings', argument);
    const { url } = json as { url: string };
    expect((await fetch(url.replace('dl=0', 'dl=1'))).status).toBe(403);
    expect(await (await fetch(url)).text()).not.toContain('Download all');
  });
});

describe('zipBytes', () => {
  const file = (name: string, sizeBytes: number, bytes: () => AsyncIterable<Uint8Array>): ZipEntry => ({
    name,
    sizeBytes,
    modifiedMs: 0,
    bytes,
  });

  async function* of(...chunks: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
    yield* chunks;
  }

  test.each([1, 3, 5])('an archive fails on a file of %i bytes where 4 are expected', async (sizeBytes) => {
    const entries = [file('x', 4, () => of(Buffer.alloc(sizeBytes)))];
    const all = async () => {
      for await (const _ of zipBytes(entries));
    };
    await expect(all()).rejects.toThrow('"x" does not have the expected 4 bytes');
  });

  test('an archive of more than 65,535 entries is listed and tested by unzip', async () => {
    const entries = Array.from({ length: 66_000 }, (_, index) => file(`e/${index}`, 0, () => of()));
    const path = join(directory, 'many.zip');
    expect(await written(path, entries)).toBe(zipSizeBytes(entries));
    const listed = await succeed('unzip', ['-Z', '-1', path]);
    expect(listed.stdout.trim().split('\n').length).toBe(66_000);
    expect((await command('unzip', ['-tqq', path])).code).toBe(0);
  });

  test('an archive with a file of more than 4 GiB is listed by unzip with sizes and names, and the file after it extracted', async () => {
    const count = 400;
    const large = () => of(...Array.from({ length: count }, () => ZEROS));
    const entries = [
      file('large', ZEROS.length * count, large),
      file('small', 4, () => of(Buffer.from('text'))),
    ];
    const path = join(directory, 'large-file.zip');
    expect(await written(path, entries)).toBe(zipSizeBytes(entries));
    expect((await succeed('unzip', ['-Z', '-l', path])).stdout).toContain(String(ZEROS.length * count));
    expect((await succeed('unzip', ['-Z', '-1', path])).stdout).toBe('large\nsmall\n');
    expect((await succeed('unzip', ['-p', path, 'small'])).stdout).toBe('text');
  });

  /** Writes an archive with holes in place of the bytes of large files, which no test reads; returns its size. */
  async function written(path: string, entries: readonly ZipEntry[]): Promise<number> {
    const handle = await open(path, 'w');
    let sizeBytes = 0;
    const pending: Uint8Array[] = [];
    const writePending = async () => {
      const bytes = Buffer.concat(pending.splice(0));
      await handle.write(bytes, 0, bytes.length, sizeBytes - bytes.length);
    };
    for await (const chunk of zipBytes(entries)) {
      if (isZeros(chunk.subarray(-HOLE_BYTES_MIN))) await writePending();
      else pending.push(chunk);
      sizeBytes += chunk.length;
    }
    await writePending();
    await handle.close();
    return sizeBytes;
  }
});

const ZEROS = Buffer.alloc(11 * MIB);

/** Bytes at the end of a chunk that are zeros only in a large file: less than a stored block has. */
const HOLE_BYTES_MIN = 32 * 1024;

function isZeros(bytes: Uint8Array): boolean {
  return bytes.length === HOLE_BYTES_MIN && ZEROS.subarray(0, bytes.length).equals(bytes);
}
