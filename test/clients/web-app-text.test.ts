import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';

// Writing and editing text files in the web application.

const drive = driveInBrowser();
const page = () => drive.page;
const text = () => page().getByRole('textbox', { name: 'Text', exact: true });
const state = () => page().locator('.editor .state').innerText();
const answer = (name: string) => drive.dialog().getByRole('button', { name, exact: true }).click();

/** Opens the editor for a file of the folder. */
async function edit(name: string): Promise<void> {
  await page().getByText(name, { exact: true }).click();
  await answer('Edit');
  await text().waitFor();
}

test('a new text file is created, written, and saved by Ctrl+S', async () => {
  await drive.open();
  await drive.press('New text file');
  await drive.dialog().getByLabel('Name of the new text file').fill('notes');
  await page().keyboard.press('Enter');
  await text().waitFor();
  await page().keyboard.type('Grüße\nund mehr');
  await expectSoon(state).toBe('Not saved');
  await page().keyboard.press('Control+s');
  await expectSoon(state).toBe('Saved');
  expect(await drive.textOf('notes.txt')).toBe('Grüße\nund mehr');
  await page().keyboard.type('!');
  await page().keyboard.press('Control+s');
  await expectSoon(() => drive.textOf('notes.txt')).toBe('Grüße\nund mehr!');
  await expectSoon(state).toBe('Saved');
  await answer('Close');
  await expectSoon(() => drive.names()).toEqual(['notes.txt']);
});

test('a new text file never replaces one, and says that the name is taken', async () => {
  await drive.put('taken.txt', 'old');
  await drive.open();
  await drive.press('New text file');
  await drive.dialog().getByLabel('Name of the new text file').fill('taken');
  await page().keyboard.press('Enter');
  await drive.dialog().getByText('“taken.txt” exists here already; choose another name.').waitFor();
  expect(await drive.textOf('taken.txt')).toBe('old');
});

test('a saved text keeps the line ends and the byte order mark of its file', async () => {
  await drive.put('windows.txt', '\ufeffone\r\ntwo\r\n');
  await drive.open();
  await edit('windows.txt');
  await page().keyboard.press('Control+End');
  await page().keyboard.type('three');
  await answer('Save');
  await expectSoon(state).toBe('Saved');
  const bytes = await (await drive.dav('GET', 'windows.txt')).arrayBuffer();
  expect(Buffer.from(bytes).toString()).toBe('\ufeffone\r\ntwo\r\nthree');
});

test('Escape with unsaved changes asks, and closes without saving only when told to', async () => {
  await drive.put('a.txt', 'old');
  await drive.open();
  await edit('a.txt');
  await page().keyboard.type('new ');
  // The second one would close a dialog that only asks to stay open.
  await page().keyboard.press('Escape');
  await page().keyboard.press('Escape');
  await drive.dialog().getByText('Your changes are not saved.').waitFor();
  await expectSoon(() => drive.violations()).toEqual([]);
  await answer('Keep editing');
  await expectSoon(() => text().inputValue()).toBe('new old');
  await page().keyboard.press('Escape');
  await answer('Discard changes');
  await expectSoon(() => drive.dialog().count()).toBe(0);
  expect(await drive.textOf('a.txt')).toBe('old');
});

test('a dialog that the browser closes by itself opens again while changes are unsaved', async () => {
  await drive.put('a.txt', 'old');
  await drive.open();
  await edit('a.txt');
  await page().keyboard.type('new ');
  await page().evaluate('document.querySelector("dialog.editor").close()');
  await drive.dialog().getByText('Your changes are not saved.').waitFor();
  await drive.dialog().locator('.question').getByRole('button', { name: 'Save' }).click();
  await expectSoon(() => drive.dialog().count()).toBe(0);
  expect(await drive.textOf('a.txt')).toBe('new old');
});

test('leaving the page with unsaved changes asks', async () => {
  await drive.put('a.txt', 'old');
  await drive.open();
  await edit('a.txt');
  await page().keyboard.type('new ');
  await expectSoon(state).toBe('Not saved');
  const [dialog] = await Promise.all([
    page().waitForEvent('dialog'),
    page().close({ runBeforeUnload: true }),
  ]);
  expect(dialog.type()).toBe('beforeunload');
  await dialog.dismiss();
  await expectSoon(() => text().inputValue()).toBe('new old');
});

