import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import axe from 'axe-core';
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { eventually, WAIT_MS } from './eventually.ts';
import { type Program, startProgram, temporaryDirectory } from './program.ts';
import { sharedChromium, sharedDavgate } from './shared.ts';

type ContextOptions = Parameters<Browser['newContext']>[0];

/** A login that the browser uses in place of the program's own. */
interface Visitor {
  /** The address of another davgate. */
  readonly url?: string;
  readonly user: string;
  readonly password: string;
}

interface Screen {
  readonly width: number;
  readonly height?: number;
  readonly colorScheme?: 'light' | 'dark';
}

/** Returns arguments of davgate, after starting what they name. */
type ArgumentsOf = () => Promise<readonly string[]>;

/** The number of folders that the tests of this process have had. */
let folders = 0;

/**
 * Gives each test a folder and a browser profile of its own. `config` is a configuration file with the user `tester` among
 * others, or returns further arguments of davgate, and starts a davgate for the tests of the file; without it they use the
 * one that files share.
 */
export function driveInBrowser(config?: object | ArgumentsOf): DrivePage {
  const drive = new DrivePage(config);
  beforeAll(() => drive.start());
  beforeEach(() => drive.begin());
  afterEach(() => drive.end());
  afterAll(() => drive.stop());
  return drive;
}

/** A browser at a folder of a drive, and the same folder by WebDAV. */
class DrivePage {
  #directory: Awaited<ReturnType<typeof temporaryDirectory>> | undefined;
  #browser: Browser | undefined;
  #program: Program | undefined;
  #context: BrowserContext | undefined;
  #page: Page | undefined;
  readonly #failures: string[] = [];

  constructor(private readonly config: object | ArgumentsOf | undefined) {}

  async start(): Promise<void> {
    this.#directory = await temporaryDirectory();
    this.#browser = await sharedChromium();
    this.#program = this.config === undefined ? await sharedDavgate() : await this.#configured(this.config);
  }

