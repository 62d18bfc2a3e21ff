import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// Searching the whole drive in the web application.

const drive = driveInBrowser();
const page = () => drive.page;
const field = () => page().getByLabel('Filter by name');

/** Returns a word that no other test uses in a name. */
const word = () => drive.folder.replace('folder ', 'sought');

async function search(text: string): Promise<void> {
  await field().fill(text);
  await field().press('Enter');
  await page()
    .getByRole('heading', { name: `Names in the whole drive with “${text}”` })
    .waitFor();
}

test('Enter in the filter field finds names in the whole drive, and shows the folder of each', async () => {
  await drive.dav('MKCOL', 'inner/');
  await drive.dav('MKCOL', `inner/${word()}/`);
  await drive.put(`inner/${word()}%20minutes.txt`, 'hello');
  await drive.put('other.txt');
  await drive.open();
  await search(word());
  await expectSoon(() => drive.names()).toEqual([word(), `${word()} minutes.txt`]);
  await expectSoon(() => page().locator('.item .place').allInnerTexts()).toEqual([
    `${drive.folder}/inner`,
    `${drive.folder}/inner`,
  ]);
  await expectSoon(() => drive.violations()).toEqual([]);
  await page().getByText(`${word()} minutes.txt`, { exact: true }).click();
  await expectSoon(() => drive.dialog().locator('pre').innerText()).toBe('hello');
  await page().keyboard.press('Escape');
  await page().locator('.item .place').first().click();
  await expectSoon(() => page().url()).toBe(drive.addressOf('inner/'));
  await expectSoon(() => drive.names()).toHaveLength(2);
});

test('the filter offers to search the whole drive, and the button leads back to the folder', async () => {
  await drive.put(`${word()}.txt`);
  await drive.put('other.txt');
  await drive.open();
  await field().fill(word());
  await drive.press(`Search the whole drive for “${word()}”`);
  await expectSoon(() => page().locator('.item .place').allInnerTexts()).toEqual([drive.folder]);
  await drive.press('Back to the folder');
  await expectSoon(() => drive.names()).toEqual(['other.txt', `${word()}.txt`]);
  await expectSoon(() => field().inputValue()).toBe('');
});

test('files that a search has found in several folders are renamed and deleted where they are', async () => {
  for (const folder of ['one', 'two']) {
    await drive.dav('MKCOL', `${folder}/`);
    await drive.put(`${folder}/${word()}`, folder);
  }
  await drive.open();
  await search(word());
  await expectSoon(() => drive.names()).toEqual([word(), word()]);
  await page()
    .getByRole('row')
    .filter({ hasText: `${drive.folder}/two` })
    .getByRole('checkbox')
    .check();
  await drive.press('Rename');
  await drive.dialog().getByLabel('New name').fill('renamed');
  await page().keyboard.press('Enter');
  await expectSoon(() => drive.statusOf('two/renamed')).toBe(200);
  await expectSoon(() => drive.names()).toEqual([word()]);
  await page().getByRole('checkbox', { name: word(), exact: true }).check();
  await drive.press('Delete');
  await drive.dialog().getByRole('button', { name: 'Delete' }).click();
  await page().getByText(`No name in the drive matches “${word()}”.`).waitFor();
  expect([await drive.statusOf('one'), await drive.statusOf(`one/${word()}`)]).toEqual([200, 404]);
});

test('a search with more matches than a page says so, and shows the rest on request', async () => {
  const first = { items: [{ kind: 'file', path: '/a/one.txt', sizeBytes: 1 }], cursor: 'next' };
  const second = { items: [{ kind: 'file', path: '/b/two.txt', sizeBytes: 2 }], cursor: null };
  await page().route('**/.davgate/api/search?**', (route) =>
    route.fulfill({ json: route.request().url().includes('cursor=next') ? second : first }),
  );
  await drive.open();
  await search('txt');
  await page().getByText('More names match.').waitFor();
  await expectSoon(() => drive.names()).toEqual(['one.txt']);
  await drive.press('Show more');
  await expectSoon(() => drive.names()).toEqual(['one.txt', 'two.txt']);
  await expectSoon(() => page().getByText('More names match.').count()).toBe(0);
});

test('a search that fails says why, and finds the files when it is tried again', async () => {
  await drive.put(`${word()}.txt`);
  await drive.open();
  await page().route('**/.davgate/api/search?**', (route) =>
    route.fulfill({ status: 503, body: 'the storage service cannot be reached' }),
  );
  await search(word());
  await expectSoon(() => page().getByRole('alert').innerText()).toContain('The drive could not be searched.');
  await expectSoon(() => page().getByRole('alert').innerText()).toContain(
    'the storage service cannot be reached',
  );
  await page().unrouteAll();
  await drive.press('Try again');
  await expectSoon(() => drive.names()).toEqual([`${word()}.txt`]);
});

test('at 320 px what a search has found fits, by keyboard too', async () => {
  await drive.dav('MKCOL', 'a%20folder%20with%20a%20long%20name/');
  await drive.put(`a%20folder%20with%20a%20long%20name/${word()}%20${'long%20'.repeat(30)}name`, 'x');
  await drive.resize({ width: 320, height: 700, colorScheme: 'dark' });
  await drive.open();
  await page().keyboard.press('/');
  await page().keyboard.type(word());
  await page().keyboard.press('Enter');
  await expectSoon(() => page().locator('.item .place').count()).toBe(1);
  await expectSoon(() => page().evaluate('document.documentElement.scrollWidth')).toBe(320);
  await expectSoon(() => drive.violations()).toEqual([]);
  await drive.press('Grid');
  await expectSoon(() => drive.violations()).toEqual([]);
  await field().press('Escape');
  await expectSoon(() => page().locator('.item .place').count()).toBe(0);
});
