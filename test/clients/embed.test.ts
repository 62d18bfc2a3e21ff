import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, FrameLocator, Page } from 'playwright-core';
import sharp from 'sharp';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { expectSoon } from '../support/eventually.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { onePagePdf } from '../support/media.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc, sharedLink } from '../support/service-client.ts';
import { sharedChromium } from '../support/shared.ts';
import { HOSTILE, type WatchedPage, watchedPage } from '../support/watched-page.ts';

const clock = new ManualClock();
let service: TestService;
let browser: Browser;
let watched: WatchedPage;
let page: Page;
/** Another site: its port makes it another origin. */
let site: Server;
let siteUrl: string;
let body: string;

beforeAll(async () => {
  service = await startTestService({ clock });
  browser = await sharedChromium();
  site = createServer((_, response) => {
    response.setHeader('content-type', 'text/html; charset=utf-8');
    response.end(`<!doctype html><title>Site</title><body>${body}`);
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
});
afterAll(async () => {
  await service.close();
  await new Promise((resolve) => site.close(resolve));
});
beforeEach(async () => {
  watched = await watchedPage(browser, { viewport: { width: 900, height: 700 } });
  page = watched.page;
});
afterEach(async () => {
  await watched.close();
});

/** Opens a page of the other site with `content` and the script. */
async function openSite(content: string): Promise<void> {
  body = `${content}<script src="${service.url}/embed.js"></script>`;
  await page.goto(siteUrl);
}

const markedLink = (url: string, attributes = '') =>
  `<a class="davgate-embed" ${attributes} href="${url.replaceAll('&', '&amp;')}">the link</a>`;

const frame = (): FrameLocator => page.frameLocator('iframe').first();

async function mount(options: object): Promise<void> {
  await openSite('<div id="here"></div>');
  await page.evaluate(`DavgateEmbed.mount(document.getElementById('here'), ${JSON.stringify(options)})`);
}

const heightPx = async (): Promise<number> =>
  (await page.locator('iframe').first().boundingBox())?.height ?? 0;

/** Resolves when the frame is as high as its content and its two border lines. */
async function untilResized(): Promise<void> {
  const heightInside = async () => Math.ceil((await frame().locator('body').boundingBox())?.height ?? 0);
  await expectSoon(async () => (await heightPx()) - (await heightInside())).toBe(2);
}

describe('a marked link', () => {
  afterEach(() => expect(watched.noises).toEqual([]));

  test('a marked link to a folder becomes a frame that browses it and follows the height of its content', async () => {
    await put(service, '/tree/deep/note.txt', 'the note');
    await put(service, '/tree/a.txt', 'x');
    await put(service, '/tree/b.txt', 'x');
    await openSite(markedLink(await sharedLink(service, '/tree')));
    await expectSoon(() => frame().locator('.items a').allInnerTexts()).toEqual(['deep', 'a.txt', 'b.txt']);
    await expectSoon(() => page.getByText('the link').isVisible()).toBe(false);
    await untilResized();
    const three = await heightPx();
    await frame().getByRole('link', { name: 'deep' }).click();
    await expectSoon(() => frame().locator('.items a').allInnerTexts()).toEqual(['note.txt']);
    await untilResized();
    await expectSoon(heightPx).toBeLessThan(three);
    await frame().getByRole('link', { name: 'note.txt' }).click();
    await expectSoon(() => frame().locator('pre').innerText()).toContain('the note');
    await frame().getByRole('link', { name: 'tree' }).click();
    await expectSoon(() => frame().locator('.items a').count()).toBe(3);
    expect(page.url()).toBe(siteUrl);
  });

  test('a marked link takes its view and header size from its attributes', async () => {
    await put(service, '/options/a.txt', 'x');
    const attributes = 'data-view="grid" data-header-size="small"';
    await openSite(markedLink(await sharedLink(service, '/options'), attributes));
    await expectSoon(() => frame().locator('.items.grid a').count()).toBe(1);
    await expectSoon(() => frame().locator('header').getAttribute('class')).toBe('small');
    await frame().getByRole('link', { name: 'a.txt' }).click();
    await expectSoon(() => frame().locator('pre').innerText()).toContain('x');
    await expectSoon(() => frame().locator('header').getAttribute('class')).toBe('small');
  });

  test('an embedded file opens on a page of its own and is downloaded under its name', async () => {
    await put(service, '/single.txt', 'text');
    await openSite(markedLink(await sharedLink(service, '/single.txt')));
    const opened = page.context().waitForEvent('page');
    await frame().getByRole('link', { name: 'Open' }).click();
    const alone = await opened;
    await expectSoon(() => new URL(alone.url()).pathname).toMatch(/^\/scl\/fi\//);
    await expectSoon(() => alone.locator('pre').innerText()).toContain('text');
    const download = page.waitForEvent('download');
    await frame().getByRole('link', { name: 'Download' }).click();
    expect((await download).suggestedFilename()).toBe('single.txt');
  });

  test('an embedded PDF, which no sandbox shows, opens on its own page with one click', async () => {
    await put(service, '/paper.pdf', onePagePdf('Hello'));
    await openSite(markedLink(await sharedLink(service, '/paper.pdf')));
    const opened = page.context().waitForEvent('page');
    await frame().getByRole('link', { name: 'Open the PDF' }).click();
    const paper = await opened;
    await expectSoon(() => paper.url()).toContain('/scl/fi/');
  });
});

describe('DavgateEmbed', () => {
  test('DavgateEmbed.mount shows an image fitted to the frame, or in full size with zoom "actual"', async () => {
    const image = sharp({ create: { width: 1500, height: 300, channels: 3, background: '#4a8' } });
    await put(service, '/wide.png', await image.png().toBuffer());
    const link = await sharedLink(service, '/wide.png');
    const width = async () => {
      const shown = frame().locator('img');
      const isComplete = () => shown.evaluate((element) => (element as { complete?: boolean }).complete);
      await expectSoon(isComplete).toBe(true);
      return Math.round((await shown.boundingBox())?.width ?? 0);
    };
    await mount({ link });
    expect(await width()).toBeLessThan(900);
    await mount({ link, file: { zoom: 'actual' } });
    expect(await width()).toBe(1500);
    await untilResized();
    expect(watched.noises).toEqual([]);
  });

  test('DavgateEmbed.unmount removes the frame and shows the link again, and a second mount replaces the first', async () => {
    await put(service, '/twice.txt', 'text');
    const link = await sharedLink(service, '/twice.txt');
    await mount({ link });
    const again = `DavgateEmbed.mount(document.getElementById('here'), ${JSON.stringify({ link })})`;
    await page.evaluate(again);
    await expectSoon(() => page.locator('iframe').count()).toBe(1);
    await page.evaluate(`DavgateEmbed.unmount(document.getElementById('here'))`);
    await expectSoon(() => page.locator('iframe').count()).toBe(0);
    await openSite(markedLink(link));
    await page.evaluate(`DavgateEmbed.unmount(document.querySelector('a'))`);
    await expectSoon(() => page.locator('iframe').count()).toBe(0);
    await expectSoon(() => page.getByText('the link').isVisible()).toBe(true);
  });

  test.each([
    ["null, { link: 'https://a.example/' }", 'the first argument is no element'],
    ['document.body', '"link" must be the address of a shared link'],
    [
      "document.body, { link: 'https://a.example/', folder: { view: 'tiles' } }",
      '"view" must be one of list, grid',
    ],
    [
      "document.body, { link: 'https://a.example/', file: { zoom: 2 } }",
      '"zoom" must be one of best, fit, actual',
    ],
  ])('DavgateEmbed.mount(%s) throws the reason and makes no frame', async (argument, reason) => {
    await openSite('');
    await expect(page.evaluate(`DavgateEmbed.mount(${argument})`)).rejects.toThrow(reason);
    await expectSoon(() => page.locator('iframe').count()).toBe(0);
  });

  test('DavgateEmbed takes a height from no window but its own frame, even with the right secret', async () => {
    await put(service, '/heard.txt', 'text');
    // The secret is predictable here, so that only the sender's window is wrong.
    await page.addInitScript('crypto.getRandomValues = (numbers) => numbers.fill(7)');
    await mount({ link: await sharedLink(service, '/heard.txt') });
    await untilResized();
    const before = await heightPx();
    const height = '{ davgateEmbed: "7-7-7-7", heightPx: 700 }';
    await openForeignFrame(`parent.postMessage(${height}, '*'); parent.postMessage('said', '*');`, 'said');
    await expectSoon(heightPx).toBe(before);
  });

  test('the embedded frame answers messages of the page around it and of no other window', async () => {
    await put(service, '/asked.txt', 'text');
    await mount({ link: await sharedLink(service, '/asked.txt') });
    await untilResized();
    await page.evaluate(`globalThis.answers = [];
      addEventListener('message', ({ data }) => data?.davgateEmbed && answers.push(data.davgateEmbed));`);
    const ask = (who: string) => `.postMessage({ davgateEmbed: '${who}' }, '*');`;
    await openForeignFrame(`parent.frames[0]${ask('foreign')} parent.postMessage('asked', '*');`, 'asked');
    await page.evaluate(`frames[0]${ask('page')}`);
    await page.waitForFunction(`answers.includes('page')`);
    await expectSoon(() => page.evaluate('answers')).toEqual(['page']);
  });
});

/** Runs `script` in a sandboxed frame of another origin in the same page; resolves when it posts `last`. */
async function openForeignFrame(script: string, last: string): Promise<void> {
  await page.evaluate(`new Promise((done) => {
    addEventListener('message', ({ data }) => data === '${last}' && done());
    const foreign = document.createElement('iframe');
    foreign.sandbox = 'allow-scripts';
    foreign.srcdoc = ${JSON.stringify(`<script>${script}</script>`)};
    document.body.append(foreign);
  })`);
}

describe('links that cannot be embedded', () => {
  const title = () => frame().locator('h1').innerText();

  test('an embedded link with a password leads to its own page, which asks for it', async () => {
    await put(service, '/guarded.txt', 'secret text');
    const settings = { requested_visibility: 'password', link_password: 'sesame' };
    await openSite(markedLink(await sharedLink(service, '/guarded.txt', settings)));
    await expectSoon(title).toBe('This link has a password');
    await expectSoon(() => frame().locator('input').count()).toBe(0);
    await untilResized();
    const opened = page.context().waitForEvent('page');
    await frame().getByRole('link', { name: 'Open the link' }).click();
    const alone = await opened;
    await alone.getByLabel('Password').fill('sesame');
    await alone.getByRole('button', { name: 'Open' }).click();
    await expectSoon(() => alone.locator('pre').innerText()).toContain('secret text');
    // The password opens the link's own page, and not the frame on another site.
    await page.reload();
    await expectSoon(title).toBe('This link has a password');
  });

  test('an embedded link that has expired says so', async () => {
    await put(service, '/short.txt', 'text');
    const expires = `${new Date(clock.now() + 60_000).toISOString().slice(0, 19)}Z`;
    await openSite(markedLink(await sharedLink(service, '/short.txt', { expires })));
    await expectSoon(title).toBe('short.txt');
    await clock.advance(120_000);
    await page.reload();
    await expectSoon(title).toBe('This link has expired');
  });

  test('an embedded link that was revoked says that nothing is here', async () => {
    await put(service, '/revoked.txt', 'text');
    const url = await sharedLink(service, '/revoked.txt');
    await rpc(service, 'sharing/revoke_shared_link', { url });
    await openSite(markedLink(url));
    await expectSoon(title).toBe('Nothing is here');
  });

  test('an embedded link for no one says that it is closed, and a foreign address that nothing is here', async () => {
    await put(service, '/closed.txt', 'text');
    await openSite(markedLink(await sharedLink(service, '/closed.txt', { audience: 'no_one' })));
    await expectSoon(title).toBe('This link is closed');
    await openSite(markedLink('https://another.example/page'));
    await expectSoon(title).toBe('Nothing is here');
  });
});

describe('security of the embedded frame', () => {
  test.each([
    ['page.html', `<script>${HOSTILE}</script>`],
    ['drawing.svg', `<svg xmlns="http://www.w3.org/2000/svg" onload="${HOSTILE}"/>`],
    ['notes.md', `<img src=x onerror="${HOSTILE}">\n\n[x](javascript:${HOSTILE})`],
    [`"><img src=x onerror="${HOSTILE}">.txt`, 'text'],
  ])('the embedded file %s runs no script', async (name, content) => {
    await put(service, `/hostile/${name}`, content);
    await openSite(markedLink(await sharedLink(service, `/hostile/${name}`)));
    await untilResized();
    await openSite(markedLink(await sharedLink(service, '/hostile'), 'data-view="grid"'));
    await untilResized();
    expect(watched.noises.filter((noise) => noise.startsWith('dialog'))).toEqual([]);
  });

  test('the embedded page has an opaque origin and no cookies, even outside a frame', async () => {
    await put(service, '/origin.txt', 'text');
    const link = await sharedLink(service, '/origin.txt');
    await page.goto(`${service.url}/embed?${new URLSearchParams({ link })}`);
    await expectSoon(() => page.evaluate('origin')).toBe('null');
    await expect(page.evaluate('document.cookie')).rejects.toThrow('sandboxed');
  });

  test('the page of a shared link is not shown in a frame of another site', async () => {
    await put(service, '/unframed.txt', 'text');
    const url = await sharedLink(service, '/unframed.txt');
    body = `<iframe src="${url.replaceAll('&', '&amp;')}"></iframe>`;
    await page.goto(siteUrl);
    await expectSoon(() => page.frames()[1]?.content()).not.toContain('unframed');
    await expectSoon(() => watched.noises.join()).toContain('frame-ancestors');
  });
});
