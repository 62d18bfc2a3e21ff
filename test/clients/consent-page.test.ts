import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Dropbox, DropboxAuth } from 'dropbox';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { App } from '../../src/service/accounts/apps.ts';
import { addApp, addPerson } from '../support/consent.ts';
import { expectSoon, WAIT_MS } from '../support/eventually.ts';
import { sdkFetch } from '../support/sdk.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { sharedChromium } from '../support/shared.ts';

const EMAIL = 'ann@example.org';
const PASSWORD = 'correct horse';

let service: TestService;
let chromium: Browser;
let app: App;
/** The app's own site, which is another site than the service's; it answers with `markup`. */
let appSite: Server;
let callback: string;
let markup: string;

let context: BrowserContext;
let page: Page;

beforeAll(async () => {
  appSite = createServer((_request, response) =>
    response.writeHead(200, { 'content-type': 'text/html' }).end(markup),
  );
  appSite.listen(0, '127.0.0.1');
  await once(appSite, 'listening');
  callback = `http://localhost:${(appSite.address() as AddressInfo).port}/callback`;
  service = await startTestService();
  await addPerson(service, EMAIL, PASSWORD);
  ({ app } = await addApp(service, {
    name: 'Photo Sorter',
    redirectUris: [callback],
    scopes: ['account_info.read', 'files.metadata.read', 'files.content.read', 'files.permanent_delete'],
  }));
  chromium = await sharedChromium();
});
afterAll(async () => {
  await service.close();
  appSite.close();
});
beforeEach(async () => {
  markup = '<title>The app</title>';
  // Scripts are off, because no page needs one.
  context = await chromium.newContext({ javaScriptEnabled: false });
  context.setDefaultTimeout(WAIT_MS);
  page = await context.newPage();
});
afterEach(() => context.close());

function address(more: Record<string, string> = {}): string {
  const request = { client_id: app.key, response_type: 'code', redirect_uri: callback, ...more };
  return `${service.url}/oauth2/authorize?${new URLSearchParams(request)}`;
}

async function signIn(password = PASSWORD): Promise<void> {
  await page.getByLabel('Email address').fill(EMAIL);
  await page.getByLabel('Password').fill(password);
  const answered = page.waitForEvent('load');
  // Enter must press the sign-in button, and not another one of the form.
  await page.getByLabel('Password').press('Enter');
  await answered;
}

const button = (name: string) => page.getByRole('button', { name, exact: true });

/** Returns the parameters with which the browser was sent back to the app. */
async function callbackParameters(): Promise<Record<string, string>> {
  await expectSoon(() => page.url()).toContain(`${callback}?`);
  return Object.fromEntries(new URL(page.url()).searchParams);
}

test('signing in and pressing Allow on the consent page leads back to the app with a code and the state', async () => {
  await page.goto(address({ state: 'a/b' }));
  await expectSoon(() => page.title()).toBe('Sign in · davgate');
  await expectSoon(() => page.getByRole('heading').innerText()).toBe('Sign in to go on to Photo Sorter');
  await signIn();
  await expectSoon(() => page.getByRole('heading').innerText()).toBe(
    'Photo Sorter wants access to your account',
  );
  await expectSoon(() => page.getByRole('listitem').allInnerTexts()).toEqual([
    'See your name, your email address and how much space you use',
    'See the names, sizes and dates of your files and folders',
    'Read the content of your files',
    'Permanently delete your files and folders',
  ]);
  await button('Allow').click();
  await expectSoon(() => page.title()).toBe('The app');
  expect(await callbackParameters()).toEqual({ code: expect.stringMatching(/^[\w-]{43}$/), state: 'a/b' });
});

test('the consent page asks for the password once a session, and again after "Not you?"', async () => {
  await page.goto(address());
  await signIn();
  await page.goto(address({ state: '2' }));
  await expectSoon(() => page.getByText(EMAIL).isVisible()).toBe(true);
  await button('Not you?').click();
  await expectSoon(() => page.getByLabel('Password').isVisible()).toBe(true);
  await page.goto(address({ state: '3' }));
  await expectSoon(() => page.getByLabel('Password').isVisible()).toBe(true);
});

test('Cancel on the consent page leads back to the app with access_denied, before and after signing in', async () => {
  await page.goto(address({ state: 's' }));
  await signIn();
  await button('Cancel').click();
  expect(await callbackParameters()).toMatchObject({ error: 'access_denied', state: 's' });
  // Also before signing in.
  await context.clearCookies();
  await page.goto(address({ state: 's' }));
  await button('Cancel').click();
  expect(await callbackParameters()).toMatchObject({ error: 'access_denied', state: 's' });
});

