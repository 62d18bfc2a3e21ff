import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { cheapHash } from '../support/program.ts';

// The web application of a user who may only read.

const drive = driveInBrowser({
  drives: { shared: {} },
  users: [
    { name: 'tester', 'password-hash': cheapHash('pass word:1'), drive: 'shared' },
    { name: 'reader', 'password-hash': cheapHash('p'), drive: 'shared', 'read-only': true },
    {
      ...{ name: 'partner', 'password-hash': cheapHash('p'), drive: 'shared' },
      folders: { '/Public': 'read-only', '/Public/Inbox': 'read-write', '/Team/Secret': 'hidden' },
    },
  ],
});

const PARTNER = { user: 'partner', password: 'p' };
const READER = { user: 'reader', password: 'p' };

const buttons = () => drive.page.locator('.toolbar .actions').getByRole('button').allTextContents();

test('a read-only user sees no button that changes something, and a note that says read-only', async () => {
  await drive.put('notes.txt', 'text');
  await drive.dav('PUT', 'notes.txt', 'newer text');
  await drive.use({ viewport: { width: 1280, height: 800 } }, { visitor: READER });
  await drive.open();
  await drive.page.getByText('Read-only: you may look and download').waitFor();
  await expectSoon(buttons).toEqual([]);
  await drive.check('notes.txt');
  await expectSoon(buttons).toEqual(['', 'Download', 'Versions']);
  await drive.page.keyboard.press('Delete');
  await drive.page.keyboard.press('F2');
  await drive.press('Versions');
  await drive.dialog().getByText('Current').waitFor();
  expect(await drive.dialog().getByRole('button').allInnerTexts()).toEqual(['Close']);
  expect(await drive.violations()).toEqual([]);
  await drive.dialog().getByRole('button', { name: 'Close' }).click();
  await drive.page.getByRole('link', { name: 'notes.txt' }).click();
  await drive.dialog().getByText('newer text').waitFor();
  expect(await drive.dialog().getByRole('button', { name: 'Edit' }).count()).toBe(0);
});

test('the page does not send files that a read-only user drops', async () => {
  await drive.use({}, { visitor: READER });
  await drive.open();
  await drive.page.getByText('Read-only: you may look and download').waitFor();
  await drive.page.getByText('This folder is empty.').waitFor();
  expect(await drive.page.getByText('Drop files here').count()).toBe(0);
  await drive.page.evaluate(`
    const data = new DataTransfer();
    data.items.add(new File(['x'], 'dropped.txt'));
    document.querySelector('.app').dispatchEvent(
      new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }),
    );`);
  expect(await drive.page.getByText('Uploads').count()).toBe(0);
  expect(await drive.statusOf('dropped.txt')).toBe(404);
});

test('a user with rights by path sees which folders are read-only, and why a folder cannot be deleted', async () => {
  for (const folder of ['Public', 'Public/Inbox', 'Team', 'Team/Secret'])
    expect((await drive.dav('MKCOL', `../${folder}`)).status).toBe(201);
  await drive.use({ viewport: { width: 1280, height: 800 } }, { visitor: PARTNER });
  await drive.open('../Public/');
  await drive.page.getByText('Read-only: you may look and download').waitFor();
  await expectSoon(buttons).toEqual([]);
  await drive.page.getByRole('link', { name: 'Inbox' }).click();
  await drive.page.getByText('This folder is empty.').waitFor();
  expect(await drive.page.getByText('Read-only: you may look').count()).toBe(0);
  await drive.upload({ name: 'sent.txt', text: 'sent' });
  await expectSoon(() => drive.statusOf('../Public/Inbox/sent.txt')).toBe(200);
  await drive.open('../Team/');
  await drive.page.getByText('This folder is empty.').waitFor();
  await drive.open('../');
  await drive.check('Public');
  await expectSoon(buttons).toEqual(['', 'Download']);
  await drive.page.keyboard.press('Escape');
  await drive.check('Team');
  await drive.press('Delete');
  await drive.dialog().getByRole('button', { name: 'Delete' }).click();
  await drive.page.getByText('a folder in it has other rights').waitFor();
  expect(await drive.statusOf('../Team/')).toBe(200);
  expect(await drive.violations()).toEqual([]);
});
