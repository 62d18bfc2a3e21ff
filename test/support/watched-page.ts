import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { WAIT_MS } from './eventually.ts';

/** A page, and what it did that no page of ours has a reason to do. */
export interface WatchedPage {
  readonly page: Page;
  /** Errors of scripts, dialogs, what the browser complained of, and the marks that `HOSTILE` leaves. */
  readonly noises: readonly string[];
  close(): Promise<void>;
}

/** A script for hostile files and names: wherever it runs, the page that `watchedPage` opened makes a noise. */
export const HOSTILE = `alert('ran')`;

/** Opens a page in a context of its own. */
export async function watchedPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(WAIT_MS);
  const page = await context.newPage();
  const noises: string[] = [];
  page.on('console', (message) => {
    // A page that says that something is not there comes with the status that says so.
    if (!message.text().startsWith('Failed to load resource')) noises.push(message.text());
  });
  page.on('pageerror', (error) => noises.push(error.message));
  page.on('dialog', (dialog) => {
    noises.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return { page, noises, close: () => context.close() };
}
