import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { WAIT_MS } from './eventually.ts';

/** A page, with a record of its unwanted events. */
export interface WatchedPage {
  readonly page: Page;
  /** Script errors, dialogs, console errors of the browser, and the effects of `HOSTILE`. */
  readonly noises: readonly string[];
  close(): Promise<void>;
}

/** A script for hostile files and names. If it runs, the page records an event. */
export const HOSTILE = `alert('ran')`;

/** Opens a page in a new browser context. */
export async function watchedPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const noises: string[] = [];
  page.on('console', (message) => {
    // A page of a missing item has an error status, which the browser logs.
    if (!message.text().startsWith('Failed to load resource')) noises.push(message.text());
  });
  page.on('pageerror', (error) => noises.push(error.message));
  page.on('dialog', (dialog) => {
    noises.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { page, noises, close: () => context.close() };
}
