import { expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { Gate } from '../support/gate.ts';

// Files are moved and copied in the web application by dragging, and by choosing a folder; each test has a folder of its own.

const drive = driveInBrowser();
const page = () => drive.page;

const LOCK = `<D:lockinfo xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope>
  <D:locktype><D:write/></D:locktype></D:lockinfo>`;

test('several selected files are dragged onto a folder, which moves all of them', async () => {
  await drive.dav('MKCOL', 'target/');
  for (const name of ['a.txt', 'b.txt', 'c.txt']) await drive.put(name);
  await drive.open();
  for (const name of ['a.txt', 'c.txt']) await drive.check(name);
  await drive.item('c.txt').dragTo(drive.item('target'));
  await expectSoon(() => drive.names()).toEqual(['target', 'b.txt']);
  expect([await drive.textOf('target/a.txt'), await drive.textOf('target/c.txt')]).toEqual([
    'a.txt',
    'c.txt',
  ]);
});

test('a file that is dragged onto a folder with Ctrl is copied', async () => {
  await drive.dav('MKCOL', 'target/');
  await drive.put('a.txt');
  await drive.open();
  await drive.item('a.txt').hover();
  await page().mouse.down();
  await page().keyboard.down('Control');
  await drive.item('target').hover();
  await drive.item('target').hover();
  await page().mouse.up();
  await page().keyboard.up('Control');
  await expectSoon(() => drive.textOf('target/a.txt')).toBe('a.txt');
  expect(await drive.textOf('a.txt')).toBe('a.txt');
});

test('what a page of another window drags onto a folder moves nothing of this page', async () => {
  await drive.dav('MKCOL', 'target/');
  await drive.put('a.txt');
  await drive.open();
  await drive.check('a.txt');
  const sent: string[] = [];
  page().on('request', (request) => sent.push(request.method()));
  for (const type of ['application/x-davgate-items', 'application/x-davgate-items-1-2']) {
    const dataTransfer = await page().evaluateHandle(`(() => {
      const data = new DataTransfer();
      data.setData('${type}', '');
      return data;
    })()`);
    for (const event of ['dragover', 'drop'])
      await drive.item('target').dispatchEvent(event, { dataTransfer });
  }
  await page().keyboard.press('Escape');
  await drive.press('New folder');
  await drive.dialog().getByLabel('Name of the new folder').fill('made');
  await page().keyboard.press('Enter');
  await expectSoon(() => drive.names()).toEqual(['made', 'target', 'a.txt']);
  expect(sent).not.toContain('MOVE');
});

test('a file that is dragged onto a folder above it, beside the name of this one, moves up', async () => {
  await drive.dav('MKCOL', 'inner/');
  await drive.put('inner/a.txt', 'up');
  await drive.open('inner/');
  await drive.item('a.txt').dragTo(page().getByRole('link', { name: drive.folder, exact: true }));
  await expectSoon(() => drive.names()).toEqual([]);
  expect(await drive.textOf('a.txt')).toBe('up');
});

test.each([{ width: 390 }, { width: 1280 }])(
  'at $width px selected files are copied into a folder that is made in the dialog',
  async ({ width }) => {
    await drive.resize({ width });
    for (const name of ['a.txt', 'b.txt']) await drive.put(name);
    await drive.open();
    for (const name of ['a.txt', 'b.txt']) await drive.check(name);
    await drive.press('Copy to…');
    const here = page().getByRole('button', { name: 'Copy here' });
    expect(await here.isDisabled()).toBe(true);
    await page().getByText('There are no folders here.').waitFor();
    await drive.dialog().getByRole('button', { name: 'New folder' }).click();
    await page().getByLabel('Name of the new folder').fill('made');
    await page().getByLabel('Name of the new folder').press('Enter');
    await drive.dialog().getByRole('link', { name: 'made', exact: true }).waitFor();
    await expectSoon(() => drive.violations()).toEqual([]);
    await here.click();
    await expectSoon(() => drive.names()).toEqual(['made', 'a.txt', 'b.txt']);
    await expectSoon(() => drive.textOf('made/b.txt')).toBe('b.txt');
  },
);

test('the dialog offers no folder that would move into itself', async () => {
  for (const name of ['moved/', 'target/']) await drive.dav('MKCOL', name);
  await drive.open();
  await drive.check('moved');
  await drive.press('Move to…');
  await drive.dialog().getByText('Move “moved”').waitFor();
  await drive.dialog().getByRole('button', { name: 'target', exact: true }).waitFor();
  await expectSoon(() => drive.dialog().getByRole('button', { name: 'moved', exact: true }).count()).toBe(0);
  await drive.dialog().getByRole('button', { name: 'target', exact: true }).click();
  await drive.press('Move here');
  await expectSoon(() => drive.names()).toEqual(['target']);
  expect(await drive.statusOf('target/moved/')).toBe(200);
});

/** Drags three files onto a folder that has two of the names, and opens the question about the first one. */
async function dragOntoTaken(): Promise<void> {
  await drive.dav('MKCOL', 'target/');
  for (const name of ['a.txt', 'b.txt', 'c.txt', 'target/a.txt', 'target/b.txt']) await drive.put(name);
  await drive.open();
  for (const name of ['a.txt', 'b.txt', 'c.txt']) await drive.check(name);
  await drive.item('a.txt').dragTo(drive.item('target'));
  await drive.dialog().getByText('“a.txt” exists already.').waitFor();
}

test('a move asks about each file whose name is taken, and a skipped one stays where it is', async () => {
  await dragOntoTaken();
  await expectSoon(() => drive.violations()).toEqual([]);
  await drive.press('Skip');
  await drive.dialog().getByText('“b.txt” exists already.').waitFor();
  await page().keyboard.press('Escape');
  await expectSoon(() => drive.names()).toEqual(['target', 'a.txt', 'b.txt']);
  expect([await drive.textOf('target/a.txt'), await drive.textOf('target/c.txt')]).toEqual([
    'target/a.txt',
    'c.txt',
  ]);
});

test('one answer replaces all files whose names are taken', async () => {
  await dragOntoTaken();
  await drive.dialog().getByLabel('Do the same with all others').check();
  await drive.press('Replace');
  await expectSoon(() => drive.names()).toEqual(['target']);
  expect([await drive.textOf('target/a.txt'), await drive.textOf('target/b.txt')]).toEqual([
    'a.txt',
    'b.txt',
  ]);
});

test('a moved file is kept beside the one that has its name, with the next free number', async () => {
  await drive.put('a.txt', 'mine');
  await drive.dav('MKCOL', 'target/');
  await drive.put('target/a.txt', 'theirs');
  await drive.put('target/a%20(2).txt', 'theirs too');
  await drive.open();
  await drive.item('a.txt').dragTo(drive.item('target'));
  await drive.press('Keep both');
  await expectSoon(() => drive.names()).toEqual(['target']);
  expect(await drive.textOf('target/a%20(3).txt')).toBe('mine');
  expect(await drive.textOf('target/a.txt')).toBe('theirs');
});

test('a folder whose name is taken is never offered to replace the other one', async () => {
  for (const name of ['moved/', 'target/', 'target/moved/']) await drive.dav('MKCOL', name);
  await drive.put('target/moved/kept.txt', 'kept');
  await drive.open();
  await drive.item('moved').dragTo(drive.item('target'));
  await drive.dialog().getByText('it cannot be replaced').waitFor();
  expect(await drive.dialog().getByRole('button', { name: 'Replace' }).count()).toBe(0);
  await drive.press('Keep both');
  await expectSoon(() => drive.statusOf('target/moved%20(2)/')).toBe(200);
  expect(await drive.textOf('target/moved/kept.txt')).toBe('kept');
});

/** Holds the moves of a file at the gate that it returns. */
async function hold(name: string): Promise<Gate> {
  const gate = new Gate();
  await page().route(`**/${name}`, async (route) => {
    if (route.request().method() === 'MOVE') await gate.pass();
    return route.continue();
  });
  return gate;
}

test('a move of several files goes on when its person opens another folder, and asks and says there what it must', async () => {
  await drive.dav('MKCOL', 'target/');
  for (const name of ['a.txt', 'b.txt', 'c.txt', 'd.txt', 'target/b.txt']) await drive.put(name);
  expect((await drive.dav('LOCK', 'c.txt', LOCK)).status).toBe(200);
  await drive.open();
  const gate = await hold('a.txt');
  for (const name of ['a.txt', 'b.txt', 'c.txt', 'd.txt']) await drive.check(name);
  await drive.item('a.txt').dragTo(drive.item('target'));
  await gate.reached;
  await page().getByRole('link', { name: 'target', exact: true }).click();
  await expectSoon(() => drive.names()).toEqual(['b.txt']);
  await drive.check('b.txt');
  gate.open();
  await drive.dialog().getByText('“b.txt” exists already.').waitFor();
  await drive.press('Keep both');
  await page().getByRole('alert').getByText('“c.txt”: Someone else has locked it.').waitFor();
  await expectSoon(() => drive.names()).toEqual(['a.txt', 'b (2).txt', 'b.txt', 'd.txt']);
  expect(await drive.textOf('target/b%20(2).txt')).toBe('b.txt');
  expect(await drive.selected()).toEqual(['b.txt']);
});

test('two moves at the same time whose names are taken ask one after the other, and both end', async () => {
  await drive.dav('MKCOL', 'target/');
  for (const name of ['a.txt', 'b.txt', 'target/a.txt', 'target/b.txt']) await drive.put(name);
  await drive.open();
  const gates = [await hold('a.txt'), await hold('b.txt')];
  for (const name of ['a.txt', 'b.txt']) await drive.item(name).dragTo(drive.item('target'));
  for (const gate of gates) await gate.reached;
  for (const gate of gates) gate.open();
  for (const _ of gates) {
    await drive.dialog().getByText('exists already.').waitFor();
    await drive.press('Replace');
  }
  await expectSoon(() => drive.names()).toEqual(['target']);
  expect([await drive.textOf('target/a.txt'), await drive.textOf('target/b.txt')]).toEqual([
    'a.txt',
    'b.txt',
  ]);
});
