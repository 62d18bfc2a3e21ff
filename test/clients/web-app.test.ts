import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { PROJECT_ROOT } from '../support/build.ts';
import { driveInBrowser } from '../support/drive-page.ts';
import { combinations } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import { SCREENS } from '../support/screens.ts';

// The drive's address in a browser shows the web application; each test has a folder of its own.

const drive = driveInBrowser();
const page = () => drive.page;

describe('the page of a folder', () => {
  test('a folder shows its folders first and then its files, in natural order', async () => {
    for (const name of ['b10.txt', 'b9.txt', 'Ärger.txt', 'a.txt']) await drive.put(name);
    await drive.dav('MKCOL', 'z/');
    await drive.open();
    await expectSoon(() => drive.names()).toEqual(['z', 'a.txt', 'Ärger.txt', 'b9.txt', 'b10.txt']);
    await expectSoon(() => page().title()).toBe(drive.folder);
    await page().getByText(`Signed in as ${drive.program.user}`).waitFor();
  });

  test('the sizes of files are shown, and a click on a column sorts by it, and back', async () => {
    await drive.put('small.bin', new Uint8Array(10));
    await drive.put('large.bin', new Uint8Array(1_500_000));
    await drive.open();
    await expectSoon(() => drive.item('large.bin').locator('.size').innerText()).toBe('1.5 MB');
    await drive.press('Size');
    await expectSoon(() => drive.names()).toEqual(['large.bin', 'small.bin']);
    await page().locator('.head .size').click();
    await expectSoon(() => drive.names()).toEqual(['small.bin', 'large.bin']);
  });

  test('a folder opens by a click, the browser goes back, and a reload stays where it is', async () => {
    await drive.dav('MKCOL', 'in%20side/');
    await drive.put('in%20side/deep%20%23%3F.txt', 'x');
    await drive.open();
    await page().getByText('in side', { exact: true }).click();
    await expectSoon(() => drive.names()).toEqual(['deep #?.txt']);
    await expectSoon(() => page().url()).toBe(drive.addressOf('in%20side/'));
    await page().reload();
    await expectSoon(() => drive.names()).toEqual(['deep #?.txt']);
    await page().goBack();
    await expectSoon(() => drive.names()).toEqual(['in side']);
    await page().getByRole('link', { name: 'Drive', exact: true }).click();
    await expectSoon(() => drive.names()).toContain(drive.folder);
  });

  test('typing into the filter shows only names with all of its words; Escape shows all again', async () => {
    for (const name of ['Summer trip.jpg', 'Summer.txt', 'Winter trip.jpg'])
      await drive.put(encodeURIComponent(name), 'x');
    await drive.open();
    await page().keyboard.press('/');
    await page().keyboard.type('TRIP summ');
    await expectSoon(() => drive.names()).toEqual(['Summer trip.jpg']);
    await page().keyboard.press('Escape');
    await expectSoon(() => drive.names()).toHaveLength(3);
  });

  test('a folder of 10,000 files has few of them in the document, and End shows the last', async () => {
    // The answer is made up: storing as many files would take half a minute.
    const { pathname } = new URL(drive.addressOf(''));
    const responses = Array.from(
      { length: 10_000 },
      (_, index) => `<response><href>${pathname}file-${index}</href></response>`,
    );
    const body = `<multistatus xmlns="DAV:"><response><href>${pathname}</href></response>${responses.join('')}</multistatus>`;
    await drive.answerListings({ status: 207, body });
    await drive.open();
    await expectSoon(() => page().locator('footer.page .count').innerText()).toBe('10000 items');
    await expectSoon(async () => (await drive.names()).length).toBeLessThan(100);
    await page().keyboard.press('End');
    await expectSoon(() => drive.names()).toContain('file-9999');
    await expectSoon(async () => (await drive.names()).length).toBeLessThan(100);
  });

  test('a folder that is not there is answered 404', async () => {
    expect((await page().goto(drive.addressOf('nowhere/')))?.status()).toBe(404);
  });

  test('a folder that cannot be listed says why, and shows its files when it can be again', async () => {
    await drive.put('a.txt');
    await drive.answerListings({ status: 503, body: 'busy now' });
    await drive.ignoreChanges();
    await page().goto(drive.addressOf(''));
    await expectSoon(() => page().getByRole('alert').innerText()).toContain('busy now');
    await page().unroute('**/*');
    await drive.press('Try again');
    await expectSoon(() => drive.names()).toEqual(['a.txt']);
  });
});

describe('the application by keyboard', () => {
  test('arrows, Shift and Ctrl+A select, Enter opens, Backspace goes up, F2 renames and Delete deletes', async () => {
    await drive.dav('MKCOL', 'inner/');
    for (const name of ['a', 'b', 'c']) await drive.put(name);
    await drive.open();
    await page().keyboard.press('ArrowDown');
    await expectSoon(() => drive.selected()).toEqual(['inner']);
    await page().keyboard.press('ArrowDown');
    await page().keyboard.press('Shift+ArrowDown');
    await expectSoon(() => drive.selected()).toEqual(['a', 'b']);
    await page().keyboard.press('Control+a');
    await expectSoon(() => drive.selected()).toHaveLength(4);
    await page().keyboard.press('Escape');
    await expectSoon(() => drive.selected()).toEqual([]);
    await page().keyboard.press('Home');
    await page().keyboard.press('Enter');
    await expectSoon(() => page().url()).toBe(drive.addressOf('inner/'));
    await page().keyboard.press('Backspace');
    await expectSoon(() => drive.names()).toHaveLength(4);
    await page().keyboard.press('End');
    await page().keyboard.press('F2');
    await page().keyboard.type('renamed');
    await page().keyboard.press('Enter');
    await expectSoon(() => drive.names()).toContain('renamed');
    await page().keyboard.press('End');
    await page().keyboard.press('Delete');
    await drive.dialog().getByText('Delete “renamed”?').waitFor();
    await page().keyboard.press('Tab');
    await page().keyboard.press('Enter');
    await expectSoon(() => drive.names()).toEqual(['inner', 'a', 'b']);
  });
});

