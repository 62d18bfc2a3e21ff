import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { violationsOf } from '../support/drive-page.ts';
import { expectSoon, WAIT_MS } from '../support/eventually.ts';
import {
  CLIENT_ID,
  CLIENT_SECRET,
  type IdentityProvider,
  startIdentityProvider,
} from '../support/identity-provider.ts';
import { cheapHash, type Program, startProgram, temporaryDirectory } from '../support/program.ts';
import { sharedChromium } from '../support/shared.ts';
import { startTlsProxy, type TlsProxy } from '../support/tls-proxy.ts';

// Signing in to the web application at an OpenID Connect provider, as a person does it.

const BASE_PATH = '/team/drive';
const CALLBACK = '.davgate/sign-in/oidc/callback';

let directory: Awaited<ReturnType<typeof temporaryDirectory>>;
let provider: IdentityProvider;
let program: Program;
/** The address of the drive. */
let url: string;
let tlsProxy: TlsProxy;
let browser: Browser;
let context: BrowserContext;
let page: Page;

beforeAll(async () => {
  directory = await temporaryDirectory();
  browser = await sharedChromium();
  provider = await startIdentityProvider();
  const config = {
    'oidc-issuer': provider.issuer,
    'oidc-client-id': CLIENT_ID,
    'oidc-client-secret': CLIENT_SECRET,
    'oidc-name': 'Example ID',
    'base-path': BASE_PATH,
    'trusted-proxy': '127.0.0.1',
    drives: { home: {} },
    users: [
      { name: 'ann', drive: 'home' },
      { name: 'tester', drive: 'home', 'password-hash': cheapHash('secret') },
    ],
  };
  const file = join(directory.path, 'davgate.json');
  await writeFile(file, JSON.stringify(config));
  const dataDirectory = join(directory.path, 'data');
  program = await startProgram({ dataDirectory, login: 'configured', args: ['--config', file] });
  url = new URL(`${BASE_PATH}/`, program.url).href;
  tlsProxy = await startTlsProxy(program.url);
  provider.register(url + CALLBACK, tlsProxy.url(url) + CALLBACK);
  expect((await dav('MKCOL', 'Photos/')).status).toBe(201);
  expect((await dav('PUT', 'Photos/a.txt', 'old')).status).toBe(201);
});
afterAll(async () => {
  await tlsProxy.stop();
  await program.stop();
  await provider.stop();
  await directory.remove();
});
beforeEach(() => open({}));
afterEach(() => context.close());

/** Opens a browser profile without a session anywhere. */
async function open(options: Parameters<Browser['newContext']>[0]): Promise<void> {
  context = await browser.newContext(options);
  context.setDefaultTimeout(WAIT_MS);
  page = await context.newPage();
}

function dav(method: string, path: string, body?: string, login = 'tester:secret'): Promise<Response> {
  const headers = { authorization: `Basic ${Buffer.from(login).toString('base64')}` };
  return fetch(url + path, { method, headers, ...(body !== undefined && { body }) });
}

const button = (at = page, name = 'Sign in with Example ID') => at.getByRole('link', { name });
const shown = (at = page) => at.locator('footer.page .count').getByText(/\d/).waitFor();
const names = () => page.locator('.item a').allInnerTexts();
const title = () => page.locator('h1').innerText();
const alert = () => page.getByRole('alert').innerText();

/** Fills in the form of the provider, and agrees to what it passes on. */
async function logInAtProvider(name: string, at = page): Promise<void> {
  await at.getByPlaceholder('Enter any login').fill(name);
  await at.getByPlaceholder('and password').fill('x');
  await at.getByRole('button', { name: 'Sign-in' }).click();
  await at.getByRole('button', { name: 'Continue' }).click();
}

async function signIn(name: string, folder = ''): Promise<void> {
  await page.goto(url + folder);
  await button().click();
  await logInAtProvider(name);
}

test('a user without a password signs in at the provider, reaches the folder that was opened, and makes an app password for WebDAV', async () => {
  await signIn('ann', 'Photos/');
  await shown();
  expect(page.url()).toBe(`${url}Photos/`);
  await expectSoon(names).toEqual(['a.txt']);
  await page.getByText('Signed in as ann').waitFor();
  await page.reload();
  await shown();
  await page.getByRole('button', { name: 'App passwords', exact: true }).click();
  await page.getByRole('dialog').getByLabel('Name of the program or device').fill('phone');
  await page.keyboard.press('Enter');
  const password = await page.getByRole('dialog').locator('pre').innerText();
  expect((await dav('PROPFIND', 'Photos/', undefined, `ann:${password}`)).status).toBe(207);
  expect((await dav('PROPFIND', 'Photos/', undefined, 'ann:')).status).toBe(401);
});

