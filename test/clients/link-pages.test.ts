import type { Browser, Page } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import { expectSoon } from '../support/eventually.ts';
import { onePagePdf, silentWav } from '../support/media.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, sharedLink } from '../support/service-client.ts';
import { sharedChromium } from '../support/shared.ts';
import { HOSTILE, type WatchedPage, watchedPage } from '../support/watched-page.ts';

let service: TestService;
let browser: Browser;
/** Browser with a PDF viewer. */
let desktop: Browser;
let watched: WatchedPage;
let page: Page;

beforeAll(async () => {
  service = await startTestService();
  [browser, desktop] = await Promise.all([sharedChromium(), startChromium({ hasPdfViewer: true })]);
});
afterAll(async () => {
  await desktop.close();
  await service.close();
});
beforeEach(async () => {
  watched = await watchedPage(browser, { viewport: { width: 1000, height: 700 } });
  page = watched.page;
});
afterEach(() => watched.close());

const linkTo = (path: string, settings?: object) => sharedLink(service, path, settings);

/** Makes a PNG of `width` by `height` pixels in one colour. */
const picture = (width: number, height: number) =>
  sharp({ create: { width, height, channels: 3, background: '#4a8' } })
    .png()
    .toBuffer();

/** Evaluates `script` in the page. It is a string, because its globals are those of a browser. */
const inPage = <T>(script: string) => page.evaluate<T>(script);

async function widthOf(selector: string): Promise<number> {
  return Math.round((await page.locator(selector).boundingBox())?.width ?? 0);
}

