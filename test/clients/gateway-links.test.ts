import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { expectSoon } from '../support/eventually.ts';
import { type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { sharedChromium } from '../support/shared.ts';

// Links of the embedded service are opened at the gateway's own address, below `/.davgate/`.

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let program: Program;
let browser: Browser;

beforeAll(async () => {
  directory = await temporaryDirectory();
  browser = await sharedChromium();
  await start();
});
afterAll(async () => {
  await program.stop();
  await directory.remove();
});

async function start(options: { port?: number; args?: readonly string[] } = {}): Promise<void> {
  program = await startProgram({ dataDirectory: directory.path, ...options });
}

async function restart(args: readonly string[] = []): Promise<void> {
  await program.stop();
  await start({ port: Number(new URL(program.url).port), args });
}

function dav(method: string, path: string, body?: string | Uint8Array): Promise<Response> {
  const headers = { authorization: program.authorization, depth: '0' };
  return fetch(new URL(path, program.url), { method, headers, ...(body !== undefined && { body }) });
}

async function put(path: string, body: string | Uint8Array): Promise<void> {
  expect((await dav('PUT', path, body)).status).toBe(201);
}

const NAMES = 'xmlns:D="DAV:" xmlns:g="https://davgate.dev/ns"';

/** Makes a link with PROPPATCH; returns its address. */
async function linkTo(path: string, settings = ''): Promise<string> {
  const link = `<g:shared-link>${settings}</g:shared-link>`;
  const update = `<D:propertyupdate ${NAMES}><D:set><D:prop>${link}</D:prop></D:set></D:propertyupdate>`;
  expect(await (await dav('PROPPATCH', path, update)).text()).toContain('200 OK');
  return shownLink(path);
}

/** Returns the link that PROPFIND shows for a path. */
async function shownLink(path: string): Promise<string> {
  const propfind = `<D:propfind ${NAMES}><D:prop><g:shared-link/></D:prop></D:propfind>`;
  const text = await (await dav('PROPFIND', path, propfind)).text();
  return (/<[^>]*shared-link[^>]*>([^<]+)</.exec(text)?.[1] ?? '').replaceAll('&amp;', '&');
}

const withQuery = (url: string, name: 'dl' | 'raw') => url.replace('dl=0', `${name}=1`);

describe('a link made with PROPPATCH', () => {
  test('a link opens in a browser without a login, before and after a restart, and serves downloads and ranges', async () => {
    await put('/report.txt', 'quarterly figures');
    const url = await linkTo('/report.txt');
    expect(url.startsWith(`${program.url}.davgate/scl/fi/`)).toBe(true);
    for (const round of ['before', 'after']) {
      const page = await browser.newPage();
      expect((await page.goto(url))?.status(), round).toBe(200);
      await expectSoon(() => page.title()).toBe('report.txt');
      await expectSoon(() => page.content()).toContain('quarterly figures');
      await page.close();
      if (round === 'before') await restart();
    }
    expect(await shownLink('/report.txt')).toBe(url);
    const saved = await fetch(withQuery(url, 'dl'));
    expect(saved.headers.get('content-disposition')).toContain('attachment; filename="report.txt"');
    expect(await saved.text()).toBe('quarterly figures');
    const part = await fetch(withQuery(url, 'raw'), { headers: { range: 'bytes=10-' } });
    expect([part.status, await part.text()]).toEqual([206, 'figures']);
  });

  test('a link to a folder leads to its files and is downloaded as an archive', async () => {
    expect((await dav('MKCOL', '/album')).status).toBe(201);
    await put('/album/notes.txt', 'in the album');
    const url = await linkTo('/album');
    const page = await browser.newPage();
    await page.goto(url);
    await page.getByRole('link', { name: 'notes.txt' }).first().click();
    await expectSoon(() => page.title()).toBe('notes.txt');
    expect(page.url()).toContain(`${program.url}.davgate/scl/fo/`);
    await expectSoon(() => page.content()).toContain('in the album');
    await page.close();
    const archive = await fetch(withQuery(url, 'dl'));
    expect(archive.headers.get('content-type')).toBe('application/zip');
    const bytes = Buffer.from(await archive.arrayBuffer());
    expect([bytes.length, bytes.subarray(0, 2).toString()]).toEqual([
      Number(archive.headers.get('content-length')),
      'PK',
    ]);
  });

  test('a link with a password asks for it, and its cookie is for links only', async () => {
    await put('/secret.txt', 'only with the password');
    const url = await linkTo('/secret.txt', '<g:password>open sesame</g:password>');
    const context = await browser.newContext();
    const page = await context.newPage();
    expect((await page.goto(url))?.status()).toBe(403);
    await page.locator('input[type=password]').fill('open sesame');
    await page.keyboard.press('Enter');
    await expectSoon(() => page.content()).toContain('only with the password');
    expect((await context.cookies()).map(({ path, httpOnly }) => [path, httpOnly])).toEqual([
      ['/.davgate/scl/', true],
    ]);
    await context.close();
  });

  test('a link that PROPPATCH removes answers 404', async () => {
    await put('/passing.txt', 'x');
    const url = await linkTo('/passing.txt');
    const remove = `<D:propertyupdate ${NAMES}><D:remove><D:prop><g:shared-link/></D:prop></D:remove></D:propertyupdate>`;
    await dav('PROPPATCH', '/passing.txt', remove);
    expect((await fetch(url)).status).toBe(404);
  });
});

describe('uploaded content', () => {
  test('a linked HTML or SVG file runs no script and is served with a content security policy and nosniff', async () => {
    const script = '<script>document.title = "it ran"</script>';
    for (const [name, body] of [
      ['page.html', script],
      ['picture.svg', `<svg xmlns="http://www.w3.org/2000/svg">${script}</svg>`],
    ] as const) {
      await put(`/${name}`, body);
      const url = await linkTo(`/${name}`);
      for (const address of [url, withQuery(url, 'raw')]) {
        const page = await browser.newPage();
        const answer = await page.goto(address);
        await expectSoon(() => page.title()).not.toBe('it ran');
        const policy = answer?.headers()['content-security-policy'] ?? '';
        expect(policy, address).toMatch(/^(sandbox;|default-src 'none';)/);
        expect(policy).not.toContain('allow-same-origin');
        await page.close();
      }
      expect((await fetch(withQuery(url, 'raw'))).headers.get('x-content-type-options')).toBe('nosniff');
    }
  });
});

describe('an embedded link in another site’s page', () => {
  test('an embedded link shows its file with the script that the gateway serves', async () => {
    await put('/shown.txt', 'shown in a frame');
    const url = await linkTo('/shown.txt');
    const marked = `<a class="davgate-embed" href="${url.replaceAll('&', '&amp;')}">x</a>`;
    const site = createServer((_, response) => {
      response.setHeader('content-type', 'text/html; charset=utf-8');
      response.end(`<!doctype html>${marked}<script src="${program.url}.davgate/embed.js"></script>`);
    });
    onTestFinished(() => void site.close());
    await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
    const page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
    await expectSoon(() => page.frameLocator('iframe').locator('body').innerText()).toContain(
      'shown in a frame',
    );
    await page.close();
  });
});

describe('--public-url', () => {
  afterEach(() => restart());

  test('--public-url is the start of links made before it was set, and of the links in their pages', async () => {
    await put('/public.txt', 'x');
    const before = new URL(await linkTo('/public.txt'));
    await restart(['--public-url', 'https://drive.example/team/']);
    const now = await shownLink('/public.txt');
    expect(now).toBe(`https://drive.example/team${before.pathname}${before.search}`);
    // The proxy at that address strips its own prefix, and its visitors stay below it.
    const { pathname, search } = new URL(now.replace('/team', ''));
    const page = await (await fetch(new URL(pathname + search, program.url))).text();
    const [, href = ''] = /href="([^"]*scl[^"]*)"/.exec(page) ?? [];
    expect(new URL(href, now).href).toMatch(/^https:\/\/drive\.example\/team\/\.davgate\/scl\//);
  });
});

describe('the folder .davgate', () => {
  const reserved = (path: string, method = 'GET', authorization?: string) =>
    fetch(path.startsWith('/') ? `${program.url.replace(/\/$/, '')}${path}` : path, {
      method,
      redirect: 'manual',
      ...(authorization && { headers: { authorization } }),
    });

  test('the folder .davgate answers 404 for API functions, the consent page and other spellings of its paths', async () => {
    for (const path of [
      '/.davgate/2/files/list_folder',
      '/.davgate/2/users/get_current_account',
      '/.davgate/oauth2/authorize',
      '/.davgate/oauth2/token',
      '/.davgate/cd/0/get/x/file',
      '/.davgate/scl',
      '/.davgate/embedded',
      '/.DAVGATE/scl/fi/x/y?rlkey=z',
      '/%2Edavgate/scl/fi/x/y?rlkey=z',
      '//.davgate/scl/fi/x/y?rlkey=z',
    ]) {
      expect((await reserved(path)).status, path).toBe(401);
      expect((await reserved(path, 'GET', program.authorization)).status, path).toBe(404);
    }
  });

  test('a link answers HEAD, WebDAV methods on it need a login and answer 404, and PROPFIND does not list .davgate', async () => {
    await put('/methods.txt', 'x');
    const url = await linkTo('/methods.txt');
    expect((await reserved(url, 'HEAD')).status).toBe(200);
    for (const method of ['PROPFIND', 'PUT', 'DELETE', 'OPTIONS', 'MKCOL', 'LOCK']) {
      expect((await reserved(url, method)).status, method).toBe(401);
      expect((await reserved(url, method, program.authorization)).status, method).toBe(404);
    }
    expect(await (await dav('PROPFIND', '/')).text()).not.toContain('.davgate');
  });
});
