import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import { driveInBrowser } from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { startTestService, type TestService } from '../support/service.ts';

// Large uploads in the web application, over a service that can fail; each test has a folder of its own.

const MIB = 1024 * 1024;
/** Two parts: 16 MiB and a short one. */
const BYTES = pseudoRandomBytes(17 * MIB, 1);

let service: TestService | undefined;

const drive = driveInBrowser(async () => {
  service = await startTestService();
  return ['--api-url', service.url, '--token', service.token];
});
const page = () => drive.page;

afterEach(() => service?.service.setFaults({}));
afterAll(() => service?.close());

/** Chooses a large file for the folder. */
async function choose(name: string, bytes = BYTES): Promise<void> {
  const local = join(drive.directory, name);
  await writeFile(local, bytes);
  await page().getByLabel('Upload files').setInputFiles(local);
}

/** Lets the browser send parts, breaks the connection at those whose number is in `broken`, and keeps their offsets. */
async function breakParts(broken: readonly number[]): Promise<readonly number[]> {
  const offsets: number[] = [];
  await page().route('**/.davgate/api/upload-part**', async (route) => {
    offsets.push(Number(new URL(route.request().url()).searchParams.get('offset')));
    if (broken.includes(offsets.length)) return route.abort('connectionreset');
    return route.continue();
  });
  return offsets;
}

async function expectStored(name: string, bytes = BYTES): Promise<void> {
  const answer = await drive.dav('GET', name);
  expect(Buffer.from(await answer.arrayBuffer()).equals(bytes)).toBe(true);
}

test('a large upload whose connection breaks goes on where it was, and is whole', async () => {
  const bytes = pseudoRandomBytes(33 * MIB, 2);
  const offsets = await breakParts([2, 3]);
  await drive.open();
  await choose('large.bin', bytes);
  await page().getByText('Waiting for the connection…').waitFor();
  await page().getByText('1 uploaded').waitFor();
  expect(offsets).toEqual([0, 16 * MIB, 16 * MIB, 16 * MIB, 32 * MIB]);
  await expectStored('large.bin', bytes);
  await expectSoon(() => drive.names()).toEqual(['large.bin']);
});

test.each([{ width: 390 }, { width: 1280 }])(
  'at $width px axe finds nothing wrong with an upload that waits for the connection',
  async ({ width }) => {
    await drive.resize({ width });
    await drive.open();
    await page().context().setOffline(true);
    await choose('waiting.bin');
    await page().getByText('Waiting for the connection…').waitFor();
    await expectSoon(() => drive.violations()).toEqual([]);
  },
);

test('a large upload whose last answer was lost counts as done', async () => {
  let isLost = false;
  await page().route('**/.davgate/api/upload-part**', async (route) => {
    const isLast = route
      .request()
      .url()
      .endsWith(String(16 * MIB));
    if (!isLast || isLost) return route.continue();
    isLost = true;
    await route.fetch();
    return route.abort('connectionreset');
  });
  await drive.open();
  await choose('lost.bin');
  await page().getByText('1 uploaded').waitFor();
  expect(isLost).toBe(true);
  await expectStored('lost.bin');
});

test('a large upload never replaces a file unless it is told to', async () => {
  await drive.put('taken.bin', 'old');
  await drive.open();
  await choose('taken.bin');
  await page().getByText('“taken.bin” exists already.').waitFor();
  expect(await drive.textOf('taken.bin')).toBe('old');
  await drive.press('Replace');
  await page().getByText('1 uploaded').waitFor();
  await expectStored('taken.bin');
});

test('a large upload that is cancelled stores nothing, and a retry begins it again', async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  await page().route('**/.davgate/api/upload-part**', async (route) => {
    await held;
    await route.continue().catch(() => undefined);
  });
  await drive.open();
  await choose('stopped.bin');
  await page().locator('.uploads li').getByRole('button', { name: 'Cancel' }).click();
  await page().getByText('Cancelled').waitFor();
  release();
  expect(await drive.statusOf('stopped.bin')).toBe(404);
  await page().unrouteAll();
  await page().locator('.uploads li').getByRole('button', { name: 'Try again' }).click();
  await page().getByText('1 uploaded').waitFor();
  await expectStored('stopped.bin');
});

test('a small upload that a busy drive refuses with 503 is sent again by itself', async () => {
  let tries = 0;
  await page().route('**/busy.txt', (route) =>
    ++tries < 3 ? route.fulfill({ status: 503, body: 'busy now' }) : route.continue(),
  );
  await drive.open();
  await drive.upload({ name: 'busy.txt', text: 'patient' });
  await page().getByText('1 uploaded').waitFor();
  expect(await drive.textOf('busy.txt')).toBe('patient');
});
