import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// The web application of a user whose folder is nearly full.

const drive = driveInBrowser({
  drives: { shared: {} },
  users: [{ name: 'tester', password: 'pass word:1', drive: 'shared', root: '/Ann', quota: '1MB' }],
});

const FULL = 'The drive is full. Delete something you no longer need, then try again.';

const problems = () => drive.page.locator('.uploads .problem').allInnerTexts();

async function choose(name: string, sizeBytes: number): Promise<void> {
  const local = join(drive.directory, name);
  await writeFile(local, new Uint8Array(sizeBytes));
  await drive.page.getByLabel('Upload files').setInputFiles(local);
}

test('the page says that the drive is full when a large file does not fit, and stores nothing', async () => {
  await drive.open();
  await choose('large.bin', 17_000_000);
  await expectSoon(problems).toEqual([FULL]);
  expect(await drive.violations()).toEqual([]);
  expect(await drive.statusOf('large.bin')).toBe(404);
});

test('a file that did not fit is uploaded by a click after something was deleted', async () => {
  await drive.put('old.bin', new Uint8Array(10));
  await drive.open();
  await choose('small.bin', 999_996);
  await expectSoon(problems).toEqual([FULL]);
  expect((await drive.dav('DELETE', 'old.bin')).status).toBe(204);
  await drive.page.locator('.uploads li').getByRole('button', { name: 'Try again' }).click();
  await drive.page.getByText('1 uploaded').waitFor();
  expect(await drive.statusOf('small.bin')).toBe(200);
});
