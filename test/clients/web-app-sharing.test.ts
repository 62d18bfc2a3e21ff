import { encode } from 'uqr';
import { describe, expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { SCREENS } from '../support/screens.ts';

// Shared links in the web application at the drive's address; each test has a folder of its own.

const drive = driveInBrowser();
const page = () => drive.page;
const button = (name: string) => drive.dialog().getByRole('button', { name, exact: true });
const linkField = () => drive.dialog().getByLabel('Link', { exact: true });

/** Requests for links. */
const LINKS = /\.davgate\/api\/links\?/;
const LAST_DAY = 'Last day (empty: without an end)';

/** The address of a function of the gateway. */
const api = (name: string) => new URL(`/.davgate/api/${name}`, drive.program.url);
const pathOf = (name: string) => `/${drive.folder}/${name}`;

interface Link {
  readonly url: string;
  readonly visibility: string;
  readonly expiresMs?: number;
}

/** Makes a link without the page. */
async function shared(name: string): Promise<string> {
  const headers = { authorization: drive.program.authorization, 'content-type': 'application/json' };
  const body = JSON.stringify({ path: pathOf(name) });
  const answer = await fetch(api('share'), { method: 'POST', headers, body });
  return ((await answer.json()) as Link).url;
}

/** Returns the links of a file as the gateway lists them. */
async function linksOf(name: string): Promise<readonly Link[]> {
  const address = api(`links?${new URLSearchParams({ path: pathOf(name) })}`);
  const answer = await fetch(address, { headers: { authorization: drive.program.authorization } });
  return ((await answer.json()) as { readonly links: readonly Link[] }).links;
}

async function openShare(name: string): Promise<void> {
  await drive.open();
  await drive.check(name);
  await drive.press('Share');
}

describe('the link of a file', () => {
  test('a link is made and copied, and shows the file to someone without a login', async () => {
    await drive.use({ permissions: ['clipboard-read', 'clipboard-write'] });
    await drive.put('a.txt', 'for everyone');
    await openShare('a.txt');
    await button('Make link').click();
    await drive.dialog().getByText('Everyone who has this link can now look at it.').waitFor();
    await button('Copy').click();
    await button('Copied').waitFor();
    const url = await page().evaluate<string>('navigator.clipboard.readText()');
    expect(await (await fetch(url.replace('dl=0', 'raw=1'))).text()).toBe('for everyone');
    await expectSoon(() => linkField().inputValue()).toBe(url);
  });

  test('the QR code has the link', async () => {
    await drive.put('a.txt');
    const url = await shared('a.txt');
    await openShare('a.txt');
    const { data } = encode(url, { border: 4 });
    const squares = data.flatMap((row, y) =>
      row.flatMap((isBlack, x) => (isBlack ? `M${x} ${y}h1v1h-1z` : [])),
    );
    const drawn = drive.dialog().getByRole('img', { name: 'QR code of the link' }).locator('path').last();
    await expectSoon(() => drawn.getAttribute('d')).toBe(squares.join(''));
  });

  test('a link gets a password and a last day, which are shown later and can be removed', async () => {
    await drive.put('a.txt');
    await openShare('a.txt');
    await drive.dialog().getByLabel('Ask for a password').check();
    await drive.dialog().getByLabel('Password of the link').fill('sesame');
    await drive.dialog().getByLabel(LAST_DAY).fill('2099-12-31');
    await button('Make link').click();
    await linkField().waitFor();
    const [made] = await linksOf('a.txt');
    expect(made?.visibility).toBe('password');
    await button('Close').click();
    await drive.press('Share');
    await expectSoon(() => drive.dialog().getByLabel('Ask for a password').isChecked()).toBe(true);
    await expectSoon(() => drive.dialog().getByLabel(LAST_DAY).inputValue()).toBe('2099-12-31');
    await drive.dialog().getByLabel('Ask for a password').uncheck();
    await drive.dialog().getByLabel(LAST_DAY).fill('');
    await button('Save changes').click();
    await drive.dialog().getByText('The link has been changed.').waitFor();
    expect(await linksOf('a.txt')).toEqual([
      { url: made?.url, visibility: 'public', kind: 'file', path: pathOf('a.txt') },
    ]);
  });

  test('a link is open until the end of its last day where the person is', async () => {
    await drive.use({ timezoneId: 'America/New_York' });
    await drive.put('a.txt');
    await openShare('a.txt');
    await drive.dialog().getByLabel(LAST_DAY).fill('2099-12-31');
    await button('Make link').click();
    await linkField().waitFor();
    const [made] = await linksOf('a.txt');
    expect(made?.expiresMs).toBe(Date.parse('2099-12-31T23:59:59-05:00'));
  });

  test('a password that is asked for and not given is missed before anything is sent', async () => {
    await drive.put('a.txt');
    await openShare('a.txt');
    await drive.dialog().getByLabel('Ask for a password').check();
    await button('Make link').click();
    await drive.dialog().getByText('Enter a password, or do not ask for one.').waitFor();
    expect(await linksOf('a.txt')).toEqual([]);
  });

  test('the link of a folder is ended after a question, and opens nothing any more', async () => {
    await drive.dav('MKCOL', 'shown/');
    const url = await shared('shown');
    await openShare('shown');
    await button('Stop sharing').click();
    await page()
      .getByRole('dialog', { name: 'Stop sharing “shown”?' })
      .getByRole('button', { name: 'Cancel' })
      .click();
    expect((await fetch(url)).status).toBe(200);
    await button('Stop sharing').click();
    const question = page().getByRole('dialog', { name: 'Stop sharing “shown”?' });
    await question.getByRole('button', { name: 'Stop sharing' }).click();
    await drive.dialog().getByText('The link has ended.').waitFor();
    await button('Make link').waitFor();
    expect((await fetch(url)).status).toBe(404);
  });

  test('settings that the service refuses are told with its reason, and the entered ones stay', async () => {
    await drive.put('a.txt');
    await openShare('a.txt');
    const body = 'the account may not share /a.txt with these settings (settings_error/not_authorized)';
    await page().route('**/.davgate/api/share', (route) => route.fulfill({ status: 403, body }));
    await drive.dialog().getByLabel('Ask for a password').check();
    await drive.dialog().getByLabel('Password of the link').fill('sesame');
    await button('Make link').click();
    await drive.dialog().getByText(`The storage service refuses: ${body}`).waitFor();
    await expectSoon(() => drive.dialog().getByLabel('Password of the link').inputValue()).toBe('sesame');
  });

  test('a link that someone else makes or ends meanwhile is shown as it is now', async () => {
    await drive.put('a.txt');
    await openShare('a.txt');
    await button('Make link').waitFor();
    const url = await shared('a.txt');
    await button('Make link').click();
    await drive
      .dialog()
      .getByText(`${pathOf('a.txt')} is shared already`)
      .waitFor();
    await expectSoon(() => linkField().inputValue()).toBe(url);
    const headers = { authorization: drive.program.authorization, 'content-type': 'application/json' };
    const ended = { method: 'POST', headers, body: JSON.stringify({ path: pathOf('a.txt'), url }) };
    expect((await fetch(api('unshare'), ended)).status).toBe(200);
    await drive.dialog().getByLabel(LAST_DAY).fill('2099-12-31');
    await button('Save changes').click();
    await drive
      .dialog()
      .getByText(`the link to ${pathOf('a.txt')} is gone`)
      .waitFor();
    await button('Make link').waitFor();
  });

  test('a drive that does not answer says so, and shows the link when it answers again', async () => {
    await drive.put('a.txt');
    const url = await shared('a.txt');
    await drive.open();
    await page().route(LINKS, (route) => route.abort('connectionrefused'));
    await drive.check('a.txt');
    await drive.press('Share');
    await drive.dialog().getByText('The drive does not answer. Check the connection.').waitFor();
    await page().unrouteAll();
    await button('Try again').click();
    await expectSoon(() => linkField().inputValue()).toBe(url);
  });
});

describe('the copy button', () => {
  test('without https the link is copied all the same, and can be pasted', async () => {
    await drive.put('a.txt');
    const url = await shared('a.txt');
    await page().addInitScript('delete Navigator.prototype.clipboard');
    await openShare('a.txt');
    await button('Copy').click();
    await button('Copied').waitFor();
    await page().keyboard.press('Escape');
    await expectSoon(() => drive.dialog().count()).toBe(0);
    await page().keyboard.press('/');
    await page().keyboard.press('Control+v');
    await expectSoon(() => page().getByLabel('Filter by name').inputValue()).toBe(url);
  });

  test('a browser that does not copy is reported, and another try is possible', async () => {
    await drive.put('a.txt');
    await shared('a.txt');
    await page().addInitScript("navigator.clipboard.writeText = () => Promise.reject(new Error('denied'))");
    await openShare('a.txt');
    await button('Copy').click();
    await button('Not copied: select the text and copy it').waitFor();
    await page().keyboard.press('Tab');
    await button('Copy').waitFor();
  });
});

describe('the list of all links', () => {
  const line = (name: string) =>
    drive
      .dialog()
      .getByRole('listitem')
      .filter({ hasText: pathOf(name) });

  test('every link of the drive is shown with its path and settings, and is copied and ended there', async () => {
    await drive.use({ permissions: ['clipboard-read', 'clipboard-write'] });
    await drive.put('a.txt');
    await drive.dav('MKCOL', 'inner/');
    const urls = [await shared('a.txt'), await shared('inner')];
    await drive.open();
    await drive.press('Shared links');
    await expectSoon(() => line('a.txt').innerText()).toContain('Everyone with the link, without an end');
    await line('inner').getByRole('button', { name: 'Copy' }).click();
    await line('inner').getByRole('button', { name: 'Copied' }).waitFor();
    await expectSoon(() => page().evaluate('navigator.clipboard.readText()')).toBe(urls[1]);
    await line('a.txt').getByRole('button', { name: 'Stop sharing' }).click();
    const question = page().getByRole('dialog', { name: 'Stop sharing “a.txt”?' });
    await question.getByRole('button', { name: 'Stop sharing' }).click();
    await expectSoon(() => line('a.txt').count()).toBe(0);
    await expectSoon(() => line('inner').count()).toBe(1);
    expect((await fetch(urls[0] ?? '')).status).toBe(404);
  });

  test('the path of a link leads to the folder of its file', async () => {
    await drive.dav('MKCOL', 'inner/');
    await drive.put('inner/deep.txt', 'x');
    await shared('inner/deep.txt');
    await drive.open();
    await drive.press('Shared links');
    await drive
      .dialog()
      .getByRole('link', { name: pathOf('inner/deep.txt') })
      .click();
    await expectSoon(() => drive.names()).toEqual(['deep.txt']);
    await expectSoon(() => drive.dialog().count()).toBe(0);
  });

  test('a drive without links says so', async () => {
    await drive.open();
    await page().route(LINKS, (route) => route.fulfill({ json: { links: [] } }));
    await drive.press('Shared links');
    await drive.dialog().getByText('Nothing on this drive is shared.').waitFor();
  });

  test('a list that cannot be had says why, and a link that is not ended stays', async () => {
    await drive.put('a.txt');
    await shared('a.txt');
    await drive.open();
    await page().route(LINKS, (route) => route.fulfill({ status: 503, body: 'busy now' }));
    await drive.press('Shared links');
    await drive.dialog().getByText('busy now').waitFor();
    await page().unrouteAll();
    await button('Try again').click();
    await page().route('**/.davgate/api/unshare', (route) =>
      route.fulfill({ status: 503, body: 'busy now' }),
    );
    await line('a.txt').getByRole('button', { name: 'Stop sharing' }).click();
    const question = page().getByRole('dialog', { name: 'Stop sharing “a.txt”?' });
    await question.getByRole('button', { name: 'Stop sharing' }).click();
    await drive.dialog().getByText('“a.txt”: busy now').waitFor();
    await expectSoon(() => line('a.txt').count()).toBe(1);
  });
});

describe('the dialogs about links on different screens', () => {
  test.each(SCREENS)(
    'at $width px in $colorScheme colours nothing is cut off, and axe finds no violation',
    async (look) => {
      const name = `A long name ${'that goes on and on '.repeat(8)}.txt`;
      await drive.put(encodeURIComponent(name), 'x');
      await drive.resize(look);
      const overhang =
        "document.querySelector('dialog').scrollWidth - document.querySelector('dialog').clientWidth";
      await openShare(name);
      await button('Make link').waitFor();
      await drive.dialog().getByLabel('Ask for a password').check();
      await expectSoon(() => drive.violations()).toEqual([]);
      await drive.dialog().getByLabel('Password of the link').fill('sesame');
      await button('Make link').click();
      await linkField().waitFor();
      await expectSoon(() => page().evaluate(overhang)).toBe(0);
      await expectSoon(() => drive.violations()).toEqual([]);
      await button('Close').click();
      await drive.press('Shared links');
      await drive.dialog().getByText(pathOf(name)).waitFor();
      await expectSoon(() => page().evaluate(overhang)).toBe(0);
      await expectSoon(() => drive.violations()).toEqual([]);
    },
  );
});