describe('the link page of a file', () => {
  afterEach(() => expect(watched.noises).toEqual([]));

  test('an image on its link page fits the window, a click shows it in full size, and another click fits it again', async () => {
    await put(service, '/wide.png', await picture(2000, 500));
    await page.goto(await linkTo('/wide.png'));
    await expectSoon(() => page.title()).toBe('wide.png');
    await expectSoon(() => widthOf('img')).toBeLessThan(1000);
    await page.locator('.canvas').click();
    await expectSoon(() => widthOf('img')).toBe(2000);
    await expectSoon(() => inPage('document.documentElement.scrollWidth')).toBe(1000);
    await page.locator('.canvas').click({ position: { x: 5, y: 5 } });
    await expectSoon(() => widthOf('img')).toBeLessThan(1000);
  });

  test('a small image on its link page keeps its size, and zoom=fit enlarges it', async () => {
    await put(service, '/small.png', await picture(40, 40));
    const url = await linkTo('/small.png');
    await page.goto(url);
    await expectSoon(() => widthOf('img')).toBe(40);
    await page.goto(`${url}&zoom=fit`);
    await expectSoon(() => widthOf('img')).toBeGreaterThan(800);
    await page.goto(`${url}&zoom=actual`);
    await expectSoon(() => widthOf('img')).toBe(40);
  });

  test('a sound on its link page is loaded by a player', async () => {
    await put(service, '/tone.wav', silentWav(2));
    await page.goto(await linkTo('/tone.wav'));
    await page.waitForFunction('document.querySelector("audio").readyState > 0');
    await expectSoon(() => inPage('document.querySelector("audio").duration')).toBe(2);
  });

  test('a WebM film on its link page has a player with controls', async () => {
    await put(service, '/film.webm', 'no film');
    await page.goto(await linkTo('/film.webm'));
    await expectSoon(() => inPage('document.querySelector("video").controls')).toBe(true);
    await page.waitForFunction('document.querySelector("video").error !== null');
  });

  test('a PDF on its link page is in the browser’s own viewer', async () => {
    await put(service, '/paper.pdf', onePagePdf('Hello'));
    const { page, noises } = await watchedPage(desktop);
    const viewer = page.waitForEvent('framenavigated', (frame) => frame.url().includes('raw=1'));
    await page.goto(await linkTo('/paper.pdf'));
    await viewer;
    await expectSoon(() => page.locator('object .card').isVisible()).toBe(false);
    expect(noises).toEqual([]);
  });

  test('code on its link page is coloured and its lines are numbered', async () => {
    await put(service, '/code.ts', 'export const a = 1;\n/* two\n   three */\n');
    await page.goto(await linkTo('/code.ts'));
    await expectSoon(() => page.locator('.line').count()).toBe(4);
    const colourOf = (selector: string) =>
      inPage<string>(`getComputedStyle(document.querySelector('${selector}')).color`);
    await expectSoon(() => colourOf('.hljs-keyword')).not.toBe(await colourOf('.line'));
    const number = await inPage<string>(
      "getComputedStyle(document.querySelector('.line'), '::before').content",
    );
    expect(number).toBe('counter(line)');
    await expectSoon(() => page.locator('pre').innerText()).toContain('export const a = 1;');
  });

  test('Markdown on its link page is rendered', async () => {
    await put(service, '/notes.md', '# Heading\n\n- one\n- **two**\n');
    await page.goto(await linkTo('/notes.md'));
    await expectSoon(() => page.locator('article h1').innerText()).toBe('Heading');
    await expectSoon(() => page.locator('article strong').innerText()).toBe('two');
  });

  test('a long text on its link page is cut, and a note says so', async () => {
    await put(service, '/long.txt', 'All work and no play.\n'.repeat(10_000));
    await page.goto(await linkTo('/long.txt'));
    await expectSoon(() => page.locator('.note').innerText()).toBe(
      'These are the first 66 kB of the file. Download it to see all.',
    );
    expect((await page.locator('pre').innerText()).length).toBeLessThan(70_000);
  });

  test.each([
    ['Grüße without an ending', Buffer.from('Grüße'), 'Grüße'],
    ['windows.csv', Buffer.from('\ufeffa;b\r\n1;2', 'utf16le'), 'a;b\n1;2'],
    ['bytes.dat', Buffer.from([0x50, 0x4b, 3, 4, 0, 0xff]), 'There is no preview for files of this type.'],
    ['empty.ts', Buffer.from(''), 'This file is empty.'],
  ])('the link page of %s shows its text or why there is no preview', async (name, bytes, text) => {
    await put(service, `/kinds/${name}`, bytes);
    await page.goto(await linkTo(`/kinds/${name}`));
    expect((await page.locator('main').innerText()).trim()).toBe(text);
  });

  test('a file is downloaded from its link page under its name', async () => {
    await put(service, '/saved Ü.txt', 'text');
    await page.goto(await linkTo('/saved Ü.txt'));
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download' }).click();
    expect((await download).suggestedFilename()).toBe('saved Ü.txt');
  });
});

