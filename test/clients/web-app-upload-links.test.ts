import type { BrowserContext, Page } from 'playwright-core';
import { afterEach, describe, expect, test } from 'vitest';
import {
  advanceUntil,
  breakPartsAfter,
  driveInBrowser,
  partOffsets,
  refuseOnce,
  retryDelayMs,
  violationsOf,
} from '../support/drive-page.ts';
import { combinations } from '../support/effort.ts';
import { expectSoon, WAIT_MS } from '../support/eventually.ts';
import { sharedChromium } from '../support/shared.ts';

// Upload links in the web application, and their page for people without a login.

const drive = driveInBrowser();
const button = (name: string) => drive.dialog().getByRole('button', { name, exact: true });

let context: BrowserContext | undefined;
afterEach(() => context?.close());

interface Made {
  readonly password?: string;
  readonly size?: number;
}

/** Makes a link to a folder without the page. */
async function linkTo(name: string, made: Made = {}): Promise<string> {
  const headers = { authorization: drive.program.authorization, 'content-type': 'application/json' };
  const { password = '', size = '' } = made;
  const values = {
    path: `/${drive.folder}/${name}`,
    label: 'Photos of the trip',
    password,
    size: String(size),
  };
  const address = new URL('/.davgate/api/make-upload-link', drive.program.url);
  const answer = await fetch(address, { method: 'POST', headers, body: JSON.stringify(values) });
  return ((await answer.json()) as { readonly url: string }).url;
}

/** Opens the page of a link in a browser without a login. Fails the test at a violation of the page's policy. */
async function visit(url: string, options: Parameters<typeof browserContext>[0] = {}): Promise<Page> {
  context = await browserContext(options);
  const page = await context.newPage();
  page.on('console', (message) => {
    if (/Content Security Policy/.test(message.text())) violated.push(message.text());
  });
  await page.goto(url);
  return page;
}

const violated: string[] = [];
afterEach(() => expect(violated.splice(0)).toEqual([]));

async function browserContext(
  options: Parameters<Awaited<ReturnType<typeof sharedChromium>>['newContext']>[0],
) {
  const made = await (await sharedChromium()).newContext(options);
  made.setDefaultTimeout(WAIT_MS);
  return made;
}

const fileOf = (name: string, content: string | Buffer) => ({
  name,
  mimeType: 'application/octet-stream',
  buffer: Buffer.from(content),
});

test('a person makes a link to a folder, someone without a login sends files by it, and it is ended', async () => {
  await drive.use({ permissions: ['clipboard-read', 'clipboard-write'] });
  await drive.dav('MKCOL', 'trip');
  await drive.put('trip/a.txt', 'old');
  await drive.open();
  await drive.check('trip');
  await drive.press('Ask for files');
  await drive.dialog().getByLabel('Title for the senders').fill('Our trip');
  await drive.dialog().getByLabel('Room for all files together').selectOption({ label: '1 GB' });
  await button('Make link').click();
  await drive.dialog().getByText('it is shown only once').waitFor();
  await button('Copy').click();
  await button('Copied').waitFor();
  const url = await drive.page.evaluate<string>('navigator.clipboard.readText()');
  await drive.dialog().getByRole('img', { name: 'QR code of the link' }).waitFor();
  await button('Close').click();

  const page = await visit(url);
  await page.getByRole('heading', { name: 'Our trip' }).waitFor();
  await page.getByText('There is room for 1 GB.').waitFor();
  await page.getByLabel('Choose files').setInputFiles([fileOf('a.txt', 'new'), fileOf('b.txt', 'two')]);
  await page.getByRole('status').getByText('Sent: 2. Thank you!').waitFor();
  await expectSoon(() => page.content()).not.toContain(drive.folder);
  expect([await drive.textOf('trip/a.txt'), await drive.textOf('trip/a%20(1).txt')]).toEqual(['old', 'new']);
  expect(await drive.textOf('trip/b.txt')).toBe('two');

  await drive.press('Shared links');
  const line = drive.dialog().getByRole('listitem').filter({ hasText: 'Our trip' });
  await line.getByText('Everyone with the link, without an end, 6 B of 1 GB received').waitFor();
  await expectSoon(() => drive.page.content()).not.toContain(url.split('#')[1]);
  await line.getByRole('button', { name: 'End the link “Our trip”' }).click();
  await drive.page
    .getByRole('dialog', { name: 'End “Our trip”?' })
    .getByRole('button', { name: 'End' })
    .click();
  await expectSoon(() => line.count()).toBe(0);
  await page.getByLabel('Choose files').setInputFiles(fileOf('c.txt', 'three'));
  await page.getByText('This link does not work any more.').waitFor();
  await page.getByRole('status').getByText('2 sent, 1 not sent').waitFor();
  await page.reload();
  await page.getByRole('alert').getByText('This link does not work any more.').waitFor();
  expect(await drive.statusOf('trip/c.txt')).toBe(404);
});

