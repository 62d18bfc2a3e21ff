import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { onePagePdf } from '../support/media.ts';

// Files of the drive, and pages of other sites, in a browser that is signed in.

const drive = driveInBrowser();
const page = () => drive.page;
let dialogs: string[];

beforeEach(() => {
  dialogs = [];
  page().on('dialog', (dialog) => {
    dialogs.push(dialog.message());
    void dialog.dismiss();
  });
});

/** A script that shows itself and writes into the drive as the user, if it runs and may. */
const attack = () =>
  `alert('ran');fetch('/.davgate/api/drive').then(a=>a.json()).then(a=>fetch('${drive.addressOf('stolen')}',` +
  `{method:'PUT',body:'x',headers:{'X-CSRF-Token':a.csrfToken}}));`;

/** Opens a file in the browser's window; resolves also when the browser saves it. */
async function openFile(name: string): Promise<'shown' | 'saved'> {
  const saved = page()
    .waitForEvent('download')
    .then(() => 'saved' as const);
  const shown = page()
    .goto(drive.addressOf(name))
    .then(
      () => 'shown' as const,
      () => saved,
    );
  saved.catch(() => undefined);
  return shown;
}

/** The browser has worked off what the page before it began when another answer has come. */
async function expectNothingRan(): Promise<void> {
  await page().goto(drive.addressOf('?plain'));
  expect(dialogs).toEqual([]);
  expect(await drive.statusOf('stolen')).toBe(404);
}

describe('a file of the drive opened in the browser', () => {
  test.each([
    ['page.html', () => `<body><script>${attack()}</script><img src=x onerror="${attack()}">`],
    [
      'draw.svg',
      () =>
        `<svg xmlns="http://www.w3.org/2000/svg" onload="alert('ran')"><script>${attack()}</script></svg>`,
    ],
    [
      'page.xhtml',
      () => `<html xmlns="http://www.w3.org/1999/xhtml"><script><![CDATA[${attack()}]]></script></html>`,
    ],
    [
      'data.xml',
      () => `<x><script xmlns="http://www.w3.org/1999/xhtml"><![CDATA[${attack()}]]></script></x>`,
    ],
  ])('%s runs no script, and has an origin of its own', async (name, content) => {
    await drive.put(name, content());
    expect(await openFile(name)).toBe('shown');
    await expectSoon(() => page().evaluate('window.origin')).toBe('null');
    await expectNothingRan();
  });

  test.each([
    'notes.txt',
    'picture.png',
    'no ending',
    'script.js',
    'a.md',
    'archive.zip',
    'book.epub',
    'x.json',
  ])('%s with HTML in it is not taken for a page', async (name) => {
    await drive.put(encodeURIComponent(name), `<body><script>${attack()}</script>`);
    await openFile(encodeURIComponent(name));
    await expectNothingRan();
  });

  test('a version, a small image and an archive are sandboxed and saved', async () => {
    await drive.put('page.html', `<script>${attack()}</script>`);
    const answer = await drive.dav('PROPFIND', 'page.html', undefined, { depth: '0' });
    const [, rev = ''] = /getetag>(?:&quot;|")(.*?)(?:&quot;|")</.exec(await answer.text()) ?? [];
    const query = new URLSearchParams({ path: `/${drive.folder}/page.html`, rev });
    const saved = page().waitForEvent('download');
    await page()
      .goto(new URL(`/.davgate/api/version?${query}`, drive.program.url).href)
      .catch(() => undefined);
    await saved;
    await expectNothingRan();
  });
});

describe('a file of the drive in the application', () => {
  test.each([
    ['page.html', () => `<script>${attack()}</script>`],
    [
      'draw.svg',
      () =>
        `<svg xmlns="http://www.w3.org/2000/svg" onload="alert('ran')"><script>${attack()}</script></svg>`,
    ],
    ['a.md', () => `<img src=x onerror="${attack()}"> [x](javascript:alert('ran'))`],
    ['paper.pdf', () => onePagePdf('Hello')],
    ['page.pdf', () => `<script>${attack()}</script>`],
  ])('the preview of %s runs no script', async (name, content) => {
    await drive.put(name, content());
    await drive.open();
    await page().getByText(name, { exact: true }).click();
    await drive.dialog().locator('.stage > *').first().waitFor();
    await expectNothingRan();
  });

  test('a script of the drive runs neither as a script nor as a worker of the application', async () => {
    await drive.put('evil.js', attack());
    await drive.open();
    const address = JSON.stringify(drive.addressOf('evil.js'));
    const added = `new Promise((resolve) => {
      const script = document.createElement('script');
      script.onload = () => resolve('ran');
      script.onerror = () => resolve('refused');
      script.src = ${address};
      document.head.append(script);
    })`;
    const asScript = await page().evaluate(added);
    const registered = `navigator.serviceWorker.register(${address}).then(() => 'ran', () => 'refused')`;
    const asWorker = await page().evaluate(registered);
    expect([asScript, asWorker]).toEqual(['refused', 'refused']);
    await expectNothingRan();
  });
});

test('a page of another site can neither change the drive, nor read it, nor end the session of a user', async () => {
  await drive.put('a.txt', 'mine');
  const url = (path: string) => new URL(path, drive.program.url).href;
  const site = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(`<title>evil</title>
<form id="out" method="post" action="${url('/.davgate/sign-out')}"></form>
<form id="in" method="post" action="${url('/.davgate/sign-in')}"><input name="name" value="x"></form>
<iframe src="${drive.addressOf('')}"></iframe><img src="${drive.addressOf('a.txt')}">`);
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void site.close());
  const { port } = site.address() as AddressInfo;
  // The same host with another port shares its cookies; `localhost` is another site.
  for (const host of ['127.0.0.1', 'localhost']) {
    for (const form of ['out', 'in']) {
      await page().goto(`http://${host}:${port}/`);
      const answered = page().waitForResponse((answer) => answer.request().method() === 'POST');
      await page().evaluate(`document.getElementById('${form}').submit()`);
      expect((await answered).status()).toBe(403);
      await page().waitForURL(url(`/.davgate/sign-${form}`));
    }
    await page().goto(`http://${host}:${port}/`);
    const tried = (method: string, mode: string, body = '') =>
      page().evaluate(
        `fetch(${JSON.stringify(drive.addressOf('a.txt'))}, { method: '${method}', mode: '${mode}', credentials: 'include'${body} })` +
          '.then((answer) => answer.text(), () => "refused")',
      );
    expect(await tried('GET', 'cors')).toBe('refused');
    expect(await tried('GET', 'no-cors')).not.toContain('mine');
    expect(await tried('PUT', 'cors', ", body: 'theirs'")).toBe('refused');
    expect(await tried('DELETE', 'cors')).toBe('refused');
    expect(await tried('POST', 'no-cors', ", body: 'theirs'")).not.toContain('mine');
  }
  await drive.open();
  await expectSoon(() => drive.names()).toEqual(['a.txt']);
  expect(await drive.textOf('a.txt')).toBe('mine');
});