describe('the link page of a folder', () => {
  afterEach(() => expect(watched.noises).toEqual([]));

  test('the link page of a folder leads to its folders and files in the chosen view, and back', async () => {
    await put(service, '/trip/day 10/b.txt', 'bee');
    await put(service, '/trip/day 2/a #1?.txt', 'aye');
    await put(service, '/trip/z.txt', 'zed');
    await page.goto(await linkTo('/trip'));
    await expectSoon(() => page.locator('.items a').allInnerTexts()).toEqual(['day 2', 'day 10', 'z.txt']);
    await expectSoon(() => page.locator('li.file .size').innerText()).toBe('3 bytes');
    await page.getByRole('link', { name: 'Grid' }).click();
    await page.getByRole('link', { name: 'day 2' }).click();
    await expectSoon(() => page.locator('.items.grid a').allInnerTexts()).toEqual(['a #1?.txt']);
    await page.getByRole('link', { name: 'a #1?.txt' }).click();
    await expectSoon(() => page.locator('pre').innerText()).toContain('aye');
    await expectSoon(() => page.locator('.crumbs a').allInnerTexts()).toEqual(['trip', 'day 2']);
    await page.getByRole('link', { name: 'trip' }).click();
    await expectSoon(() => page.locator('.items.grid a').count()).toBe(3);
  });

  test('links and images of a Markdown document lead to files of the shared folder, and to nothing outside of it', async () => {
    await put(service, '/outside.md', 'secret');
    await put(service, '/shared/docs/b #1.md', '# An account\n\n[up](../a.md) [out](../../outside.md)');
    await put(service, '/shared/docs/small.png', await picture(8, 8));
    await put(
      service,
      '/shared/a.md',
      '[how](#how) [other](docs/b%20%231.md#an-account) [folder](docs) [bad](javascript:x)\n\n![small](docs/small.png)\n\n# How',
    );
    await page.goto(await linkTo('/shared'));
    await page.getByRole('link', { name: 'a.md' }).click();
    await expectSoon(() => inPage('document.querySelector("article img")?.naturalWidth')).toBe(8);
    await expectSoon(() => page.locator('article').innerText()).toContain('[bad](javascript:x)');
    await page.getByRole('link', { name: 'how', exact: true }).click();
    await expectSoon(() => inPage('document.querySelector(":target").innerText')).toBe('How');
    await page.getByRole('link', { name: 'other' }).click();
    await expectSoon(() => inPage('document.querySelector(":target").innerText')).toBe('An account');
    await expectSoon(() => page.getByText('out', { exact: true }).getAttribute('href')).toBeNull();
    await page.getByRole('link', { name: 'up' }).click();
    await page.getByRole('link', { name: 'folder' }).click();
    await expectSoon(() => page.locator('.items a').allInnerTexts()).toEqual(['b #1.md', 'small.png']);
  });

  test('relative links of a single shared document are text', async () => {
    await put(service, '/single/a.md', '[how](#how) [other](b.md) ![pic](c.png)\n\n# How');
    await page.goto(await linkTo('/single/a.md'));
    await expectSoon(() => page.locator('article p').innerText()).toBe('how other pic');
    await expectSoon(() => page.locator('article a[href]').allInnerTexts()).toEqual(['how']);
  });

  test('a folder is downloaded from its link page as an archive', async () => {
    await put(service, '/packed/a', 'text');
    await page.goto(await linkTo('/packed'));
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download all' }).click();
    expect((await download).suggestedFilename()).toBe('packed.zip');
  });

  test.each([360, 1600])(
    'the link page of a folder is no wider than a window of %d pixels',
    async (width) => {
      await put(service, `/narrow/${'long name '.repeat(20)}.txt`, 'x');
      await put(service, `/narrow/${'w'.repeat(200)}.txt`, 'x');
      await page.setViewportSize({ width, height: 700 });
      const url = await linkTo('/narrow');
      for (const view of ['', '&view=grid']) {
        await page.goto(url + view);
        await expectSoon(() => inPage('document.documentElement.scrollWidth')).toBe(width);
      }
    },
  );
});

test('a link page is dark in a dark colour scheme', async () => {
  await put(service, '/night.txt', 'text');
  const dark = await watchedPage(browser, { colorScheme: 'dark' });
  await dark.page.goto(await linkTo('/night.txt'));
  const background = await dark.page.evaluate<string>('getComputedStyle(document.body).backgroundColor');
  expect(background).toBe('rgb(17, 21, 27)');
  await dark.close();
});

describe('links that do not show their file', () => {
  test('a link with a password reports a wrong one and opens with the right one', async () => {
    await put(service, '/guarded.txt', 'the secret text');
    await page.goto(
      await linkTo('/guarded.txt', { requested_visibility: 'password', link_password: 'sesame' }),
    );
    await expectSoon(() => page.locator('body').innerText()).not.toContain('secret text');
    const field = page.getByLabel('Password');
    await field.fill('guess');
    await page.getByRole('button', { name: 'Open' }).click();
    await expectSoon(() => page.getByRole('alert').innerText()).toBe('Wrong password.');
    await field.fill('sesame');
    await page.getByRole('button', { name: 'Open' }).click();
    await expectSoon(() => page.locator('pre').innerText()).toContain('the secret text');
    expect(watched.noises).toEqual([]);
  });

  test('an unknown link says that nothing is here', async () => {
    await page.goto(`${service.url}/scl/fi/none/none?rlkey=none&dl=0`);
    await expectSoon(() => page.locator('h1').innerText()).toBe('Nothing is here');
  });
});

