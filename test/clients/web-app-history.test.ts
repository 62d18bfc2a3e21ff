import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { combinations } from '../support/effort.ts';
import { expectSoon } from '../support/eventually.ts';
import { startProgram } from '../support/program.ts';

// Versions, trash and undo in the web application; each test has a folder of its own.

const drive = driveInBrowser();
const page = () => drive.page;

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;

/** Opens the folder, and waits until the page knows that deletions can be undone. */
async function openWithTrash(): Promise<void> {
  await drive.open();
  await page().getByRole('button', { name: 'Trash', exact: true }).waitFor();
}

async function deleteFiles(...names: readonly string[]): Promise<void> {
  for (const name of names) await drive.check(name);
  await drive.press('Delete');
  await drive.dialog().getByRole('button', { name: 'Delete' }).click();
  for (const name of names) await expectSoon(() => drive.statusOf(encodeURIComponent(name))).toBe(404);
}

/** Opens the versions of the file that is selected. */
async function openVersions(name: string, count: number): Promise<void> {
  await drive.check(name);
  await drive.press('Versions');
  await expectSoon(() => drive.dialog().getByRole('listitem').count()).toBe(count);
}

describe('versions', () => {
  test('an old version of a file is restored, and the replaced one can be restored again', async () => {
    await drive.put('a.txt', 'old');
    await drive.dav('PUT', 'a.txt', 'much newer');
    await openWithTrash();
    await openVersions('a.txt', 2);
    await drive
      .dialog()
      .getByRole('button', { name: /^Restore/ })
      .click();
    await expectSoon(() => drive.dialog().getByRole('listitem').count()).toBe(3);
    await expectSoon(() => drive.textOf('a.txt')).toBe('old');
    await drive
      .dialog()
      .getByRole('button', { name: /^Restore/ })
      .first()
      .click();
    await expectSoon(() => drive.textOf('a.txt')).toBe('much newer');
    await page().keyboard.press('Escape');
    await expectSoon(() => drive.item('a.txt').locator('.size').innerText()).toBe('10 B');
  });

  test('an old version is downloaded under the name of the file', async () => {
    await drive.put('a.txt', 'old');
    await drive.dav('PUT', 'a.txt', 'new');
    await openWithTrash();
    await openVersions('a.txt', 2);
    const [download] = await Promise.all([
      page().waitForEvent('download'),
      drive
        .dialog()
        .getByRole('link', { name: /^Download/ })
        .last()
        .click(),
    ]);
    expect(download.suggestedFilename()).toBe('a.txt');
    expect(await readFile(await download.path(), 'utf8')).toBe('old');
  });

  test('a version is not restored over a file that a program has locked, which the dialog says', async () => {
    await drive.put('a.txt', 'old');
    await drive.dav('PUT', 'a.txt', 'new');
    await openWithTrash();
    await openVersions('a.txt', 2);
    expect((await drive.dav('LOCK', 'a.txt', LOCK)).status).toBe(200);
    await drive
      .dialog()
      .getByRole('button', { name: /^Restore/ })
      .click();
    await drive.dialog().getByText('“a.txt” is locked').waitFor();
    expect(await drive.textOf('a.txt')).toBe('new');
  });

  test('versions that cannot be listed say why', async () => {
    await drive.put('a.txt');
    await openWithTrash();
    await page().route('**/.davgate/api/versions?*', (route) =>
      route.fulfill({ status: 503, body: 'the storage service is away' }),
    );
    await drive.check('a.txt');
    await drive.press('Versions');
    await drive.dialog().getByText('the storage service is away').waitFor();
  });
});

