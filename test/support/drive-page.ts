import axe from 'axe-core';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { WAIT_MS } from './eventually.ts';
import type { Program } from './program.ts';

type ContextOptions = Parameters<Browser['newContext']>[0];

/** A browser at a folder of a drive, and the same folder by WebDAV. */
export class DrivePage {
  #context: BrowserContext | undefined;
  #page: Page | undefined;
  readonly #failures: string[] = [];

  private constructor(
    private readonly browser: Browser,
    private readonly program: Program,
    readonly folder: string,
  ) {}

  /** Makes `folder`, which no other test has, and opens a browser profile with the drive's login. */
  static async create(browser: Browser, program: Program, folder: string): Promise<DrivePage> {
    const drive = new DrivePage(browser, program, folder);
    expect((await drive.dav('MKCOL', '')).status).toBe(201);
    await drive.use({});
    return drive;
  }

  get page(): Page {
    if (!this.#page) throw new Error('no page is open');
    return this.#page;
  }

  /** Opens another profile in place of the last one. */
  async use(options: ContextOptions): Promise<void> {
    await this.#context?.close();
    const { user: username, password } = this.program;
    this.#context = await this.browser.newContext({ httpCredentials: { username, password }, ...options });
    this.#context.setDefaultTimeout(WAIT_MS);
    this.#page = await this.#context.newPage();
    this.#page.on('pageerror', ({ message }) => this.#failures.push(message));
  }

  /** Closes the browser's profile. Fails if the page has thrown. */
  async close(): Promise<void> {
    await this.#context?.close();
    expect(this.#failures).toEqual([]);
  }

  /** Sends a request for a path below the folder. */
  dav(
    method: string,
    path: string,
    body?: string | Uint8Array,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    return fetch(this.addressOf(path), {
      method,
      headers: { authorization: this.program.authorization, ...headers },
      ...(body !== undefined && { body }),
    });
  }

  addressOf(path: string): string {
    return new URL(`${encodeURIComponent(this.folder)}/${path}`, this.program.url).href;
  }

  async put(path: string, body: string | Uint8Array = path): Promise<void> {
    expect((await this.dav('PUT', path, body)).status).toBe(201);
  }

  async textOf(path: string): Promise<string> {
    return (await this.dav('GET', path)).text();
  }

  async statusOf(path: string): Promise<number> {
    return (await this.dav('HEAD', path)).status;
  }

  /** Opens the page of the folder, or of another one below it, and waits until it is listed. */
  async open(path = ''): Promise<void> {
    await this.page.goto(this.addressOf(path));
    await this.page.locator('footer.page .count').getByText(/\d/).waitFor();
  }

  /** Answers listings from here, and passes all other requests on. */
  async answerListings(answer: { readonly status: number; readonly body: string }): Promise<void> {
    await this.page.route('**/*', (route) =>
      route.request().method() === 'PROPFIND' ? route.fulfill(answer) : route.continue(),
    );
  }

  /** Returns the names in the order of the page. */
  names(): Promise<string[]> {
    return this.page.locator('.item a').allInnerTexts();
  }

  selected(): Promise<string[]> {
    return this.page.locator('.item[aria-selected=true] a').allInnerTexts();
  }

  item(name: string): Locator {
    return this.page.getByRole('row').filter({ has: this.page.getByText(name, { exact: true }) });
  }

  press(name: string): Promise<void> {
    return this.page.getByRole('button', { name, exact: true }).click();
  }

  check(name: string): Promise<void> {
    return this.page.getByRole('checkbox', { name, exact: true }).check();
  }

  dialog(): Locator {
    return this.page.getByRole('dialog');
  }

  upload(...files: readonly { readonly name: string; readonly text: string }[]): Promise<void> {
    const chosen = files.map(({ name, text }) => ({
      name,
      mimeType: 'text/plain',
      buffer: Buffer.from(text),
    }));
    return this.page.getByLabel('Upload files').setInputFiles(chosen);
  }

  /** Returns what axe finds wrong with the page as it is now. */
  async violations(): Promise<string[]> {
    await this.page.evaluate(axe.source);
    return this.page.evaluate(
      "axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))",
    );
  }
}
