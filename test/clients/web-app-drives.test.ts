import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { cheapHash } from '../support/program.ts';

// The web application of a user who has two drives as folders; the tests reach one of them by WebDAV.

const drive = driveInBrowser({
  drives: { work: {}, home: { delete: 'permanent' } },
  'history-folders': true,
  users: [
    { name: 'tester', 'password-hash': cheapHash('pass word:1'), drive: 'work' },
    { name: 'ann', 'password-hash': cheapHash('p'), drives: ['work', 'home'] },
  ],
});

const ANN = { user: 'ann', password: 'p' };
const headers = { authorization: `Basic ${btoa('ann:p')}` };
const page = () => drive.page;
const addressOf = (path: string) => new URL(path, drive.program.url).href;

/** Opens a folder, and waits until the page knows the drives. */
async function open(folder: string): Promise<void> {
  await drive.use({}, { visitor: ANN });
  await page().goto(addressOf(folder));
  await page().getByText('Signed in as ann').waitFor();
}

/** Stores a file, and deletes it on the page of its folder, where a question with `text` comes first. */
async function deleteFile(folder: string, name: string, text: string): Promise<void> {
  expect((await fetch(addressOf(folder + name), { method: 'PUT', headers, body: name })).status).toBe(201);
  await open(folder);
  await drive.check(name);
  await drive.press('Delete');
  await drive.dialog().getByText(text).waitFor();
  await drive.dialog().getByRole('button', { name: 'Delete' }).click();
  await expectSoon(async () => (await fetch(addressOf(folder + name), { headers })).status).toBe(404);
}

test('a deletion in a drive that keeps deleted files can be undone, although another drive deletes for good', async () => {
  await deleteFile('work/', 'a.txt', 'You can undo this');
  await drive.press('Undo');
  await expectSoon(async () => (await fetch(addressOf('work/a.txt'), { headers })).text()).toBe('a.txt');
  await expectSoon(() => page().getByRole('button', { name: 'Trash' }).count()).toBe(1);
});

test('a deletion in a drive that deletes for good says so before, although another drive keeps deleted files', async () => {
  await deleteFile('home/', 'b.txt', 'It is deleted for good');
  await page().getByText('This folder is empty.').waitFor();
  await expectSoon(() =>
    page()
      .getByRole('button', { name: /^(Undo|Trash)$/ })
      .count(),
  ).toBe(0);
  const trash = await fetch(addressOf('.davgate/api/trash?path=/home'), { headers });
  expect(await trash.json()).toEqual({ items: [], leftOut: 0 });
});

test('folders that are only for other programs leave the list when the page learns which they are', async () => {
  await drive.use({}, { visitor: ANN });
  let isAway = true;
  await page().route('**/.davgate/api/drive', (route) =>
    isAway ? route.fulfill({ status: 503, body: 'busy' }) : route.continue(),
  );
  await page().goto(drive.program.url);
  await expectSoon(() => drive.names()).toEqual(['.trash', '.versions', 'home', 'work']);
  isAway = false;
  await page().getByText('Signed in as ann').waitFor();
  await page().evaluate(`document.dispatchEvent(new Event('visibilitychange'))`);
  await expectSoon(() => drive.names()).toEqual(['home', 'work']);
});
