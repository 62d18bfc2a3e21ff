import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { command, succeed } from '../support/command.ts';
import { effort } from '../support/effort.ts';
import { WAIT_MS } from '../support/eventually.ts';
import { TLS } from '../support/http2.ts';
import { PASSWORD, type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { sharedChromium } from '../support/shared.ts';

// HTTP/2 with the built davgate: curl, and the web application in Chromium.

const SIZE = effort(64) * 1024 * 1024;

let program: Program;
let data: Awaited<ReturnType<typeof temporaryDirectory>>;
let local: Awaited<ReturnType<typeof temporaryDirectory>>;

const tls = ['--tls-cert', TLS.certFile, '--tls-key', TLS.keyFile];

beforeAll(async () => {
  [data, local] = await Promise.all([temporaryDirectory(), temporaryDirectory()]);
  program = await startProgram({ dataDirectory: data.path, args: tls });
});
afterAll(async () => {
  await program?.stop();
  await Promise.all([data.remove(), local.remove()]);
});

/** Runs curl with HTTP/2 in the local folder; returns the version and the status of the answer. */
async function curl(path: string, ...args: string[]): Promise<string> {
  const own = ['-sSk', '--http2', '-u', `${program.user}:${program.password}`, '-o', 'body'];
  const { stdout } = await succeed(
    'curl',
    [...own, '-w', '%{http_version} %{http_code}', ...args, program.url + path],
    { directory: local.path },
  );
  return stdout;
}

const body = () => readFile(join(local.path, 'body'));
const header = (text: string) => ['-H', text];

describe('curl', () => {
  test('every WebDAV method is answered over HTTP/2', async () => {
    await writeFile(join(local.path, 'a'), 'content');
    expect(await curl('', '-X', 'OPTIONS')).toBe('2 200');
    expect(await curl('methods/', '-X', 'MKCOL')).toBe('2 201');
    expect(await curl('methods/a', '-T', 'a')).toBe('2 201');
    expect(await curl('methods/a', '-T', 'a', ...header('If-Match: "stale"'))).toBe('2 412');
    expect(await curl('methods/a', '-r', '3-4')).toBe('2 206');
    expect(String(await body())).toBe('te');
    const lock =
      '<lockinfo xmlns="DAV:"><lockscope><exclusive/></lockscope><locktype><write/></locktype></lockinfo>';
    expect(await curl('methods/a', '-X', 'LOCK', '-d', lock, '-D', 'head')).toBe('2 200');
    const [, token = ''] = /lock-token: (<.*>)/.exec(String(await readFile(join(local.path, 'head')))) ?? [];
    expect(await curl('methods/a', '-T', 'a')).toBe('2 423');
    expect(await curl('methods/a', '-T', 'a', ...header(`If: (${token})`))).toBe('2 204');
    expect(await curl('methods/a', '-X', 'UNLOCK', ...header(`Lock-Token: ${token}`))).toBe('2 204');
    const set =
      '<propertyupdate xmlns="DAV:"><set><prop><x xmlns="urn:x">1</x></prop></set></propertyupdate>';
    expect(await curl('methods/a', '-X', 'PROPPATCH', '-d', set)).toBe('2 207');
    const target = header(`Destination: ${program.url}methods/b`);
    expect(await curl('methods/a', '-X', 'COPY', ...target)).toBe('2 201');
    expect(await curl('methods/a', '-X', 'MOVE', ...target)).toBe('2 204');
    expect(await curl('methods/', '-X', 'PROPFIND', ...header('Depth: 1'))).toBe('2 207');
    expect(String(await body())).toContain('<D:href>/methods/b</D:href>');
    expect(await curl('methods/b', '-I')).toBe('2 200');
    expect(await curl('methods/', '-X', 'DELETE')).toBe('2 204');
    expect(await curl('methods/b')).toBe('2 404');
  });

  test('a condition in two lines is one list, so that a PUT replaces nothing that it names in the second', async () => {
    await writeFile(join(local.path, 'a'), 'content');
    expect(await curl('listed', '-T', 'a', '-D', 'head')).toBe('2 201');
    const [, tag = ''] = /etag: (".*")/.exec(String(await readFile(join(local.path, 'head')))) ?? [];
    const lines = (name: string, ...tags: string[]) => tags.flatMap((each) => header(`${name}: ${each}`));
    expect(await curl('listed', '-T', 'a', ...lines('If-None-Match', '"other"', tag))).toBe('2 412');
    expect(await curl('listed', ...lines('If-None-Match', '"other"', tag))).toBe('2 304');
    expect(await curl('listed', '-T', 'a', ...lines('If-Match', '"other"', tag))).toBe('2 204');
  });

  test('a large file is stored and read byte for byte, with and without an announced length', async () => {
    const content = pseudoRandomBytes(SIZE, 3);
    await writeFile(join(local.path, 'large'), content);
    expect(await curl('large', '-T', 'large')).toBe('2 201');
    expect(await curl('large')).toBe('2 200');
    expect((await body()).equals(content)).toBe(true);
    const { stdout } = await succeed(
      'sh',
      [
        '-c',
        `cat large | curl -sSk --http2 -u "$LOGIN" -o /dev/null -w '%{http_code}' -T - '${program.url}large'`,
      ],
      { directory: local.path, environment: { LOGIN: `${program.user}:${program.password}` } },
    );
    expect(stdout).toBe('204');
    expect(await curl('large', '-r', '-1000')).toBe('2 206');
    expect((await body()).equals(content.subarray(-1000))).toBe(true);
  });

  test('an upload with a wrong password gets 401 before its body is sent', async () => {
    const { stdout } = await command(
      'curl',
      [
        '-sSk',
        '--http2',
        '-u',
        'tester:wrong',
        '-T',
        'large',
        '-w',
        '%{http_code} %{size_upload}',
        `${program.url}x`,
      ],
      { directory: local.path },
    );
    const [, status, sizeBytes] = /of this davgate\.\s+(\d+) (\d+)$/.exec(stdout) ?? [];
    expect(status).toBe('401');
    expect(Number(sizeBytes)).toBeLessThan(SIZE);
  });

  test('with --http2 off curl gets HTTP/1.1', async () => {
    const other = await temporaryDirectory();
    const without = await startProgram({ dataDirectory: other.path, args: [...tls, '--http2', 'off'] });
    const { stdout } = await succeed('curl', [
      '-sSk',
      '--http2',
      '-w',
      '%{http_version}',
      '-o',
      '/dev/null',
      without.url,
    ]);
    expect(stdout).toBe('1.1');
    await without.stop();
    await other.remove();
  });
});

describe('the web application in Chromium', () => {
  let context: BrowserContext;
  let page: Page;

  beforeAll(async () => {
    context = await (await sharedChromium()).newContext({ ignoreHTTPSErrors: true });
    context.setDefaultTimeout(WAIT_MS);
    page = await context.newPage();
    await page.goto(program.url);
    await page.getByLabel('User name').fill(program.user);
    await page.getByLabel('Password', { exact: true }).fill(PASSWORD);
    await page.keyboard.press('Enter');
    await page.locator('footer.page .count').getByText(/\d/).waitFor();
  });
  afterAll(() => context?.close());

  /** Returns the protocols of all that the page has loaded. */
  const protocols = () =>
    page.evaluate(() => {
      const entries = performance.getEntries().map((entry) => String(entry.toJSON().nextHopProtocol ?? ''));
      return [...new Set(entries.filter((protocol) => protocol !== ''))];
    });

  test('the page, its scripts and an upload use HTTP/2 alone', async () => {
    const content = pseudoRandomBytes(3_000_000, 5);
    await page.getByLabel('Upload files').setInputFiles({
      ...{ name: 'from the page.bin', mimeType: 'application/octet-stream', buffer: Buffer.from(content) },
    });
    await page.getByText('1 uploaded').waitFor();
    expect(await curl('from%20the%20page.bin')).toBe('2 200');
    expect((await body()).equals(content)).toBe(true);
    expect(await protocols()).toEqual(['h2']);
  });

  test('ten pages that follow the drive do not keep another request waiting', async () => {
    const status = await page.evaluate(async () => {
      const over = new AbortController();
      const streams = await Promise.all(
        Array.from({ length: 10 }, () => fetch('/.davgate/api/changes', { signal: over.signal })),
      );
      const other = await fetch('/', { method: 'PROPFIND', headers: { Depth: '0' } });
      over.abort();
      return [...new Set(streams.map((stream) => stream.status)), other.status];
    });
    expect(status).toEqual([200, 207]);
  });
});