describe('the page of a link', () => {
  test('files that are dropped on it are sent', async () => {
    await drive.dav('MKCOL', 'in');
    const page = await visit(await linkTo('in'));
    await page.getByRole('heading', { name: 'Photos of the trip' }).waitFor();
    await page.evaluate(`
      const data = new DataTransfer();
      data.items.add(new File(['dropped'], 'dropped.txt'));
      window.dropInit = { dataTransfer: data, bubbles: true, cancelable: true };
      document.body.dispatchEvent(new DragEvent('dragover', window.dropInit));`);
    await page.getByText('Drop to send').waitFor();
    await page.evaluate(`document.body.dispatchEvent(new DragEvent('drop', window.dropInit))`);
    await page.getByText('Sent: 1.').waitFor();
    expect(await drive.textOf('in/dropped.txt')).toBe('dropped');
  });

  test('a link with a password opens with it alone', async () => {
    await drive.dav('MKCOL', 'in');
    const page = await visit(await linkTo('in', { password: 'sesame' }));
    const field = page.getByLabel('Password of the link');
    await field.fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('That is not the password of this link.').waitFor();
    await expectSoon(() => page.getByText('Photos of the trip').count()).toBe(0);
    await field.fill('sesame');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByLabel('Choose files').setInputFiles(fileOf('a.txt', 'a'));
    await page.getByText('Sent: 1.').waitFor();
    expect(await drive.textOf('in/a.txt')).toBe('a');
  });

  test('a file that is refused says why, and the others are sent', async () => {
    await drive.dav('MKCOL', 'in');
    const page = await visit(await linkTo('in', { size: 10 }));
    await page
      .getByLabel('Choose files')
      .setInputFiles([fileOf('large.txt', 'x'.repeat(11)), fileOf('.name', 'x'), fileOf('small.txt', 'x')]);
    await page.getByRole('status').getByText('1 sent, 2 not sent').waitFor();
    const line = (name: string) => page.getByRole('listitem').filter({ hasText: name });
    await line('large.txt').getByText('It is larger than this link takes.').waitFor();
    await line('.name').getByText('Files with this name cannot be stored.').waitFor();
    expect(await drive.textOf('in/small.txt')).toBe('x');
  });

  test('a file whose connection breaks goes on where davgate stopped receiving', async () => {
    await drive.dav('MKCOL', 'in');
    const page = await visit(await linkTo('in'));
    const offsets: string[] = [];
    let isBroken = false;
    await page.route(/\/send\/upload-part\?/, async (route) => {
      const offset = new URL(route.request().url()).searchParams.get('offset') ?? '';
      offsets.push(offset);
      if (offset === '0' || isBroken) return route.continue();
      isBroken = true;
      return route.abort();
    });
    const content = Buffer.alloc(17 * 1024 * 1024, 'davgate ');
    await page.getByLabel('Choose files').setInputFiles(fileOf('large.bin', content));
    await page.getByText('Sent: 1.').waitFor();
    expect(offsets).toEqual(['0', '16777216', '16777216']);
    const stored = Buffer.from(await (await drive.dav('GET', 'in/large.bin')).arrayBuffer());
    expect(stored.equals(content)).toBe(true);
  });

  test('a file that gets only a little further with each of many tries is not given up', async () => {
    await drive.dav('MKCOL', 'in');
    const page = await visit(await linkTo('in'));
    await page.clock.install();
    const partBytes = 100_000;
    const content = Buffer.alloc(11.5 * partBytes, 'davgate ');
    const offsets = await breakPartsAfter(page, partBytes, content);
    await page.getByLabel('Choose files').setInputFiles(fileOf('slow.bin', content));
    await advanceUntil(page, 'Sent: 1.');
    expect(offsets).toEqual(Array.from({ length: 12 }, (_, index) => index * partBytes));
    const stored = Buffer.from(await (await drive.dav('GET', 'in/slow.bin')).arrayBuffer());
    expect(stored.equals(content)).toBe(true);
  });

  test('a file whose upload davgate has forgotten is sent from its beginning', async () => {
    await drive.dav('MKCOL', 'in');
    const page = await visit(await linkTo('in'));
    const offsets: string[] = [];
    await page.route(/\/send\/upload-part\?/, async (route) => {
      offsets.push(new URL(route.request().url()).searchParams.get('offset') ?? '');
      return offsets.length === 2 ? route.fulfill({ status: 404, body: 'no such upload' }) : route.continue();
    });
    const content = Buffer.alloc(17 * 1024 * 1024, 'davgate ');
    await page.getByLabel('Choose files').setInputFiles(fileOf('large.bin', content));
    await page.getByText('Sent: 1.').waitFor();
    expect(offsets).toEqual(['0', '16777216', '0', '16777216']);
    // davgate has in truth not forgotten the first upload, whose name it keeps.
    const stored = Buffer.from(await (await drive.dav('GET', 'in/large%20(1).bin')).arrayBuffer());
    expect(stored.equals(content)).toBe(true);
  });

  test('a file goes on at the part that a busy davgate refused, and keeps its name', async () => {
    await drive.dav('MKCOL', 'in');
    const page = await visit(await linkTo('in'));
    const offsets = partOffsets(page);
    const sentMs = await refuseOnce(page, /\/upload-part\?.*offset=16777216$/, 30);
    const content = Buffer.alloc(17 * 1024 * 1024, 'davgate ');
    await page.getByLabel('Choose files').setInputFiles(fileOf('large.bin', content));
    expect(await retryDelayMs(page, sentMs)).toBeGreaterThanOrEqual(30_000);
    await page.getByText('Sent: 1.').waitFor();
    expect(offsets).toEqual([0, 16_777_216, 16_777_216]);
    const stored = Buffer.from(await (await drive.dav('GET', 'in/large.bin')).arrayBuffer());
    expect(stored.equals(content)).toBe(true);
    await drive.open('in/');
    expect(await drive.names()).toEqual(['large.bin']);
  });

  test.each(['upload', 'upload-part'])(
    'a file that a busy davgate refuses at %s is sent again after the time that davgate wants, not before',
    async (name) => {
      await drive.dav('MKCOL', 'in');
      const page = await visit(await linkTo('in'));
      const sentMs = await refuseOnce(page, new RegExp(`/send/${name}(\\?|$)`), 30);
      await page.getByLabel('Choose files').setInputFiles(fileOf('a.txt', 'a'));
      expect(await retryDelayMs(page, sentMs)).toBeGreaterThanOrEqual(30_000);
      await page.getByText('Sent: 1.').waitFor();
      expect(await drive.textOf('in/a.txt')).toBe('a');
    },
  );

  test.each(
    combinations([
      { width: 390, locale: 'de-DE', colorScheme: 'dark' as const },
      { width: 390, locale: 'en-GB', colorScheme: 'light' as const },
      { width: 1280, locale: 'en-GB', colorScheme: 'light' as const },
    ]),
  )('at $width px in $locale nothing is cut off, and axe finds no violation', async (look) => {
    const options = { ...look, viewport: { width: look.width, height: 800 } };
    const isGerman = look.locale === 'de-DE';
    const fits = async (page: Page) => {
      await expectSoon(() => page.evaluate('document.documentElement.scrollWidth')).toBe(look.width);
      await expectSoon(() => violationsOf(page)).toEqual([]);
    };
    const name = `${'long '.repeat(20)}.txt`;
    await drive.dav('MKCOL', 'in');
    await drive.use(options);
    await drive.open();
    await drive.check('in');
    await drive.press(isGerman ? 'Dateien anfordern' : 'Ask for files');
    await drive.dialog().getByRole('checkbox').check();
    await fits(drive.page);
    await drive
      .dialog()
      .getByLabel(isGerman ? 'Passwort des Links' : 'Password of the link')
      .fill('sesame');
    await button(isGerman ? 'Link erstellen' : 'Make link').click();
    const field = drive.dialog().getByLabel('Link', { exact: true });
    await field.waitFor();
    await fits(drive.page);
    const url = await field.inputValue();
    await button(isGerman ? 'Schließen' : 'Close').click();
    await drive.press(isGerman ? 'Geteilte Links' : 'Shared links');
    await drive.dialog().getByText('/in').first().waitFor();
    await fits(drive.page);

    const page = await visit(url, options);
    await page.getByText(isGerman ? 'Bitte das Passwort eingeben' : 'Enter the password').waitFor();
    await fits(page);
    await page.getByRole('textbox').fill('sesame');
    await page.keyboard.press('Enter');
    await page
      .getByLabel(isGerman ? 'Dateien auswählen' : 'Choose files')
      .setInputFiles([fileOf(name, 'x'), fileOf('.x', 'x')]);
    await page
      .getByRole('status')
      .getByText(isGerman ? '1 gesendet, 1 nicht gesendet' : '1 sent, 1 not sent')
      .waitFor();
    await fits(page);
    await page.goto(`${url.split('#')[0]}#${'x'.repeat(27)}`);
    await page.getByRole('alert').waitFor();
    await fits(page);
  });
});