test('signing out shows the sign-in page again, and the button signs in without another login at the provider', async () => {
  await signIn('ann');
  await shown();
  await page.getByRole('button', { name: 'Sign out', exact: true }).click();
  await expectSoon(title).toBe('Sign in');
  await page.goto(`${url}Photos/`);
  await expectSoon(title).toBe('Sign in');
  await button().click();
  await shown();
  expect(page.url()).toBe(`${url}Photos/`);
});

test('a second sign-in of a browser at the provider ends its first session', async () => {
  await signIn('ann');
  await shown();
  const statusWith = async (cookie = '') => (await fetch(url, { headers: { cookie } })).status;
  const sessionCookie = async () => {
    const found = (await context.cookies()).find(({ name }) => name.includes('davgate-session'));
    return `${found?.name}=${found?.value}`;
  };
  const first = await sessionCookie();
  expect(await statusWith(first)).toBe(200);
  await page.goto(`${url}.davgate/sign-in/oidc`);
  await shown();
  expect([await statusWith(first), await statusWith(await sessionCookie())]).toEqual([401, 200]);
});

test('a user with a password signs in with the form beside the button', async () => {
  await page.goto(url);
  await page.getByLabel('User name').fill('tester');
  await page.getByLabel('Password', { exact: true }).fill('secret');
  await page.keyboard.press('Enter');
  await shown();
});

test('an account that is no user of the drive is told so on the sign-in page', async () => {
  await signIn('eve');
  await expectSoon(alert).toBe(
    '“eve” is not a user of this drive. Ask its administrator, or sign out of that account and use another one.',
  );
  await button().waitFor();
  expect(program.output()).toContain('davgate has no user of this name');
});

test('cancelling at the provider leads back to the sign-in page, from which the sign-in begins again', async () => {
  await page.goto(`${url}Photos/`);
  await button().click();
  await page.getByRole('link', { name: 'Cancel' }).click();
  await expectSoon(alert).toBe('The sign-in with Example ID was cancelled.');
  await button().click();
  await logInAtProvider('ann');
  await shown();
  expect(page.url()).toBe(`${url}Photos/`);
});

test('while the provider is away the sign-in page says so, and the button works once it is back', async () => {
  provider.cutTokens();
  await signIn('ann');
  await expectSoon(alert).toBe('Example ID does not answer at the moment. Try again in a few seconds.');
  await provider.stop();
  const answered = page.waitForResponse((answer) => answer.url().includes('/sign-in/oidc'));
  await button().click();
  expect((await answered).status()).toBe(503);
  await provider.restart();
  await button().click();
  await shown();
});

test('behind a proxy that ends TLS the way back is https, and the session’s cookie is Secure', async () => {
  await context.close();
  await open({ ignoreHTTPSErrors: true });
  const secure = tlsProxy.url(url);
  await page.goto(`${secure}Photos/`);
  await button().click();
  await logInAtProvider('ann');
  await shown();
  expect(page.url()).toBe(`${secure}Photos/`);
  const session = (await context.cookies()).find(({ name }) => name.includes('davgate-session'));
  expect(session).toMatchObject({ secure: true, httpOnly: true, sameSite: 'Strict' });
});

test('a text that is saved after the session has ended is stored once the user has signed in at the provider in a new tab', async () => {
  await signIn('ann', 'Photos/');
  await shown();
  await page.getByText('a.txt', { exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Edit' }).click();
  await page.getByRole('textbox', { name: 'Text', exact: true }).waitFor();
  await page.keyboard.type('new ');
  const { csrfToken } = await (await page.request.get(`${url}.davgate/api/drive`)).json();
  const headers = { 'x-csrf-token': csrfToken };
  expect((await page.request.post(`${url}.davgate/sign-out`, { headers })).status()).toBe(204);
  await page.keyboard.press('Control+s');
  const opened = context.waitForEvent('page');
  await page.getByRole('dialog', { name: 'Sign in again' }).waitFor();
  await expectSoon(() => violationsOf(page)).toEqual([]);
  await button().click();
  await shown(await opened);
  await expectSoon(async () => (await dav('GET', 'Photos/a.txt')).text()).toBe('new old');
  await expectSoon(() => page.getByRole('dialog', { name: 'Sign in again' }).count()).toBe(0);
});

test('in German at 390 px in the dark the sign-in page with the button fits, and axe finds no violation', async () => {
  await context.close();
  await open({ locale: 'de-DE', viewport: { width: 390, height: 700 }, colorScheme: 'dark' });
  await page.goto(url);
  await button(page, 'Mit Example ID anmelden').waitFor();
  await page.goto(`${url}${CALLBACK}?state=old&code=old`);
  await expectSoon(alert).toBe(
    'Diese Anmeldung hat zu lange gedauert oder in einem anderen Browser begonnen. Bitte noch einmal versuchen.',
  );
  await expectSoon(() => page.evaluate('document.documentElement.scrollWidth')).toBe(390);
  await expectSoon(() => violationsOf(page)).toEqual([]);
});