test('a text that is being edited stays in the editor when the Back button leads to another folder', async () => {
  await drive.dav('MKCOL', 'in/');
  await drive.put('in/a.txt', 'old');
  await drive.open();
  await page().getByText('in', { exact: true }).click();
  await edit('a.txt');
  await page().keyboard.type('new ');
  await page().goBack();
  await expectSoon(() => drive.names()).toEqual(['in']);
  expect(await drive.dialog().count()).toBe(1);
  await answer('Close');
  await drive.dialog().getByText('Your changes are not saved.').waitFor();
  await drive.dialog().locator('.question').getByRole('button', { name: 'Save' }).click();
  await expectSoon(() => drive.dialog().count()).toBe(0);
  expect(await drive.textOf('in/a.txt')).toBe('new old');
});

test.each([
  ['kept beside the new one as a copy', 'Save as a copy', 'theirs', 'mine old'],
  ['put in its place', 'Replace', 'mine old', undefined],
])('a text that somebody else has changed meanwhile is %s', async (_how, choice, content, copy) => {
  await drive.put('a.txt', 'old');
  await drive.put('a%20(2).txt', 'taken');
  await drive.open();
  await edit('a.txt');
  await page().keyboard.type('mine ');
  expect((await drive.dav('PUT', 'a.txt', 'theirs')).status).toBe(204);
  await answer('Save');
  await drive.dialog().getByText('Someone else has changed or removed this file meanwhile.').waitFor();
  expect(await drive.textOf('a.txt')).toBe('theirs');
  await answer(choice);
  await expectSoon(state).toBe(copy === undefined ? 'Saved' : 'Saved as “a (3).txt”');
  expect(await drive.textOf('a.txt')).toBe(content);
  if (copy !== undefined) expect(await drive.textOf('a%20(3).txt')).toBe(copy);
  expect(await drive.textOf('a%20(2).txt')).toBe('taken');
  // Later changes go into the file that was just saved.
  await page().keyboard.type('more ');
  await page().keyboard.press('Control+s');
  await expectSoon(() => drive.textOf(copy === undefined ? 'a.txt' : 'a%20(3).txt')).toBe('mine more old');
});

test('a text that could not be saved stays in the editor, and is saved when the drive answers again', async () => {
  await drive.put('a.txt', 'old');
  await drive.open();
  await edit('a.txt');
  await page().keyboard.type('new ');
  await page().route('**/a.txt', (route) => route.abort('connectionreset'));
  await answer('Save');
  await expectSoon(() => page().getByRole('alert').innerText()).toBe(
    'Not saved: The drive does not answer. Check the connection.',
  );
  await page().unrouteAll();
  await answer('Save');
  await expectSoon(state).toBe('Saved');
  expect(await drive.textOf('a.txt')).toBe('new old');
});

test('a text that somebody else has locked is not saved, and the editor says so', async () => {
  await drive.put('a.txt', 'old');
  const lock =
    '<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>';
  expect((await drive.dav('LOCK', 'a.txt', lock, { timeout: 'Second-600' })).status).toBe(200);
  await drive.open();
  await edit('a.txt');
  await page().keyboard.type('new ');
  await answer('Save');
  await expectSoon(() => page().getByRole('alert').innerText()).toBe(
    'Not saved: Someone else has locked it. Try again when they are done.',
  );
  await expectSoon(() => text().inputValue()).toBe('new old');
  expect(await drive.textOf('a.txt')).toBe('old');
});

test('Ctrl+S without a change sends nothing', async () => {
  await drive.put('a.txt', 'old');
  await drive.open();
  await edit('a.txt');
  let puts = 0;
  await page().route('**/a.txt', (route) => {
    if (route.request().method() === 'PUT') puts += 1;
    return route.continue();
  });
  await page().keyboard.press('Control+s');
  await page().keyboard.type('new ');
  await page().keyboard.press('Control+s');
  await expectSoon(state).toBe('Saved');
  expect(puts).toBe(1);
});

test('a file that is not UTF-8 is not opened in the editor, which would damage it', async () => {
  await drive.put('latin.txt', new Uint8Array([0x47, 0x72, 0xfc, 0xdf, 0x65]));
  await drive.open();
  await page().getByText('latin.txt', { exact: true }).click();
  await answer('Edit');
  await expectSoon(() => page().getByRole('alert').innerText()).toBe(
    'This file is not UTF-8 text and cannot be edited here.',
  );
  await expectSoon(() => text().count()).toBe(0);
});

test.each([320, 1280])('the editor fits into %i px, and axe finds no violation', async (width) => {
  await drive.put(`${'long'.repeat(20)}.txt`, 'text');
  await drive.resize({ width, height: 700, colorScheme: 'dark' });
  await drive.open();
  await edit(`${'long'.repeat(20)}.txt`);
  await page().keyboard.type('x');
  await page().keyboard.press('Escape');
  await drive.dialog().getByText('Your changes are not saved.').waitFor();
  await expectSoon(() => page().evaluate('document.documentElement.scrollWidth')).toBe(width);
  await expectSoon(() => drive.violations()).toEqual([]);
});