describe('the application by fast keys', () => {
  test('a dialog that is opened at once after going back stays open', async () => {
    await drive.dav('MKCOL', 'inner/');
    await drive.put('c');
    await drive.open();
    await page().keyboard.press('Home');
    // No frame is drawn between these keys.
    await page().evaluate(`(async () => {
      for (const key of ['Enter', 'Backspace', 'End', 'F2']) {
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        for (let turn = 0; turn < 10; turn++) await Promise.resolve();
      }
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 100)));
    })()`);
    await expectSoon(() => page().getByLabel('New name').inputValue()).toBe('c');
  });
});

describe('the application on different screens', () => {
  test.each(SCREENS)(
    'at $width px in $colorScheme colours nothing is cut off, and axe finds no violation',
    async (look) => {
      await drive.put(encodeURIComponent(`A long name ${'that goes on and on '.repeat(8)}.pdf`), 'x');
      await drive.dav('MKCOL', 'folder/');
      await drive.resize(look);
      await drive.open();
      const widths = '[document.documentElement.scrollWidth, innerWidth]';
      await expectSoon(() => page().evaluate<number[]>(widths)).toEqual([look.width, look.width]);
      await expectSoon(() => drive.violations()).toEqual([]);
      await drive.check('folder');
      await expectSoon(() => drive.violations()).toEqual([]);
      await drive.press('Grid');
      await expectSoon(() => drive.violations()).toEqual([]);
      await drive.press('Delete');
      await expectSoon(() => drive.violations()).toEqual([]);
      await page().keyboard.press('Escape');
      await drive.press('Clear selection');
      await drive.upload({ name: 'a.txt', text: 'a' });
      await page().getByText('1 uploaded').waitFor();
      await expectSoon(() => drive.violations()).toEqual([]);
    },
  );

  test.each(
    combinations([
      { width: 720, locale: 'en' },
      { width: 1000, locale: 'en' },
      { width: 1280, locale: 'en' },
      { width: 1280, locale: 'de' },
      { width: 1450, locale: 'de' },
      { width: 970, locale: 'de' },
    ] as const),
  )('at $width px in $locale a selection does not move the list', async ({ width, locale }) => {
    await drive.put('a.txt');
    await drive.use({ viewport: { width, height: 800 }, locale });
    await drive.open();
    const top = "document.querySelector('.items').getBoundingClientRect().top";
    const before = await page().evaluate<number>(top);
    await drive.check('a.txt');
    await page().locator('.toolbar .count').waitFor();
    await expectSoon(() => page().evaluate<number>(top)).toBe(before);
  });

  test('a German browser sees German', async () => {
    await drive.use({ locale: 'de-AT' });
    await drive.open();
    await page().getByRole('button', { name: 'Hochladen', exact: true }).waitFor();
    await expectSoon(() => page().evaluate('document.documentElement.lang')).toBe('de');
  });
});

describe('what other clients see', () => {
  test('a program that asks for no HTML gets the plain list, and so does a browser without scripts by a link', async () => {
    await drive.put('a.txt');
    expect(await (await drive.dav('GET', '', undefined, { accept: '*/*' })).text()).toContain('<table>');
    await drive.use({ javaScriptEnabled: false });
    await page().goto(drive.addressOf(''));
    await page().getByRole('link', { name: 'list the files without it' }).click();
    await expectSoon(() => page().locator('table').innerText()).toContain('a.txt');
  });

  test('the page needs a login, and its scripts do not', async () => {
    const headers = { accept: 'text/html' };
    expect((await fetch(drive.program.url, { headers })).status).toBe(401);
    const text = await (await drive.dav('GET', '', undefined, headers)).text();
    const [script = ''] = /\/\.davgate\/app\/[^"]+\.js/.exec(text) ?? [];
    const answer = await fetch(new URL(script, drive.program.url));
    expect([answer.status, answer.headers.get('content-encoding')]).toEqual([200, 'gzip']);
    expect(answer.headers.get('cache-control')).toContain('immutable');
    expect((await fetch(new URL('/.davgate/app/..%2findex.html', drive.program.url))).status).toBe(404);
  });

  test('the whole application is smaller than 120 kB compressed', () => {
    const folder = join(PROJECT_ROOT, 'dist/webapp');
    const sizes = readdirSync(folder).map((name) => gzipSync(readFileSync(join(folder, name))).length);
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(120_000);
  });

  test('a page that has not changed is answered 304', async () => {
    const first = await drive.dav('GET', '', undefined, { accept: 'text/html' });
    const etag = first.headers.get('etag') ?? '';
    const again = await drive.dav('GET', '', undefined, { accept: 'text/html', 'if-none-match': etag });
    expect([first.status, again.status]).toEqual([200, 304]);
    expect(first.headers.get('vary')).toBe('Accept');
  });
});
