import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import sharp from 'sharp';
import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// What can be done with files in the web application at the drive's address; each test has a folder of its own.

const drive = driveInBrowser();
const page = () => drive.page;

/** Drops files and folders of the disk on the page, once it shows that it takes them. */
async function drop(...files: string[]): Promise<void> {
  const devTools = await page().context().newCDPSession(page());
  const data = { items: [], files, dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver'] as const)
    await devTools.send('Input.dispatchDragEvent', { type, x: 400, y: 400, data });
  await page().getByText(`Drop to upload to “${drive.folder}”`).waitFor();
  await devTools.send('Input.dispatchDragEvent', { type: 'drop', x: 400, y: 400, data });
}

test('uploaded files are stored with their times, and appear in the folder', async () => {
  await drive.open();
  await drive.upload({ name: 'one.txt', text: 'one' }, { name: 'two.txt', text: 'two' });
  await expectSoon(() => drive.names()).toEqual(['one.txt', 'two.txt']);
  await page().getByText('2 uploaded').waitFor();
  expect([await drive.textOf('one.txt'), await drive.textOf('two.txt')]).toEqual(['one', 'two']);
});

test('a folder is uploaded with the folders in it', async () => {
  const local = join(drive.directory, `tree ${drive.folder}`);
  await mkdir(join(local, 'sub/deeper'), { recursive: true });
  for (const name of ['top.txt', 'sub/a.txt', 'sub/deeper/b.txt']) await writeFile(join(local, name), name);
  await drive.open();
  await page().getByLabel('Upload a folder').last().setInputFiles(local);
  await page().getByText('3 uploaded').waitFor();
  expect(await drive.textOf(`${encodeURIComponent(`tree ${drive.folder}`)}/sub/deeper/b.txt`)).toBe(
    'sub/deeper/b.txt',
  );
});

test('files and folders that are dropped on the page are stored with the folders in them', async () => {
  const local = join(drive.directory, `dropped ${drive.folder}`);
  await mkdir(join(local, 'tree/deeper'), { recursive: true });
  for (const name of ['one.txt', 'tree/two.txt', 'tree/deeper/three.txt'])
    await writeFile(join(local, name), name);
  await drive.open();
  await drop(join(local, 'one.txt'), join(local, 'tree'));
  await page().getByText('3 uploaded').waitFor();
  expect(await drive.textOf('tree/deeper/three.txt')).toBe('tree/deeper/three.txt');
  expect(await drive.textOf('one.txt')).toBe('one.txt');
});

test('of a dropped folder in which a file cannot be read, the others are stored, and that one is shown as failed', async () => {
  const local = join(drive.directory, `unreadable ${drive.folder}`);
  await mkdir(join(local, 'tree'), { recursive: true });
  for (const name of ['one.txt', 'broken.txt', 'two.txt']) await writeFile(join(local, 'tree', name), name);
  await drive.open();
  await page().evaluate(`(() => {
    const { webkitGetAsEntry } = DataTransferItem.prototype;
    DataTransferItem.prototype.webkitGetAsEntry = function () {
      const folder = webkitGetAsEntry.call(this);
      const reader = folder.createReader();
      const readEntries = reader.readEntries.bind(reader);
      reader.readEntries = (found, failed) => readEntries((entries) => {
        const broken = entries.find(({ name }) => name === 'broken.txt');
        if (broken) broken.file = (_, refused) => refused(new DOMException('gone', 'NotFoundError'));
        // The broken one first: it fails before the others have begun.
        found(entries.toSorted((one, other) => one.name.localeCompare(other.name)));
      }, failed);
      folder.createReader = () => reader;
      return folder;
    };
  })()`);
  await drop(join(local, 'tree'));
  await page().getByText('2 uploaded, 1 failed').waitFor();
  const line = page().locator('.uploads li').filter({ hasText: 'broken.txt' });
  await line.getByText('The file on your computer was changed or removed.').waitFor();
  expect([await drive.textOf('tree/one.txt'), await drive.textOf('tree/two.txt')]).toEqual([
    'one.txt',
    'two.txt',
  ]);
});

test('a folder that was uploaded and then deleted is uploaded again, also while other files of it wait', async () => {
  const local = join(drive.directory, `again ${drive.folder}`);
  await mkdir(join(local, 'sub'), { recursive: true });
  for (const name of ['a.txt', 'sub/b.txt']) await writeFile(join(local, name), name);
  const folder = encodeURIComponent(`again ${drive.folder}`);
  await drive.open();
  const choose = () => page().getByLabel('Upload a folder').last().setInputFiles(local);
  await choose();
  await page().getByText('2 uploaded').waitFor();
  expect((await drive.dav('DELETE', folder)).status).toBe(204);
  await choose();
  await page().getByText('4 uploaded').waitFor();
  expect(await drive.textOf(`${folder}/sub/b.txt`)).toBe('sub/b.txt');

  // A file whose name is taken is open until the person has chosen.
  await drive.put('taken.txt', 'old');
  await drive.upload({ name: 'taken.txt', text: 'new' });
  await page().getByRole('button', { name: 'Keep both' }).waitFor();
  expect((await drive.dav('DELETE', folder)).status).toBe(204);
  await choose();
  await expectSoon(() => drive.textOf(`${folder}/a.txt`)).toBe('a.txt');
  await expectSoon(() => drive.textOf(`${folder}/sub/b.txt`)).toBe('sub/b.txt');
});

test('a picture that is pasted is stored in the folder', async () => {
  await drive.open();
  await page().evaluate(`(() => {
    const clipboardData = new DataTransfer();
    clipboardData.items.add(new File(['a picture'], 'image.png', { type: 'image/png' }));
    document.body.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true }));
  })()`);
  await page().getByText('1 uploaded').waitFor();
  expect(await drive.textOf('image.png')).toBe('a picture');
});

test('an upload never replaces a file unless it is told to: it asks, and can keep both', async () => {
  await drive.put('a.txt', 'old');
  await drive.put('b.txt', 'old');
  await drive.put('c.txt', 'old');
  await drive.open();
  await drive.upload(...['a.txt', 'b.txt', 'c.txt'].map((name) => ({ name, text: 'new' })));
  const line = (name: string) => page().locator('.uploads li').filter({ hasText: name });
  await line('a.txt').getByRole('button', { name: 'Replace' }).click();
  await line('b.txt').getByRole('button', { name: 'Keep both' }).click();
  await line('c.txt').getByRole('button', { name: 'Skip' }).click();
  await page().getByText('2 uploaded').waitFor();
  expect(
    await Promise.all(['a.txt', 'b.txt', 'c.txt', 'b%20(2).txt'].map((path) => drive.textOf(path))),
  ).toEqual(['new', 'old', 'old', 'new']);
});

test('an upload whose connection breaks is sent again by itself', async () => {
  await drive.open();
  let tries = 0;
  await page().route('**/broken.txt', (route) =>
    ++tries < 3 ? route.abort('connectionreset') : route.continue(),
  );
  await drive.upload({ name: 'broken.txt', text: 'whole' });
  await page().getByText('1 uploaded').waitFor();
  expect(tries).toBe(3);
  expect(await drive.textOf('broken.txt')).toBe('whole');
});

test('an upload that was stored although its answer was lost counts as done, and asks nothing', async () => {
  await drive.open();
  let tries = 0;
  await page().route('**/lost.txt', async (route) => {
    if (route.request().method() === 'PUT' && ++tries === 1) {
      await route.fetch();
      return route.abort('connectionreset');
    }
    return route.continue();
  });
  await drive.upload({ name: 'lost.txt', text: 'once' });
  await page().getByText('1 uploaded').waitFor();
  expect(tries).toBe(2);
});

test('a cancelled upload stores nothing', async () => {
  await drive.open();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page().route('**/held.txt', async (route) => {
    await held;
    await route.continue().catch(() => {});
  });
  await drive.upload({ name: 'held.txt', text: 'never' });
  await page().locator('.uploads li').getByRole('button', { name: 'Cancel' }).click();
  await page().getByText('Cancelled').waitFor();
  release();
  expect(await drive.statusOf('held.txt')).toBe(404);
});

test('an upload that is cancelled while its folder is being created stores nothing', async () => {
  const local = join(drive.directory, `tree ${drive.folder}`);
  await mkdir(local);
  await writeFile(join(local, 'never.txt'), 'never');
  await drive.open();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page().route('**/*', async (route) => {
    if (route.request().method() === 'MKCOL') await held;
    await route.continue();
  });
  await page().getByLabel('Upload a folder').last().setInputFiles(local);
  await page().locator('.uploads li').getByRole('button', { name: 'Cancel' }).click();
  const made = page().waitForResponse((response) => response.request().method() === 'MKCOL');
  release();
  await made;
  await drive.upload({ name: 'later.txt', text: 'later' });
  await page().getByText('1 uploaded').waitFor();
  expect(await drive.statusOf(`${encodeURIComponent(`tree ${drive.folder}`)}/never.txt`)).toBe(404);
});

test('a folder that is opened while files are deleted is shown when they are gone', async () => {
  await drive.put('a.txt');
  await drive.dav('MKCOL', 'inner/');
  await drive.put('inner/b.txt', 'b');
  await drive.open();
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  // The deletion ends while the next folder is being listed.
  await page().route('**/*', async (route) => {
    const method = route.request().method();
    if (method === 'DELETE') await held;
    if (method === 'PROPFIND') await new Promise((resolve) => setTimeout(resolve, 500));
    await route.continue();
  });
  await drive.check('a.txt');
  await drive.press('Delete');
  await drive.dialog().getByRole('button', { name: 'Delete' }).click();
  await page().getByText('inner', { exact: true }).click();
  release();
  await expectSoon(() => drive.statusOf('a.txt')).toBe(404);
  await expectSoon(() => drive.names()).toEqual(['b.txt']);
});

test('a new folder is created, and a name that is taken is refused in the dialog', async () => {
  await drive.put('taken');
  await drive.open();
  await drive.press('New folder');
  await drive.dialog().getByLabel('Name of the new folder').fill('taken');
  await page().keyboard.press('Enter');
  await drive.dialog().getByText('“taken” exists here already; choose another name.').waitFor();
  await drive.dialog().getByLabel('Name of the new folder').fill('Fotos & Ähnliches');
  await page().keyboard.press('Enter');
  await expectSoon(() => drive.names()).toEqual(['Fotos & Ähnliches', 'taken']);
  await expectSoon(() => drive.dialog().count()).toBe(0);
});

test('a file is renamed, and never over another one', async () => {
  await drive.put('a.txt', 'a');
  await drive.put('b.txt', 'b');
  await drive.open();
  await drive.check('a.txt');
  await drive.press('Rename');
  await drive.dialog().getByLabel('New name').fill('b.txt');
  await page().keyboard.press('Enter');
  await drive.dialog().getByText('“b.txt” exists here already; choose another name.').waitFor();
  await drive.dialog().getByLabel('New name').fill('c.txt');
  await page().keyboard.press('Enter');
  await expectSoon(() => drive.names()).toEqual(['b.txt', 'c.txt']);
  expect([await drive.textOf('b.txt'), await drive.textOf('c.txt')]).toEqual(['b', 'a']);
});

test('a folder and a file whose names are not UTF-8 are opened and renamed', async () => {
  await drive.dav('MKCOL', 'th%E9/');
  await drive.put('th%E9/caf%E9.txt', 'latin1');
  await drive.open();
  await page().getByText('th‛E9', { exact: true }).click();
  await expectSoon(() => drive.names()).toEqual(['caf‛E9.txt']);
  expect(page().url()).toBe(drive.addressOf('th%E9/'));
  await drive.check('caf‛E9.txt');
  await drive.press('Rename');
  await drive.dialog().getByLabel('New name').fill('café.txt');
  await page().keyboard.press('Enter');
  await expectSoon(() => drive.names()).toEqual(['café.txt']);
  expect(await drive.textOf('th%E9/caf%C3%A9.txt')).toBe('latin1');
});

test('several files are deleted after a question, and none when it is answered with no', async () => {
  for (const name of ['a.txt', 'b.txt', 'c.txt']) await drive.put(name);
  await drive.open();
  await drive.check('a.txt');
  await drive.check('c.txt');
  await drive.press('Delete');
  await drive.dialog().getByRole('button', { name: 'Cancel' }).click();
  expect(await drive.statusOf('a.txt')).toBe(200);
  await drive.press('Delete');
  await drive.dialog().getByText('Delete 2 items?').waitFor();
  await drive.dialog().getByRole('button', { name: 'Delete' }).click();
  await expectSoon(() => drive.names()).toEqual(['b.txt']);
});

test('a file that someone else has changed meanwhile is not deleted', async () => {
  await drive.put('a.txt', 'old');
  await drive.open();
  await drive.check('a.txt');
  await drive.press('Delete');
  expect((await drive.dav('PUT', 'a.txt', 'newer')).status).toBe(204);
  await drive.dialog().getByRole('button', { name: 'Delete' }).click();
  await expectSoon(() => page().getByRole('alert').innerText()).toContain('Someone else has changed “a.txt”');
  expect(await drive.textOf('a.txt')).toBe('newer');
});

test.each([
  ['moved', 'Move to…', 'Move here', 404],
  ['copied', 'Copy to…', 'Copy here', 200],
])('a file is %s into a folder that is chosen in a dialog', async (_what, action, here, status) => {
  await drive.put('a.txt', 'a');
  await drive.dav('MKCOL', 'target/');
  await drive.open();
  await drive.check('a.txt');
  await drive.press(action);
  await drive.dialog().getByRole('button', { name: 'target' }).click();
  await drive.dialog().getByRole('button', { name: here }).click();
  await expectSoon(() => drive.statusOf('target/a.txt')).toBe(200);
  expect(await drive.statusOf('a.txt')).toBe(status);
});

test('a file that is dragged onto a folder is moved into it', async () => {
  await drive.put('a.txt', 'a');
  await drive.dav('MKCOL', 'target/');
  await drive.open();
  await drive.item('a.txt').dragTo(drive.item('target'));
  await expectSoon(() => drive.names()).toEqual(['target']);
  expect(await drive.textOf('target/a.txt')).toBe('a');
});

test('a file is downloaded under its name', async () => {
  await drive.put('a.txt', 'content');
  await drive.open();
  await drive.check('a.txt');
  const [download] = await Promise.all([page().waitForEvent('download'), drive.press('Download')]);
  expect(download.suggestedFilename()).toBe('a.txt');
});

test('images and texts are shown over the page, and the arrow keys go from one to the next', async () => {
  const picture = await sharp({ create: { width: 30, height: 20, channels: 3, background: '#4a8' } })
    .png()
    .toBuffer();
  await drive.put('1.png', picture);
  await drive.put('2.txt', '<b>Hello</b>');
  await drive.open();
  await page().getByText('1.png', { exact: true }).click();
  await expectSoon(() => page().evaluate('document.querySelector("dialog img").naturalWidth')).toBe(30);
  await page().keyboard.press('ArrowRight');
  await expectSoon(() => drive.dialog().locator('pre').innerText()).toBe('<b>Hello</b>');
  await page().keyboard.press('Escape');
  await expectSoon(() => drive.dialog().count()).toBe(0);
});

test('a script in a file of the drive does not run in the application', async () => {
  await drive.put(
    'evil.svg',
    '<svg xmlns="http://www.w3.org/2000/svg"><script>parent.evil = true</script></svg>',
  );
  await drive.open();
  await drive.press('Grid');
  await page().getByText('evil.svg', { exact: true }).click();
  await drive.dialog().locator('img').waitFor();
  await expectSoon(() => page().evaluate('window.evil')).toBeUndefined();
});