describe('link pages of hostile files', () => {
  const script = `<script>${HOSTILE}</script><img src="x:" onerror="${HOSTILE}">`;
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" onload="${HOSTILE}"><script>${HOSTILE}</script><circle r="9"/></svg>`;
  const markdown = [
    script,
    `[click](javascript:${HOSTILE})`,
    `<a href="javascript:${HOSTILE}">click</a>`,
    `![x](x:"onerror="${HOSTILE})`,
    svg,
    `<iframe srcdoc="${script.replaceAll('"', "'")}"></iframe>`,
  ].join('\n\n');
  const files: readonly (readonly [string, string])[] = [
    ['page.html', `<!doctype html>${script}`],
    ['page.xhtml', `<html xmlns="http://www.w3.org/1999/xhtml">${script.replace(/">$/, '"/>')}</html>`],
    ['drawing.svg', svg],
    ['readme.md', markdown],
    ['script.js', HOSTILE],
    ['disguised.png', `<!doctype html>${script}`],
    ['disguised.pdf', `<!doctype html>${script}`],
    ['disguised', `<!doctype html>${script}`],
    [`"><img src=x onerror="${HOSTILE}">.txt`, 'text'],
    [`<script>${HOSTILE.replaceAll("'", '`')}<\u2215script>.png`, 'text'],
    [`' onmouseover='${HOSTILE}' x='.svg`, svg],
    [`javascript:${HOSTILE}`, script],
  ];

  test.each(files)(
    'the hostile file %s runs no script on its link page or as a raw file',
    async (name, content) => {
      const path = `/hostile/${name}`;
      await put(service, path, content);
      const { page, noises } = name.endsWith('.pdf') ? await watchedPage(desktop) : watched;
      const url = await linkTo(path);
      const rawUrl = url.replace('dl=0', 'raw=1');
      // Only an image has a page of its own in another size.
      for (const address of /\.(png|svg)$/.test(name) ? [`${url}&zoom=fit`, url] : [url]) {
        await page.goto(address);
        await page.mouse.move(300, 150);
      }
      // A reader may click any link of the page.
      for (const link of await page.locator('main a:visible').all()) await link.click();
      // The raw file in the service's origin. Navigation fails for a file that the browser downloads.
      await page.goto(rawUrl).catch((error: Error) => {
        expect(error.message).toMatch(/Download is starting|ERR_ABORTED/);
      });
      // The raw file in a frame of a page of the same origin.
      await page.goto(url);
      const isRaw = (request: { url(): string }) => request.url() === rawUrl;
      const ended = Promise.race([
        page.waitForEvent('requestfinished', isRaw),
        page.waitForEvent('requestfailed', isRaw),
      ]);
      await page.evaluate(`void (document.body.append(document.createElement('iframe')),
      document.body.lastChild.src = ${JSON.stringify(rawUrl)})`);
      await ended;
      await page.evaluate('new Promise(requestAnimationFrame)');
      expect(noises.filter((noise) => noise.startsWith('dialog'))).toEqual([]);
    },
  );

  test('the link page of a folder of hostile files runs no script as a list or as a grid', async () => {
    for (const [name, content] of files) await put(service, `/hostile names/${name}`, content);
    const url = await linkTo('/hostile names');
    for (const address of [url, `${url}&view=grid`]) {
      await page.goto(address);
      const links = await page.locator('.items a').all();
      expect(links).toHaveLength(files.length);
      for (const link of links) await link.hover();
    }
    expect(watched.noises.filter((noise) => noise.startsWith('dialog'))).toEqual([]);
  });

  test('the watched page reports a script that runs', async () => {
    await page.setContent(script);
    await page.waitForFunction('document.readyState === "complete"');
    await expectSoon(() => watched.noises).toContain('dialog: ran');
  });
});
