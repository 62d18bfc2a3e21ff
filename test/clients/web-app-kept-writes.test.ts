import { readFile } from 'node:fs/promises';
import { afterAll, afterEach, expect, test } from 'vitest';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { startTestService, type TestService } from '../support/service.ts';

// Writes that wait for the storage service, or that it has refused, in the web application of a drive with a journal.

let service: TestService | undefined;

const drive = driveInBrowser(async () => {
  service = await startTestService();
  return ['--write-mode', 'back', '--api-url', service.url, '--token', service.token];
});
const page = () => drive.page;
const faults = (wanted: Parameters<TestService['service']['setFaults']>[0]) =>
  service?.service.setFaults(wanted);

afterEach(() => faults({}));
afterAll(() => service?.close());

const kept = () => page().getByRole('button', { name: /^Waiting and refused/ });

test.each([
  { width: 390, colorScheme: 'dark' as const },
  { width: 1280, colorScheme: 'light' as const },
])(
  'at $width px a waiting file is marked and listed with its reason, and a retry sends it',
  async ({ width, colorScheme }) => {
    await drive.resize({ width, colorScheme });
    await drive.open();
    faults({ 'error-write-share': 1 });
    await drive.put('waits.txt', 'kept safe');
    await drive
      .item('waits.txt')
      .getByRole('button', { name: /^Waits to be sent/ })
      .waitFor();
    await expectSoon(() => kept().innerText()).toContain('1');
    await expectSoon(() => drive.violations()).toEqual([]);
    await kept().click();
    await drive.dialog().getByText('Waiting to be sent: 1').waitFor();
    await drive.dialog().getByText(`/${drive.folder}/waits.txt`).waitFor();
    await expectSoon(() => drive.violations()).toEqual([]);
    // Not before the click: davgate tries again by itself too, and then there is nothing left to click.
    await page().route(/retry-write/, (route) => {
      faults({});
      return route.continue();
    });
    await drive.press('Try again: waits.txt');
    await drive.dialog().getByText('Everything has been stored.').waitFor();
    await page().keyboard.press('Escape');
    await expectSoon(() =>
      page()
        .getByRole('button', { name: /^Waits to be sent/ })
        .count(),
    ).toBe(0);
    expect(await drive.textOf('waits.txt')).toBe('kept safe');
  },
);

test('a pending write can be downloaded, and discarded after a question', async () => {
  await drive.open();
  faults({ 'error-write-share': 1 });
  await drive.put('draft.txt', 'the only copy');
  await expectSoon(() => kept().innerText()).toContain('1');
  await kept().click();
  const downloaded = page().waitForEvent('download');
  await page().getByRole('link', { name: 'Download: draft.txt' }).click();
  const download = await downloaded;
  expect(download.suggestedFilename()).toBe('draft.txt');
  expect(await readFile(await download.path(), 'utf8')).toBe('the only copy');
  await drive.press('Discard: draft.txt');
  await drive.dialog().getByText('Discard “draft.txt”?').waitFor();
  await drive.press('Discard');
  await drive.dialog().getByText('Everything has been stored.').waitFor();
  expect(await drive.statusOf('draft.txt')).toBe(404);
});

test('a retry that fails says why, and the write stays pending', async () => {
  await drive.open();
  faults({ 'error-write-share': 1 });
  await drive.put('stuck.txt', 'x');
  await expectSoon(() => kept().innerText()).toContain('1');
  await kept().click();
  await drive.press('Try again: stuck.txt');
  await expectSoon(() => drive.dialog().getByRole('alert').innerText()).toContain('stuck.txt');
  await drive.dialog().getByText('Waiting to be sent: 1').waitFor();
});

test('a conflicted copy is pointed out in the list, and found in the whole drive', async () => {
  await drive.put('plan.txt', 'theirs');
  await drive.put('plan%20(conflicted%20copy%202026-01-01%2010.00.00).txt', 'mine');
  await drive.open();
  await drive
    .item('plan (conflicted copy 2026-01-01 10.00.00).txt')
    .getByText('Conflicted copy', { exact: true })
    .waitFor();
  await expectSoon(() => page().getByText('Conflicted copy', { exact: true }).count()).toBe(1);
  await kept().click();
  await drive.press('Find conflicted copies');
  await expectSoon(() => drive.names()).toContain('plan (conflicted copy 2026-01-01 10.00.00).txt');
});
