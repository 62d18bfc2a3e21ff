import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { succeed } from '../support/command.ts';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// Downloading folders and selections as one archive in the web application.

const drive = driveInBrowser();
const page = () => drive.page;

/** Presses Download, and returns the name and the files of the archive that the browser has saved. */
async function downloaded(): Promise<{ name: string; files: Record<string, string> }> {
  const [download] = await Promise.all([page().waitForEvent('download'), drive.press('Download')]);
  const target = join(drive.directory, `unpacked ${drive.folder}`);
  await succeed('unzip', ['-q', await download.path(), '-d', target], { environment: { LC_ALL: 'C.UTF-8' } });
  const files: Record<string, string> = {};
  for (const path of await readdir(target, { recursive: true }))
    if ((await stat(join(target, path))).isFile())
      files[path] = await readFile(join(target, path), { encoding: 'utf8' });
  return { name: download.suggestedFilename(), files };
}

test('a folder is downloaded as an archive with its name', async () => {
  await drive.dav('MKCOL', 'Ordner%20%C3%84/');
  await drive.dav('MKCOL', 'Ordner%20%C3%84/deep/');
  await drive.put('Ordner%20%C3%84/deep/a.txt', 'a');
  await drive.put('beside.txt');
  await drive.open();
  await drive.check('Ordner Ä');
  expect(await downloaded()).toEqual({ name: 'Ordner Ä.zip', files: { 'Ordner Ä/deep/a.txt': 'a' } });
});

test('several selected files are downloaded as one archive with the name of their folder', async () => {
  for (const name of ['a.txt', 'b.txt', 'c.txt']) await drive.put(name);
  await drive.open();
  await drive.check('a.txt');
  await drive.check('c.txt');
  expect(await downloaded()).toEqual({
    name: `${drive.folder}.zip`,
    files: { 'a.txt': 'a.txt', 'c.txt': 'c.txt' },
  });
});

test('files that a search has found are downloaded with their folders', async () => {
  const word = drive.folder.replace('folder ', 'wanted');
  for (const folder of ['one', 'two']) {
    await drive.dav('MKCOL', `${folder}/`);
    await drive.put(`${folder}/${word}`, folder);
  }
  await drive.open();
  await page().getByLabel('Filter by name').fill(word);
  await page().keyboard.press('Enter');
  await expectSoon(() => page().locator('.item .place').count()).toBe(2);
  await page().getByLabel('Select all').check();
  const { files } = await downloaded();
  expect(files).toEqual({ [`${drive.folder}/one/${word}`]: 'one', [`${drive.folder}/two/${word}`]: 'two' });
});

test('an archive that cannot be made says why, and the page stays', async () => {
  await drive.ignoreChanges();
  await drive.put('a.txt');
  await drive.put('b.txt');
  await drive.open();
  await drive.check('a.txt');
  await drive.check('b.txt');
  expect((await drive.dav('DELETE', 'b.txt')).status).toBe(204);
  await drive.press('Download');
  await expectSoon(() => page().getByRole('alert').innerText()).toBe(
    `The download did not begin: /${drive.folder}/b.txt is not there`,
  );
  await expectSoon(() => drive.names()).toEqual(['a.txt', 'b.txt']);
});
