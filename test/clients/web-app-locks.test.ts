import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// Who has a file locked, in the web application; each test has a folder of its own.

const drive = driveInBrowser();
const page = () => drive.page;

async function lock(path: string): Promise<void> {
  const body = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype>
    <D:owner>Ann &amp; her desk</D:owner></D:lockinfo>`;
  const answer = await drive.dav('LOCK', path, body, { timeout: 'Second-3600' });
  expect(answer.status).toBe(200);
}

test.each([
  { width: 390, colorScheme: 'light' as const },
  { width: 1280, colorScheme: 'dark' as const },
])(
  'at $width px a lock appears in the list by itself, and the person who took it ends it',
  async ({ width, colorScheme }) => {
    await drive.resize({ width, colorScheme });
    for (const name of ['plan.txt', 'free.txt']) await drive.put(name);
    await drive.open();
    await lock('plan.txt');
    const mark = drive.item('plan.txt').getByRole('button', { name: 'Locked by tester (Ann & her desk)' });
    await mark.waitFor();
    await expectSoon(() =>
      page()
        .getByRole('button', { name: /^Locked by/ })
        .count(),
    ).toBe(1);
    await expectSoon(() => drive.violations()).toEqual([]);
    await mark.click();
    await drive.dialog().getByText('“plan.txt” is locked').waitFor();
    await drive.dialog().getByText('tester (Ann & her desk)').waitFor();
    await expectSoon(() => drive.violations()).toEqual([]);
    await drive.press('End the lock');
    await drive.dialog().getByText('End your lock?').waitFor();
    await drive.dialog().last().getByRole('button', { name: 'End the lock' }).click();
    await drive.dialog().getByText('It is no longer locked.').waitFor();
    await expectSoon(() => mark.count()).toBe(0);
    expect((await drive.dav('PUT', 'plan.txt', 'changed')).status).toBe(204);
  },
);

test('the files in a locked folder count as locked, with the folder', async () => {
  await drive.dav('MKCOL', 'shelf/');
  await drive.put('shelf/book.txt');
  await lock('shelf/');
  await drive.open('shelf/');
  await drive
    .item('book.txt')
    .getByRole('button', { name: /^Locked by tester/ })
    .click();
  await drive.dialog().getByText(`with the folder /${drive.folder}/shelf`).waitFor();
  await drive.press('End the lock');
  await drive.dialog().last().getByRole('button', { name: 'End the lock' }).click();
  await drive.dialog().getByText('It is no longer locked.').waitFor();
  expect((await drive.dav('PUT', 'shelf/book.txt', 'changed')).status).toBe(204);
});
