import { test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// The web application shows what others do to the drive, without being asked; each test has a folder of its own.

const drive = driveInBrowser();
const page = () => drive.page;

/** Opens the folder. Resolves when the page follows the changes of the drive. */
async function openFollowing(path = ''): Promise<void> {
  const followed = page().waitForResponse((answer) => answer.url().includes('/.davgate/api/changes'));
  await drive.open(path);
  await followed;
}

test.each([{ width: 390 }, { width: 1280 }])(
  'at $width px files that another program stores, renames and deletes appear by themselves',
  async ({ width }) => {
    await drive.resize({ width });
    await drive.put('first.txt');
    await openFollowing();
    await drive.put('second.txt');
    await expectSoon(() => drive.names()).toEqual(['first.txt', 'second.txt']);
    await drive.dav('MOVE', 'second.txt', undefined, { destination: drive.addressOf('third.txt') });
    await expectSoon(() => drive.names()).toEqual(['first.txt', 'third.txt']);
    await drive.dav('DELETE', 'first.txt');
    await expectSoon(() => drive.names()).toEqual(['third.txt']);
  },
);

test('the selection, the filter that is being typed and an open dialog stay when a file appears', async () => {
  for (const name of ['a.txt', 'b.txt']) await drive.put(name);
  await openFollowing();
  await drive.check('a.txt');
  await drive.press('Rename');
  await page().keyboard.type('half typed');
  await drive.put('c.txt');
  await expectSoon(() => drive.names()).toContain('c.txt');
  await expectSoon(() => page().getByLabel('New name').inputValue()).toBe('half typed.txt');
  await page().keyboard.press('Escape');
  await expectSoon(() => drive.selected()).toEqual(['a.txt']);
  await page().keyboard.press('/');
  await page().keyboard.type('d');
  await drive.put('d.txt');
  await expectSoon(() => drive.names()).toEqual(['d.txt']);
  await page().keyboard.type('.t');
  await expectSoon(() => page().getByLabel('Filter by name').inputValue()).toBe('d.t');
});

test('a dialog about a file that is deleted elsewhere stays open, and the failed deletion names the file', async () => {
  for (const name of ['gone.txt', 'kept.txt']) await drive.put(name);
  await openFollowing();
  await drive.check('gone.txt');
  await drive.press('Delete');
  await drive.dav('DELETE', 'gone.txt');
  await expectSoon(() => drive.names()).toEqual(['kept.txt']);
  await drive.dialog().getByText('Delete “gone.txt”?').waitFor();
  await drive.dialog().getByRole('button', { name: 'Delete', exact: true }).click();
  await expectSoon(() => page().getByRole('alert').innerText()).toContain('gone.txt');
  await drive.check('kept.txt');
  await expectSoon(() => drive.dialog().count()).toBe(0);
});

test('a scrolled list keeps its place when files appear above it', async () => {
  for (let number = 100; number < 160; number++) await drive.put(`${number}.txt`, '');
  await openFollowing();
  await page().evaluate("document.querySelector('.items').scrollTop = 20 * 44");
  const topOf = async (name: string) => (await drive.item(name).boundingBox())?.y;
  await drive.item('125.txt').waitFor();
  const before = await topOf('125.txt');
  await drive.put('001.txt');
  await expectSoon(() => page().locator('footer.page .count').innerText()).toBe('61 items');
  await expectSoon(() => topOf('125.txt')).toBe(before);
});

test('a folder that is deleted elsewhere is no longer shown, and the way up works', async () => {
  await drive.dav('MKCOL', 'inner/');
  await openFollowing('inner/');
  await drive.dav('DELETE', 'inner/');
  await page().getByText('This folder cannot be shown.').waitFor();
  await page().getByRole('link', { name: drive.folder, exact: true }).click();
  await expectSoon(() => page().getByText('This folder is empty.').count()).toBe(1);
});

test('while the drive cannot be listed again, the page keeps its files and says that they may be outdated', async () => {
  await drive.put('a.txt');
  await openFollowing();
  await drive.answerListings({ status: 503, body: 'busy now' });
  await drive.put('b.txt');
  await page().getByText('What you see may be out of date: busy now').waitFor();
  await expectSoon(() => drive.names()).toEqual(['a.txt']);
  await page().unrouteAll();
  await drive.put('c.txt');
  await expectSoon(() => drive.names()).toEqual(['a.txt', 'b.txt', 'c.txt']);
  await expectSoon(() => page().getByText('What you see').count()).toBe(0);
});

test('a page whose connection was lost shows what it has missed when the drive answers again', async () => {
  await drive.put('a.txt');
  await openFollowing();
  await page().context().setOffline(true);
  await drive.put('missed.txt');
  await page().context().setOffline(false);
  await expectSoon(() => drive.names()).toEqual(['a.txt', 'missed.txt']);
});