  async #configured(config: object | ArgumentsOf): Promise<Program> {
    const dataDirectory = join(this.directory, 'data');
    if (isArguments(config)) return startProgram({ dataDirectory, args: await config() });
    const file = join(this.directory, 'davgate.json');
    await writeFile(file, JSON.stringify(config));
    return startProgram({ dataDirectory, login: 'configured', args: ['--config', file] });
  }

  async stop(): Promise<void> {
    if (this.config !== undefined) await this.#program?.stop();
    await this.#directory?.remove();
  }

  /** Makes a folder that no other test has, and opens a browser profile with the drive's login. */
  async begin(): Promise<void> {
    folders += 1;
    expect((await this.dav('MKCOL', '')).status).toBe(201);
    await this.use({});
  }

  /** Closes the browser's profile and removes the folder. Fails if the page has thrown. */
  async end(): Promise<void> {
    await this.#context?.close();
    await this.dav('DELETE', '');
    expect(this.#failures.splice(0)).toEqual([]);
  }

  /** The folder of the running test. */
  get folder(): string {
    return `folder ${folders}`;
  }

  /** A directory on the disk, removed after the tests. */
  get directory(): string {
    return started(this.#directory).path;
  }

  get program(): Program {
    return started(this.#program);
  }

  get page(): Page {
    return started(this.#page);
  }

  /** Opens another profile in place of the last one, signed in unless `isSignedIn` is false. */
  async use(
    options: ContextOptions,
    { isSignedIn = true, visitor = this.program }: { isSignedIn?: boolean; visitor?: Visitor } = {},
  ): Promise<void> {
    await this.#context?.close();
    this.#context = await started(this.#browser).newContext(options);
    this.#context.setDefaultTimeout(WAIT_MS);
    if (isSignedIn) await this.signIn(visitor);
    this.#page = await this.#context.newPage();
    this.#page.on('pageerror', ({ message }) => this.#failures.push(message));
  }

  /** Signs in with the browser in another window than the page. */
  async signIn(visitor: Visitor): Promise<void> {
    await started(this.#context).addCookies([await sessionCookie({ url: this.program.url, ...visitor })]);
  }

  /** Gives the page a screen of this size in px, in these colours. */
  async resize({ width, height = 800, colorScheme = 'light' }: Screen): Promise<void> {
    await this.page.setViewportSize({ width, height });
    await this.page.emulateMedia({ colorScheme });
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

  /** Keeps the page from learning of changes that others make, which it would show by itself. Call after `answerListings`. */
  async ignoreChanges(): Promise<void> {
    await this.page.route(/\/.davgate\/api\/changes\b/, (route) => route.abort());
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
  violations(): Promise<string[]> {
    return violationsOf(this.page);
  }
}

/** Returns what axe finds wrong with a page as it is now. */
export async function violationsOf(page: Page): Promise<string[]> {
  if (await page.evaluate<boolean>("typeof axe === 'undefined'")) await page.evaluate(axe.source);
  return page.evaluate(`axe.run({ resultTypes: ['violations'] }).then(({ violations }) =>
    violations.map(({ id, nodes }) => id + ': ' + nodes[0].html))`);
}

/**
 * Answers the first request of a page for `url` with 503 and a `Retry-After`, and passes the others on. Returns when each was
 * sent, in ms since 1970, by the clock of the page, which the test may advance.
 */
export async function refuseOnce(
  page: Page,
  url: string | RegExp,
  retryAfterSeconds: number,
): Promise<readonly number[]> {
  await page.clock.install();
  const sentMs: number[] = [];
  await page.route(url, async (route) => {
    sentMs.push(await page.evaluate<number>('Date.now()'));
    const headers = { 'Retry-After': String(retryAfterSeconds) };
    return sentMs.length === 1 ? route.fulfill({ status: 503, headers, body: 'busy now' }) : route.continue();
  });
  return sentMs;
}

/** Returns the offsets of the parts of files that a page sends from now on. */
export function partOffsets(page: Page): readonly number[] {
  const offsets: number[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.endsWith('/upload-part')) offsets.push(Number(searchParams.get('offset')));
  });
  return offsets;
}

/**
 * Breaks the connection of each part of a file after `bytes` of it have reached davgate, as a bad network does. Returns the
 * offsets of the parts.
 */
export async function breakPartsAfter(
  page: Page,
  bytes: number,
  content: Buffer,
): Promise<readonly number[]> {
  const offsets: number[] = [];
  await page.route(/\/upload-part\?/, async (route) => {
    const offset = Number(new URL(route.request().url()).searchParams.get('offset'));
    offsets.push(offset);
    try {
      await route.fetch({ postData: content.subarray(offset, offset + bytes) });
    } finally {
      await route.abort('connectionreset');
    }
  });
  return offsets;
}

/** Advances the clock of a page until it shows `text`. */
export async function advanceUntil(page: Page, text: string): Promise<void> {
  await eventually(async () => {
    await page.clock.runFor(5_000);
    const shown = await page.locator('body').innerText();
    expect(shown).toContain(text);
  });
}

/** Advances the clock of a page until it has sent the second request. Returns the time between the two, in ms. */
export async function retryDelayMs(page: Page, sentMs: readonly number[]): Promise<number> {
  await eventually(async () => {
    await page.clock.runFor(1_000);
    expect(sentMs.length).toBe(2);
  });
  const [first = 0, second = 0] = sentMs;
  return second - first;
}

function isArguments(config: object | ArgumentsOf): config is ArgumentsOf {
  return typeof config === 'function';
}

/** Signs in as the page does, and returns the cookie of the session. */
async function sessionCookie({ url, user: name, password }: Required<Visitor>): Promise<{
  readonly url: string;
  readonly name: string;
  readonly value: string;
}> {
  const answer = await fetch(new URL('/.davgate/sign-in', url), {
    method: 'POST',
    body: new URLSearchParams({ name, password }),
    redirect: 'manual',
  });
  const [, cookie = '', value = ''] = /^([^=]+)=([^;]+)/.exec(answer.headers.get('set-cookie') ?? '') ?? [];
  return { url, name: cookie, value };
}

function started<T>(part: T | undefined): T {
  if (part === undefined) throw new Error('it exists only while a test runs');
  return part;
}
