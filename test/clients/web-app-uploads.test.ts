import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { afterAll, afterEach, expect, test } from 'vitest';
import { pseudoRandomBytes } from '../support/bytes.ts';
import {
  advanceUntil,
  breakPartsAfter,
  driveInBrowser,
  partOffsets,
  refuseOnce,
  retryDelayMs,
} from '../support/drive-page.ts';
import { expectSoon } from '../support/eventually.ts';
import { Gate } from '../support/gate.ts';
import { passedOn } from '../support/passed-on.ts';
import { startTestService, type TestService } from '../support/service.ts';

// Large uploads in the web application, over a service that can fail; each test has a folder of its own.

const MIB = 1024 * 1024;
/** Two parts: 16 MiB and a short one. */
const BYTES = pseudoRandomBytes(17 * MIB, 1);

let service: TestService | undefined;
let proxy: Server | undefined;

const drive = driveInBrowser(async () => {
  service = await startTestService();
  return ['--api-url', service.url, '--token', service.token];
});
const page = () => drive.page;

afterEach(() => service?.service.setFaults({}));
afterEach(() => {
  proxy?.close();
  proxy?.closeAllConnections();
});
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

/** Opens the folder by a proxy that reads each part of a file and answers 503, and passes all other requests on. */
async function openByRefusingProxy(): Promise<void> {
  const pass = async (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.includes('/upload-part')) {
      await buffer(request);
      response.writeHead(503).end('davgate is down');
      return;
    }
    const answer = await passedOn(request, drive.program.url, (end) => response.once('close', end));
    response.writeHead(answer.statusCode ?? 500, answer.headers);
    await pipeline(answer, response);
  };
  proxy = createServer((request, response) => {
    pass(request, response).catch(() => response.destroy());
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const address = new URL(drive.addressOf(''));
  address.port = String((proxy.address() as AddressInfo).port);
  await page().goto(address.href);
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

test('a large upload that gets only a little further with each of many tries is not given up', async () => {
  await page().clock.install();
  const offsets = await breakPartsAfter(page(), 1.5 * MIB, BYTES);
  await drive.open();
  await choose('slow.bin');
  await advanceUntil(page(), '1 uploaded');
  expect(offsets).toEqual(Array.from({ length: 12 }, (_, index) => index * 1.5 * MIB));
  await expectStored('slow.bin');
});

test('a large upload by a proxy that reads its first part and answers 503 is given up after ten tries', async () => {
  await page().clock.install();
  const offsets = partOffsets(page());
  await openByRefusingProxy();
  await choose('refused.bin');
  await advanceUntil(page(), '0 uploaded, 1 failed');
  await page().getByText('davgate is down').waitFor();
  expect(offsets).toEqual(Array<number>(10).fill(0));
});

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

test.each([
  { answer: { json: { receivedBytes: MIB, isStored: false } }, held: /api\/upload$/ },
  { answer: { status: 404, body: 'there is no such upload any more' }, held: /api\/upload-part\?/ },
])(
  'a cancelled upload that is begun again ignores the late answer $answer to the cancelled try',
  async ({ answer, held }) => {
    const state = new Gate();
    const next = new Gate();
    const offsets = await breakParts([1]);
    await page().route(/api\/upload-state\?/, async (route) => {
      await state.pass();
      await route.fulfill(answer);
    });
    await drive.open();
    await choose('late.bin');
    await state.reached;
    await page().route(held, async (route) => {
      await next.pass();
      await route.fallback();
    });
    await page().locator('.uploads li').getByRole('button', { name: 'Cancel' }).click();
    await page().locator('.uploads li').getByRole('button', { name: 'Try again' }).click();
    await next.reached;
    const answered = page().waitForResponse(/api\/upload-state\?/);
    state.open();
    await answered;
    next.open();
    await page().getByText('1 uploaded').waitFor();
    expect(offsets).toEqual([0, 0, 16 * MIB]);
    await expectStored('late.bin');
  },
);

test('an upload that is cancelled before davgate has answered its beginning is ended at davgate', async () => {
  const beginning = new Gate();
  let id = '';
  await page().route(/api\/upload$/, async (route) => {
    const response = await route.fetch();
    ({ id } = await response.json());
    await beginning.pass();
    await route.fulfill({ response });
  });
  await drive.open();
  await choose('early.bin');
  await beginning.reached;
  await page().locator('.uploads li').getByRole('button', { name: 'Cancel' }).click();
  const ended = page().waitForRequest(/api\/end-upload$/);
  beginning.open();
  expect((await ended).postDataJSON()).toEqual({ id });
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

test('an upload that a busy drive refuses is sent again after the time that the drive wants, not before', async () => {
  const sentMs = await refuseOnce(page(), '**/busy.txt', 30);
  await drive.open();
  await drive.upload({ name: 'busy.txt', text: 'patient' });
  expect(await retryDelayMs(page(), sentMs)).toBeGreaterThanOrEqual(30_000);
  await page().getByText('1 uploaded').waitFor();
  expect(await drive.textOf('busy.txt')).toBe('patient');
});

test('a large upload that a busy drive does not let begin is begun again after the time that the drive wants', async () => {
  const sentMs = await refuseOnce(page(), /api\/upload$/, 30);
  await drive.open();
  await choose('busy.bin');
  expect(await retryDelayMs(page(), sentMs)).toBeGreaterThanOrEqual(30_000);
  await page().getByText('1 uploaded').waitFor();
  await expectStored('busy.bin');
});

test('a large upload goes on at the part that a busy drive refused, after the time that the drive wants', async () => {
  const bytes = pseudoRandomBytes(33 * MIB, 3);
  const offsets = partOffsets(page());
  const sentMs = await refuseOnce(page(), /\/upload-part\?.*offset=16777216$/, 30);
  await drive.open();
  await choose('busy.bin', bytes);
  expect(await retryDelayMs(page(), sentMs)).toBeGreaterThanOrEqual(30_000);
  await page().getByText('1 uploaded').waitFor();
  expect(offsets).toEqual([0, 16 * MIB, 16 * MIB, 32 * MIB]);
  await expectStored('busy.bin', bytes);
  await expectSoon(() => drive.names()).toEqual(['busy.bin']);
});

test('an upload that is cancelled while it waits, and then retried, is not sent twice at a time', async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let tries = 0;
  await page().clock.install();
  await page().route('**/again.txt', async (route) => {
    tries += 1;
    if (tries === 1) return route.fulfill({ status: 503, headers: { 'Retry-After': '30' }, body: 'busy' });
    await held;
    return route.continue();
  });
  await drive.open();
  await drive.upload({ name: 'again.txt', text: 'once' });
  await page().getByText('Waiting for the connection…').waitFor();
  await page().locator('.uploads li').getByRole('button', { name: 'Cancel' }).click();
  await page().locator('.uploads li').getByRole('button', { name: 'Try again' }).click();
  await expectSoon(() => tries).toBe(2);
  await page().clock.runFor(30_000);
  release();
  await page().getByText('1 uploaded').waitFor();
  expect(tries).toBe(2);
  expect(await drive.textOf('again.txt')).toBe('once');
});
