import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  request as send,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { expectSoon } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { sharedChromium } from '../support/shared.ts';

// The web application and shared links of a drive below a path: one path that davgate knows, and one that a proxy takes off.

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program;
let browser: Browser;
let proxy: Server;

beforeAll(async () => {
  directory = await temporaryDirectory();
  browser = await sharedChromium();
  const args = ['--base-path', '/team/drive', '--trusted-proxy', '127.0.0.1'];
  program = await startProgram({ dataDirectory: directory.path, args });
  proxy = createServer(forward);
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  proxy.closeAllConnections();
  await new Promise((resolve) => proxy.close(resolve));
  await program.stop();
  await directory.remove();
});

/** Takes `/cloud` off, and passes everything else to davgate. */
function forward(incoming: IncomingMessage, outgoing: ServerResponse): void {
  const { method, url = '', headers } = incoming;
  if (!url.startsWith('/cloud/')) return void outgoing.writeHead(404).end();
  const forwarded = { ...headers, 'x-forwarded-prefix': '/cloud', 'x-forwarded-for': '127.0.0.1' };
  const asked = send(new URL(url.slice('/cloud'.length), program.url), { method, headers: forwarded });
  asked.on('response', (answer) => {
    outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(outgoing);
  });
  incoming.pipe(asked);
}

const PLACES = [
  ['directly', () => new URL('/team/drive/', program.url).href],
  [
    'through a proxy that takes a path off',
    () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/cloud/team/drive/`,
  ],
] as const;

async function openPage(): Promise<Page> {
  const headers = { authorization: program.authorization };
  const context = await browser.newContext({ extraHTTPHeaders: headers });
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.on('pageerror', ({ message }) => expect.fail(message));
  return page;
}

test.each(PLACES)(
  'the web application opens, makes a folder, uploads and goes back below a path, %s',
  async (_, address) => {
    const page = await openPage();
    const outside: string[] = [];
    page.on('request', (request) => {
      if (/^https?:/.test(request.url()) && !request.url().startsWith(address())) outside.push(request.url());
    });
    await page.goto(address());
    await page.getByRole('button', { name: 'New folder' }).click();
    await page.getByRole('dialog').getByRole('textbox').fill('ph #o');
    await page.keyboard.press('Enter');
    await page.getByText('ph #o', { exact: true }).click();
    await expectSoon(() => page.url()).toBe(`${address()}ph%20%23o/`);
    await page
      .locator('input[type=file]')
      .first()
      .setInputFiles({ name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('content') });
    await page.locator('.item').getByText('a.txt', { exact: true }).waitFor();
    const stored = await fetch(`${address()}ph%20%23o/a.txt`, {
      headers: { authorization: program.authorization },
    });
    expect(await stored.text()).toBe('content');
    await page.goBack();
    await expectSoon(() => page.url()).toBe(address());
    await page.getByText('ph #o', { exact: true }).waitFor();
    expect(outside).toEqual([]);
    await fetch(`${address()}ph%20%23o/`, {
      method: 'DELETE',
      headers: { authorization: program.authorization },
    });
  },
);

test.each(PLACES)(
  'the dialog that connects other programs names the address of the drive, %s',
  async (_, address) => {
    const page = await openPage();
    await page.goto(address());
    await page.getByRole('button', { name: 'Connect' }).click();
    await page.getByRole('dialog').getByText(address(), { exact: true }).first().waitFor();
  },
);

test.each(PLACES)('a person signs in and out on a page below the path, %s', async (_, address) => {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  await page.goto(`${address()}?from=test`);
  await page.getByLabel('User name').fill(program.user);
  await page.getByLabel('Password', { exact: true }).fill(program.password);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'New folder' }).waitFor();
  expect(page.url()).toBe(`${address()}?from=test`);
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByLabel('Password', { exact: true }).waitFor();
  expect(page.url().startsWith(address())).toBe(true);
});

test.each(PLACES)(
  'a shared folder with a password opens below the path, %s, and its pages stay there',
  async (_, address) => {
    const dav = (method: string, path: string, body?: string) =>
      fetch(new URL(path, address()), {
        method,
        headers: {
          authorization: program.authorization,
          ...(body?.startsWith('{') && { 'content-type': 'application/json' }),
        },
        ...(body !== undefined && { body }),
      });
    await dav('MKCOL', 'album/');
    await dav('PUT', 'album/notes.txt', 'in the album');
    const share = JSON.stringify({ path: '/album', password: 'sesame' });
    const { url } = (await (await dav('POST', '.davgate/api/share', share)).json()) as { url: string };
    // Links begin with --public-url, and by default with the address that davgate listens on.
    expect(url.startsWith(new URL('/team/drive/.davgate/scl/', program.url).href)).toBe(true);
    const page = await openPage();
    const links = `${address()}.davgate/scl/`;
    await page.goto(url.replace(/^.*\/scl\//, links));
    await page.locator('input[type=password]').fill('sesame');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'notes.txt' }).first().click();
    await expectSoon(() => page.title()).toBe('notes.txt');
    expect(page.url().startsWith(links)).toBe(true);
    await expectSoon(() => page.content()).toContain('in the album');
    expect((await page.context().cookies()).map(({ path }) => path)).toEqual([new URL(links).pathname]);
    await dav('DELETE', 'album/');
  },
);