test('the consent page reports a wrong password and then accepts the right one', async () => {
  await page.goto(address());
  await signIn('wrong');
  await expectSoon(() => page.getByRole('alert').innerText()).toBe(
    'There is no account with this address and password.',
  );
  await expectSoon(() => page.getByLabel('Email address').inputValue()).toBe(EMAIL);
  await expectSoon(() => page.getByLabel('Password').inputValue()).toBe('');
  await signIn();
  await expectSoon(() => button('Allow').isVisible()).toBe(true);
});

test('the consent page of a request without a redirect URI shows the code, and a click selects all of it', async () => {
  const request = new URLSearchParams({ client_id: app.key, response_type: 'code' });
  await page.goto(`${service.url}/oauth2/authorize?${request}`);
  await signIn();
  await button('Allow').click();
  await expectSoon(() => page.getByRole('status').innerText()).toMatch(/^[\w-]{43}$/);
  const code = await page.getByRole('status').innerText();
  await page.getByRole('status').click();
  expect((await page.evaluate<string>('String(getSelection())')).trim()).toBe(code);
});

test('the API’s SDK gets tokens through the consent page with PKCE, refreshes them and revokes them', async () => {
  const auth = new DropboxAuth({ clientId: app.key, fetch: sdkFetch(service) });
  const authorizationUrl = await auth.getAuthenticationUrl(
    callback,
    'st',
    'code',
    'offline',
    undefined,
    'none',
    true,
  );
  const { pathname, search } = new URL(String(authorizationUrl));
  await page.goto(`${service.url}${pathname}${search}`);
  await signIn();
  await expectSoon(() => page.getByText('It keeps this access until it is revoked.').isVisible()).toBe(true);
  await button('Allow').click();
  const { code = '', state } = await callbackParameters();
  expect(state).toBe('st');
  const { result } = await auth.getAccessTokenFromCode(callback, code);
  const { access_token: first, refresh_token: refreshToken } = result as Record<string, string>;
  auth.setAccessToken(first ?? '');
  auth.setRefreshToken(refreshToken ?? '');
  const sdk = new Dropbox({ auth, fetch: sdkFetch(service) });
  expect((await sdk.usersGetCurrentAccount()).result.email).toBe(EMAIL);
  await auth.refreshAccessToken();
  expect(auth.getAccessToken()).not.toBe(first);
  expect((await sdk.usersGetCurrentAccount()).result.email).toBe(EMAIL);
  await sdk.authTokenRevoke();
  await expect(auth.refreshAccessToken()).rejects.toMatchObject({
    error: { error: 'invalid_grant', error_description: 'refresh token is invalid or revoked' },
  });
});

test('another site cannot show the consent page in a frame', async () => {
  await page.goto(address());
  await signIn();
  markup = `<iframe src="${address().replaceAll('&', '&amp;')}"></iframe>`;
  await page.goto(callback);
  const [, frame] = page.frames();
  await frame?.waitForLoadState();
  await expectSoon(() => frame?.url()).toBe('chrome-error://chromewebdata/');
});

test('a form of another site cannot press Allow on the consent page, and does not sign the user out', async () => {
  await page.goto(address());
  await signIn();
  markup = `<form method="post" action="${address().replaceAll('&', '&amp;')}">
    <input name="action" value="allow"><input name="form_token" value="x"><button>Win a prize</button></form>`;
  await page.goto(callback);
  await button('Win a prize').click();
  await expectSoon(() => page.url()).toBe(address());
  await expectSoon(() => page.innerText('main')).toContain('Another site sent this form.');
  await page.goto(address());
  await expectSoon(() => button('Allow').isVisible()).toBe(true);
});

test.each([
  ['a small phone', { width: 320, height: 480 }],
  ['a wide screen', { width: 1600, height: 1000 }],
])(
  'the consent page on %s fits the width of the window, in a light and a dark colour scheme',
  async (_, size) => {
    await page.setViewportSize(size);
    const backgrounds = new Set<string>();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await context.clearCookies();
      await page.goto(address());
      await expectToFit(size.width);
      await signIn();
      await expectToFit(size.width);
      backgrounds.add(await page.evaluate<string>('getComputedStyle(document.body).backgroundColor'));
    }
    expect(backgrounds.size).toBe(2);
  },
);

/** Checks that each element lies between the left and the right edge of the window. */
async function expectToFit(width: number): Promise<void> {
  for (const part of await page.locator('main *').all()) {
    const box = await part.boundingBox();
    if (!box) continue;
    expect(box.x).toBeGreaterThanOrEqual(0);
    expect(box.x + box.width).toBeLessThanOrEqual(width);
  }
}