describe('undo', () => {
  test('several deleted files and folders come back by one press on Undo', async () => {
    await drive.put('a.txt', 'a');
    await drive.put('b.txt', 'b');
    await drive.dav('MKCOL', 'in/');
    await drive.put('in/c.txt', 'c');
    await drive.put('stays.txt', 'x');
    // Its time does not pass: the offer stays.
    await page().clock.setFixedTime(Date.now());
    await openWithTrash();
    await deleteFiles('in', 'a.txt', 'b.txt');
    await page().getByText('3 deleted').waitFor();
    await drive.press('Undo');
    await expectSoon(() => drive.names()).toEqual(['in', 'a.txt', 'b.txt', 'stays.txt']);
    expect([await drive.textOf('a.txt'), await drive.textOf('in/c.txt')]).toEqual(['a', 'c']);
    await expectSoon(() => page().getByRole('button', { name: 'Undo' }).count()).toBe(0);
  });

  test('Ctrl+Z undoes a deletion, also in another folder', async () => {
    await drive.put('a.txt', 'a');
    await drive.dav('MKCOL', 'in/');
    await page().clock.setFixedTime(Date.now());
    await openWithTrash();
    await deleteFiles('a.txt');
    await page().getByText('“a.txt” deleted').waitFor();
    await page().getByText('in', { exact: true }).click();
    await page().getByText('This folder is empty.').waitFor();
    await page().keyboard.press('Control+z');
    await expectSoon(() => drive.textOf('a.txt')).toBe('a');
  });

  test('a file whose name is taken again is not brought back over the new one', async () => {
    await drive.put('a.txt', 'old');
    await page().clock.setFixedTime(Date.now());
    await openWithTrash();
    await deleteFiles('a.txt');
    await drive.put('a.txt', 'new');
    await drive.press('Undo');
    await expectSoon(() => page().getByRole('alert').innerText()).toContain('“a.txt” is there again.');
    expect(await drive.textOf('a.txt')).toBe('new');
  });

  test('the offer to undo ends after some time', async () => {
    await drive.put('a.txt', 'a');
    const nowMs = Date.now();
    await page().clock.setFixedTime(nowMs);
    await openWithTrash();
    await deleteFiles('a.txt');
    await page().getByRole('button', { name: 'Undo' }).waitFor();
    await page().clock.setFixedTime(nowMs + 60_000);
    await expectSoon(() => page().getByRole('button', { name: 'Undo' }).count()).toBe(0);
  });

  test('a page that knows nothing of the drive yet deletes so that it can be undone, and asks until it knows', async () => {
    await drive.put('a.txt', 'a');
    let isAway = true;
    await page().route('**/.davgate/api/drive', (route) =>
      isAway ? route.fulfill({ status: 503, body: 'busy' }) : route.continue(),
    );
    await page().clock.setFixedTime(Date.now());
    await drive.open();
    await drive.check('a.txt');
    await drive.press('Delete');
    // The deletion itself asks, too: for the token of the session.
    isAway = false;
    await drive.dialog().getByRole('button', { name: 'Delete' }).click();
    await expectSoon(() => drive.statusOf('a.txt')).toBe(404);
    await drive.press('Undo');
    await expectSoon(() => drive.textOf('a.txt')).toBe('a');
    await page().getByText('Signed in as tester').waitFor();
  });

  test('a drive that deletes for good says so before, and offers neither undo nor trash', async () => {
    const dataDirectory = join(drive.directory, `for good ${drive.folder}`);
    const program = await startProgram({ dataDirectory, args: ['--delete', 'permanent'] });
    onTestFinished(async () => void (await program.stop()));
    const headers = { authorization: program.authorization };
    const address = new URL('a.txt', program.url);
    expect((await fetch(address, { method: 'PUT', headers, body: 'a' })).status).toBe(201);
    await drive.use({}, { visitor: program });
    await page().goto(program.url);
    await page().getByText('Signed in as').waitFor();
    await expectSoon(() => page().getByRole('button', { name: 'Trash' }).count()).toBe(0);
    await drive.check('a.txt');
    await drive.press('Delete');
    await drive.dialog().getByText('It is deleted for good').waitFor();
    await drive.dialog().getByRole('button', { name: 'Delete' }).click();
    await page().getByText('This folder is empty.').waitFor();
    await expectSoon(() => page().getByRole('button', { name: 'Undo' }).count()).toBe(0);
    const trash = await fetch(new URL('/.davgate/api/trash?path=/', program.url), { headers });
    expect(await trash.json()).toEqual({ items: [], leftOut: 0 });
  });
});

describe('the trash', () => {
  test('a deleted file and a deleted folder are restored from the trash of their folder', async () => {
    await drive.put('a.txt', 'a');
    await drive.dav('MKCOL', 'in/');
    await drive.put('in/b.txt', 'b');
    await openWithTrash();
    await deleteFiles('in', 'a.txt');
    await drive.press('Trash');
    for (const name of ['in', 'a.txt']) {
      await drive
        .dialog()
        .getByRole('button', { name: `Restore: ${name}`, exact: true })
        .click();
      await expectSoon(() => drive.statusOf(name)).not.toBe(404);
    }
    await drive.dialog().getByText('Nothing deleted from this folder can be restored.').waitFor();
    await drive.dialog().getByRole('button', { name: 'Close' }).click();
    await expectSoon(() => drive.names()).toEqual(['in', 'a.txt']);
    expect([await drive.textOf('a.txt'), await drive.textOf('in/b.txt')]).toEqual(['a', 'b']);
  });

  test('a file that cannot be restored stays in the trash, which says why', async () => {
    await drive.put('a.txt', 'old');
    await openWithTrash();
    await deleteFiles('a.txt');
    await drive.press('Trash');
    const restore = drive.dialog().getByRole('button', { name: 'Restore: a.txt' });
    await restore.waitFor();
    await drive.put('a.txt', 'new');
    await restore.click();
    await drive.dialog().getByText('“a.txt” is there again.').waitFor();
    await expectSoon(() => restore.count()).toBe(1);
    expect(await drive.textOf('a.txt')).toBe('new');
  });
});

test.each(
  combinations([
    { width: 320, colorScheme: 'light' as const },
    { width: 320, colorScheme: 'dark' as const },
    { width: 1280, colorScheme: 'dark' as const },
  ] as const),
)(
  'at $width px in $colorScheme colours versions, undo and trash fit, and axe finds no violation',
  async (look) => {
    const name = `${'A long name that goes on '.repeat(6)}.txt`;
    await drive.put(encodeURIComponent(name), 'old');
    await drive.dav('PUT', encodeURIComponent(name), 'new');
    await drive.resize(look);
    await page().clock.setFixedTime(Date.now());
    await openWithTrash();
    const widths = '[document.documentElement.scrollWidth, innerWidth]';
    const dialogWidths =
      '[document.querySelector("dialog").scrollWidth - document.querySelector("dialog").clientWidth]';
    await openVersions(name, 2);
    await expectSoon(() => page().evaluate<number[]>(dialogWidths)).toEqual([0]);
    await expectSoon(() => drive.violations()).toEqual([]);
    await page().keyboard.press('Escape');
    await drive.press('Delete');
    await drive.dialog().getByRole('button', { name: 'Delete' }).click();
    await page().getByRole('button', { name: 'Undo' }).waitFor();
    await expectSoon(() => page().evaluate<number[]>(widths)).toEqual([look.width, look.width]);
    await expectSoon(() => drive.violations()).toEqual([]);
    await drive.press('Trash');
    await drive
      .dialog()
      .getByRole('button', { name: /^Restore/ })
      .waitFor();
    await expectSoon(() => page().evaluate<number[]>(dialogWidths)).toEqual([0]);
    await expectSoon(() => drive.violations()).toEqual([]);
  },
);
