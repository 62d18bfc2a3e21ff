import { appendFile, readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { command, succeed } from '../support/command.ts';
import { shows } from '../support/compatibility.ts';
import { parseMultistatus } from '../support/multistatus.ts';
import { ODD_NAMES } from '../support/odd-names.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';

const SIZE = 9_000_000;
const content = pseudoRandomBytes(SIZE, 11);

let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let local: Awaited<ReturnType<typeof temporaryDirectory>>;

beforeAll(async () => {
  [data, local] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  const args = ['--cors-origin', 'https://app.example.org, https://app.keeweb.info'];
  program = await startProgram({ dataDirectory: data.path, args });
  await writeFile(join(local.path, 'source'), content);
});
afterAll(async () => {
  await program?.stop();
  await Promise.all([data.remove(), local.remove()]);
});

const login = () => ['-sS', '-u', `${program.user}:${program.password}`];

/** Runs curl in the local folder; returns the status of the answer. */
async function curl(...args: string[]): Promise<number> {
  const { stdout } = await succeed('curl', [...login(), '-o', 'body', '-w', '%{http_code}', ...args], {
    directory: local.path,
  });
  return Number(stdout);
}

const body = () => readFile(join(local.path, 'body'));

async function headerOf(name: string, path: string): Promise<string> {
  const { stdout } = await succeed('curl', [...login(), '-I', program.url + path]);
  return new RegExp(`^${name}: (.*)\\r$`, 'im').exec(stdout)?.[1] ?? '';
}

test(
  'curl uploads a file of 9 MB, downloads it byte for byte, and uploads it again',
  shows('curl', 'read', 'write', 'large file', 'overwrite'),
  async () => {
    expect(await curl('-T', 'source', `${program.url}file`)).toBe(201);
    expect(await curl(`${program.url}file`)).toBe(200);
    expect((await body()).equals(content)).toBe(true);
    expect(await curl('-T', 'source', `${program.url}file`)).toBe(204);
  },
);

test(
  'curl -X makes a folder, lists, renames, moves, copies and deletes files with odd names in it',
  shows('curl', 'list', 'rename', 'move', 'copy', 'delete', 'odd names'),
  async () => {
    const folder = `${program.url}odd/`;
    const names = [...ODD_NAMES, '#?%41 ü'].map((name) => encodeURIComponent(name)).concat('caf%E9');
    const listed = async (address: string) => {
      expect(await curl('-X', 'PROPFIND', '-H', 'Depth: 1', address)).toBe(207);
      const rows = await parseMultistatus((await body()).toString());
      return rows.slice(1).map(({ href }) => href.slice(new URL(address).pathname.length));
    };
    const moved = (method: string, from: string, to: string) =>
      curl('-X', method, '-H', `Destination: ${folder}${to}`, `${folder}${from}`);
    expect(await curl('-X', 'MKCOL', folder)).toBe(201);
    expect(await curl('-X', 'MKCOL', `${folder}sub/`)).toBe(201);
    await writeFile(join(local.path, 'text'), 'text');
    for (const name of names) {
      expect(await curl('-T', 'text', `${folder}${name}`)).toBe(201);
      expect(await moved('MOVE', name, `new%20${name}`)).toBe(201);
      expect(await moved('MOVE', `new%20${name}`, `sub/${name}`)).toBe(201);
      expect(await moved('COPY', `sub/${name}`, name)).toBe(201);
      expect(await curl(`${folder}${name}`)).toBe(200);
      expect((await body()).toString()).toBe('text');
    }
    expect((await listed(folder)).sort()).toEqual([...names, 'sub/'].sort());
    expect((await listed(`${folder}sub/`)).sort()).toEqual([...names].sort());
    for (const name of names) expect(await curl('-X', 'DELETE', `${folder}${name}`)).toBe(204);
    expect(await listed(folder)).toEqual(['sub/']);
  },
);

test(
  'curl --parallel uploads four files at the same time, and all are whole',
  shows('curl', 'two at once'),
  async () => {
    const names = ['1', '2', '3', '4'];
    for (const name of names)
      await writeFile(join(local.path, name), pseudoRandomBytes(1_000_000, Number(name)));
    const folder = `${program.url}at%20once/`;
    expect(await curl('-X', 'MKCOL', folder)).toBe(201);
    await succeed('curl', [...login(), '--parallel', '-T', `{${names}}`, folder], { directory: local.path });
    for (const name of names) {
      expect(await curl(folder + name)).toBe(200);
      expect((await body()).equals(pseudoRandomBytes(1_000_000, Number(name)))).toBe(true);
    }
  },
);

test('curl -L uploads and downloads a file whose name is typed without percent-encoding', async () => {
  expect(await curl('-L', '-T', 'source', `${program.url}käse-日本.txt`)).toBe(201);
  expect(await curl(`${program.url}k%C3%A4se-%E6%97%A5%E6%9C%AC.txt`)).toBe(200);
  expect((await body()).equals(content)).toBe(true);
  expect(await curl('-L', `${program.url}käse-日本.txt`)).toBe(200);
  expect((await body()).equals(content)).toBe(true);
});

test('a chunked PUT by curl without a length is stored whole', async () => {
  const { stdout } = await succeed(
    'sh',
    ['-c', `cat source | curl -sS -u "$LOGIN" -o /dev/null -w '%{http_code}' -T - '${program.url}chunked'`],
    { directory: local.path, environment: { LOGIN: `${program.user}:${program.password}` } },
  );
  expect(stdout).toBe('201');
  expect(await headerOf('content-length', 'chunked')).toBe(String(SIZE));
  await curl(`${program.url}chunked`);
  expect((await body()).equals(content)).toBe(true);
});

test.each([
  ['0-0', 0, 1],
  ['4194303-4194304', 4194303, 4194305],
  ['8999000-', 8_999_000, SIZE],
  ['-500', SIZE - 500, SIZE],
  ['8999999-99999999', 8_999_999, SIZE],
])(
  'curl gets the range %s with status 206 and the right bytes',
  shows('curl', 'range'),
  async (range, start, end) => {
    expect(await curl('-r', range, `${program.url}file`)).toBe(206);
    expect((await body()).equals(content.subarray(start, end))).toBe(true);
  },
);

test('curl gets two ranges at once with status 206 as parts with Content-Range', async () => {
  expect(await curl('-r', '0-9,5000000-5000009', `${program.url}file`)).toBe(206);
  const parts = (await body()).toString('latin1');
  expect(parts).toContain(content.subarray(0, 10).toString('latin1'));
  expect(parts).toContain(content.subarray(5_000_000, 5_000_010).toString('latin1'));
  expect(parts).toContain(`Content-Range: bytes 5000000-5000009/${SIZE}`);
});

test('curl gets status 416 for a range beyond the end', async () => {
  expect(await curl('-r', `${SIZE}-`, `${program.url}file`)).toBe(416);
});

test('curl -C - completes a broken download to the right bytes', async () => {
  await writeFile(join(local.path, 'partial'), content);
  await truncate(join(local.path, 'partial'), 5_000_001);
  await succeed('curl', [...login(), '-C', '-', '-o', 'partial', `${program.url}file`], {
    directory: local.path,
  });
  expect((await readFile(join(local.path, 'partial'))).equals(content)).toBe(true);
});

test('curl -C OFFSET -T completes an upload to a file that has the bytes before the offset, and to no other', async () => {
  const url = `${program.url}resumed`;
  await writeFile(join(local.path, 'beginning'), content.subarray(0, 4_000_000));
  expect(await curl('-T', 'beginning', url)).toBe(201);
  expect(await curl('-C', '4000001', '-T', 'source', url)).toBe(416);
  expect(await curl('-C', '4000000', '-T', 'source', url)).toBe(204);
  expect(await curl(url)).toBe(200);
  expect((await body()).equals(content)).toBe(true);
});

test('GET answers 304 to a matching If-None-Match or If-Modified-Since, 412 to another If-Match, and 200 to another If-None-Match', async () => {
  const tag = await headerOf('etag', 'file');
  expect(tag).toMatch(/^"[^"]+"$/);
  expect(await curl('-H', `If-None-Match: ${tag}`, `${program.url}file`)).toBe(304);
  expect(await curl('-H', 'If-None-Match: "other"', `${program.url}file`)).toBe(200);
  expect(await curl('-H', 'If-Match: "other"', `${program.url}file`)).toBe(412);
  expect(await curl('-z', await headerOf('last-modified', 'file'), `${program.url}file`)).toBe(304);
});

test('PUT with If-None-Match: * on an existing file, or with a stale If-Match, answers 412 and keeps the content', async () => {
  await writeFile(join(local.path, 'small'), 'second');
  const url = `${program.url}conditional`;
  expect(await curl('-T', 'small', '-H', 'If-None-Match: *', url)).toBe(201);
  expect(await curl('-T', 'small', '-H', 'If-None-Match: *', url)).toBe(412);
  const tag = await headerOf('etag', 'conditional');
  await appendFile(join(local.path, 'small'), ', third');
  expect(await curl('-T', 'small', '-H', `If-Match: ${tag}`, url)).toBe(204);
  expect(await curl('-T', 'source', '-H', `If-Match: ${tag}`, url)).toBe(412);
  await curl(url);
  expect((await body()).toString()).toBe('second, third');
});

test('an upload by curl that breaks off keeps the old entity tag', async () => {
  const before = await headerOf('etag', 'file');
  const { code } = await command(
    'sh',
    [
      '-c',
      `head -c 3000000 source | curl -sS -u "$LOGIN" -H 'Content-Length: ${SIZE}' -H 'Transfer-Encoding:' -m 3 -T - '${program.url}file'`,
    ],
    { directory: local.path, environment: { LOGIN: `${program.user}:${program.password}` } },
  );
  expect(code).not.toBe(0);
  expect(await headerOf('etag', 'file')).toBe(before);
});

test('a CORS preflight for PUT is granted to an origin of --cors-origin and to no other', async () => {
  const ask = async (origin: string) => {
    const question = ['-H', `Origin: ${origin}`, '-H', 'Access-Control-Request-Method: PUT'];
    return (await succeed('curl', ['-sSi', '-X', 'OPTIONS', ...question, `${program.url}db.kdbx`])).stdout;
  };
  expect(await ask('https://app.keeweb.info')).toMatch(
    /^HTTP\/1\.1 200 [\s\S]*Access-Control-Allow-Origin: https:\/\/app\.keeweb\.info\r/,
  );
  expect(await ask('https://other.example')).toMatch(/^HTTP\/1\.1 200 (?![\s\S]*Access-Control)/);
});
