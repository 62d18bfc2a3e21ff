import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { startChromium } from '../support/chromium.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, rpc } from '../support/service-client.ts';

let service: TestService;
let browser: Browser;
let page: Page;
/** Errors of scripts, and dialogs: a page has no reason for either. */
let noises: string[];

beforeAll(async () => {
  service = await startTestService();
  browser = await startChromium();
});
afterAll(async () => {
  await browser.close();
  await service.close();
});
beforeEach(async () => {
  page = await browser.newPage();
  noises = [];
  page.on('pageerror', (error) => noises.push(error.message));
  page.on('dialog', (dialog) => noises.push(dialog.message()));
});
afterEach(async () => {
  await page.close();
  expect(noises).toEqual([]);
});

async function linkTo(path: string, settings?: object): Promise<string> {
  const answered = await rpc(service, 'sharing/create_shared_link_with_settings', { path, settings });
  return (answered.json as { url: string }).url;
}

/** One red pixel. */
const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC',
  'base64',
);

test('an image is shown', async () => {
  await put(service, '/dot.png', DOT);
  await page.goto(await linkTo('/dot.png'));
  expect(await page.title()).toBe('dot.png');
  const image = page.getByRole('img', { name: 'dot.png' });
  expect(await image.evaluate((element) => (element as { naturalWidth?: number }).naturalWidth)).toBe(1);
});
