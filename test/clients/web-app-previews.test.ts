import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// What the web application shows of a file without opening it.

const drive = driveInBrowser();
const page = () => drive.page;
const open = (name: string) => page().getByText(name, { exact: true }).click();

/** A small red picture. */
const RED = { width: 8, height: 8, channels: 3, background: 'red' } as const;

describe('texts', () => {
  test('Markdown is shown as a document, in which HTML stays text and only links to the web are links', async () => {
    const lines = [
      '# Title',
      '<script>window.evil = true</script> [bad](javascript:evil) [good](https://example.org/)',
      '![tracker](https://example.org/pixel.png)',
      '```js\nconst one = 1;\n```',
      'caf&eacute; &lt;b&gt; &#8364; &nosuch; &notin;',
    ];
    await drive.put('a.md', lines.join('\n\n'));
    await drive.open();
    await open('a.md');
    const article = drive.dialog().locator('article');
    await expectSoon(() => article.locator('h1').innerText()).toBe('Title');
    await expectSoon(() => article.locator('a').allInnerTexts()).toEqual(['good', 'tracker']);
    for (const link of await article.locator('a').all())
      await expectSoon(() => link.getAttribute('rel')).toBe('noopener noreferrer nofollow');
    await expectSoon(() => article.innerText()).toContain('<script>window.evil = true</script>');
    await expectSoon(() => article.locator('img').count()).toBe(0);
    await expectSoon(() => article.locator('.hljs-keyword').innerText()).toBe('const');
    await expectSoon(() => article.innerText()).toContain('café <b> € &nosuch; ∉');
    await expectSoon(() => page().evaluate('window.evil')).toBeUndefined();
    await expectSoon(() => drive.violations()).toEqual([]);
  });

  test('links of a Markdown document lead to its headings and to the previews of other files, without leaving the page', async () => {
    await drive.dav('MKCOL', 'docs');
    await drive.put('docs/picture.png', await sharp({ create: RED }).png().toBuffer());
    await drive.put('docs/b.md', `${'text\n\n'.repeat(100)}# An account\n\n[up](../a.md)`);
    await drive.put(
      'a.md',
      `[below](#the-end) [other](docs/b.md#an-account) [folder](docs/) [gone](none.md)\n\n![red](docs/picture.png)\n\n${'text\n\n'.repeat(100)}## The end`,
    );
    await drive.open();
    await open('a.md');
    const article = drive.dialog().locator('article');
    const link = (name: string) => article.getByRole('link', { name, exact: true }).click();
    await expectSoon(() => page().evaluate('document.querySelector("article img")?.naturalWidth')).toBe(8);
    await link('below');
    const inView = (heading: string) =>
      page().evaluate(
        `(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector('${heading}').getBoundingClientRect())`,
      );
    await expectSoon(() => inView('#section-the-end')).toBe(true);
    await link('gone');
    await expectSoon(() => page().getByRole('alert').innerText()).toBe('“none.md” is not there.');
    await expectSoon(() => drive.violations()).toEqual([]);
    await link('other');
    await expectSoon(() => drive.dialog().locator('h2').innerText()).toBe('b.md');
    await expectSoon(() => inView('#section-an-account')).toBe(true);
    await link('up');
    await link('folder');
    await expectSoon(() => drive.names()).toEqual(['b.md', 'picture.png']);
    await expectSoon(() => drive.dialog().count()).toBe(0);
  });

  test.each(['light', 'dark'] as const)(
    'code is coloured in numbered lines in %s colours',
    async (colorScheme) => {
      await drive.put('a.ts', '/* over\ntwo lines */\nconst a = "<b>";\n');
      await drive.resize({ width: 320, height: 700, colorScheme });
      await drive.open();
      await open('a.ts');
      const code = drive.dialog().locator('pre.code');
      await expectSoon(() => code.locator('.line').allInnerTexts()).toEqual([
        '/* over',
        'two lines */',
        'const a = "<b>";',
      ]);
      await expectSoon(() => code.locator('.hljs-comment').count()).toBe(2);
      await expectSoon(() => page().evaluate('document.documentElement.scrollWidth')).toBe(320);
      await expectSoon(() => drive.violations()).toEqual([]);
    },
  );

  test('a text whose renderer cannot be loaded is shown as it is', async () => {
    await drive.put('a.ts', 'const a = 1;');
    await drive.open();
    await page().route('**/.davgate/app/chunk-*.js', (route) => route.abort());
    await open('a.ts');
    await expectSoon(() => drive.dialog().locator('pre').innerText()).toBe('const a = 1;');
    await expectSoon(() => drive.dialog().locator('.line').count()).toBe(0);
  });
});

describe('small images', () => {
  test('a large picture is shown by a small image in place of the sign of its kind, and by itself when it is opened', async () => {
    const side = 1200;
    const raw = { width: side, height: side, channels: 3 } as const;
    const picture = await sharp(Buffer.from(pseudoRandomBytes(side * side * 3, 1)), { raw })
      .png()
      .toBuffer();
    expect(picture.length).toBeGreaterThan(2 * 1024 * 1024);
    await drive.put('large.png', picture);
    await drive.open();
    const width = () => page().evaluate('document.querySelector(".look img")?.naturalWidth');
    await expectSoon(async () => {
      // The service gives up a rendering after 10 s, which a busy machine may exceed.
      if ((await page().locator('.look img').count()) === 0) await drive.open();
      return width();
    }).toBe(256);
    await expectSoon(() => drive.item('large.png').locator('.look .icon').isVisible()).toBe(false);
    await drive.press('Grid');
    await expectSoon(() => page().locator('.grid .look img').count()).toBe(1);
    await expectSoon(width).toBe(256);
    await open('large.png');
    await expectSoon(() => page().evaluate('document.querySelector("dialog img").naturalWidth')).toBe(side);
  });

  test('a picture without a small image is shown by itself, and a damaged one by the sign of its kind', async () => {
    const picture = await sharp({ create: { width: 300, height: 200, channels: 3, background: '#4a8' } })
      .png({ compressionLevel: 0 })
      .toBuffer();
    expect(picture.length).toBeGreaterThan(128 * 1024);
    await drive.put('whole.png', picture);
    await drive.put('damaged.png', new Uint8Array(200 * 1024));
    await page().route('**/.davgate/api/thumbnail?**', (route) =>
      route.fulfill({ status: 503, body: 'away' }),
    );
    await drive.open();
    await expectSoon(() => page().locator('.look img').count()).toBe(0);
    await drive.press('Grid');
    await expectSoon(() => drive.item('whole.png').locator('img').getAttribute('src')).toContain('whole.png');
    await expectSoon(() => page().evaluate('document.querySelector(".look img")?.naturalWidth')).toBe(300);
    await expectSoon(() => drive.item('damaged.png').locator('img').count()).toBe(0);
    await expectSoon(() => drive.item('damaged.png').locator('.look .icon').isVisible()).toBe(true);
  });
});

describe('PDFs', () => {
  test('a PDF is shown by the viewer of the browser, and not at all by a browser without one', async () => {
    await drive.put('a.pdf', '%PDF-1.4\n%%EOF');
    await drive.open();
    const hasViewer = await page().evaluate<boolean>('navigator.pdfViewerEnabled');
    await page().route('**/a.pdf', (route) => route.fulfill({ contentType: 'text/plain', body: 'pdf' }));
    await open('a.pdf');
    const shown = hasViewer
      ? drive.dialog().frameLocator('iframe[title="a.pdf"]').getByText('pdf')
      : drive.dialog().getByText('There is no preview of this kind of file.');
    await shown.waitFor();
  });
});
