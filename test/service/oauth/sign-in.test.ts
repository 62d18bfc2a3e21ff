import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { App } from '../../../src/service/accounts/apps.ts';
import { addApp, addPerson, besideService, FormBrowser, sentBack } from '../../support/consent.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { passedOn } from '../../support/passed-on.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { type Answered, rpc, send } from '../../support/service-client.ts';

const PASSWORD = 'correct horse';
const CALLBACK = 'http://127.0.0.1:9/callback';
const OVER_HTTPS = 'https://app.example/callback';

const clock = new ManualClock();
let service: TestService;
let app: App;
let email: string;
let browser: FormBrowser;
let people = 0;

beforeAll(async () => {
  service = await startTestService({ clock });
});
afterAll(() => service.close());

// Each test has its own app and account, so that wrong passwords of one do not delay another.
beforeEach(async () => {
  ({ app } = await addApp(service, { redirectUris: [CALLBACK, OVER_HTTPS] }));
  email = `person${people++}@example.org`;
  await addPerson(service, email, PASSWORD);
  browser = new FormBrowser(service);
});

function asking(more: Record<string, string> = {}): Record<string, string> {
  return { client_id: app.key, response_type: 'code', redirect_uri: CALLBACK, ...more };
}

const asksForPassword = ({ text }: Answered) => text.includes('type="password"');
const asksForConsent = ({ text }: Answered) => text.includes('value="allow"');

describe('sign-in', () => {
  test.each([
    ['a wrong password', () => email, 'wrong'],
    ['no password', () => email, ''],
    ['an unknown address', () => 'nobody@example.org', PASSWORD],
  ])('a sign-in with %s is refused with the same message', async (_, address, password) => {
    await browser.open(asking());
    const answered = await browser.signIn(address(), password);
    expect([answered.status, asksForPassword(answered)]).toEqual([403, true]);
    expect(answered.text).toContain('There is no account with this address and password.');
    expect(asksForPassword(await browser.open(asking()))).toBe(true);
  });

  test('a sign-in to an account without a password is refused', async () => {
    await besideService(service, ({ accounts }) =>
      accounts.add(
        { email: `none-${email}`, givenName: '', surname: '', mayDeletePermanently: false, limitBytes: 0 },
        `9${people}`,
      ),
    );
    await browser.open(asking());
    expect((await browser.signIn(`none-${email}`, '')).status).toBe(403);
  });

  test('wrong passwords delay further sign-ins, also for addresses without an account', async () => {
    await browser.open(asking());
    for (const address of [email, `nobody-${email}`]) {
      for (const waitMs of [0, 0, 0, 0, 1_000, 2_000, 4_000, 8_000]) {
        await clock.advance(waitMs);
        expect((await browser.signIn(address, 'wrong')).status).toBe(403);
      }
      // The right password is refused too, otherwise the answer would reveal it.
      const answered = await browser.signIn(address, PASSWORD);
      expect([answered.status, answered.headers.get('retry-after')]).toEqual([429, '16']);
      expect(answered.text).toContain('Too many attempts. Try again in 16 seconds.');
    }
    await addPerson(service, `other-${email}`, PASSWORD);
    expect(asksForConsent(await browser.signIn(`other-${email}`, PASSWORD))).toBe(true);
    await clock.advance(60_000);
    browser.forgetCookies();
    await browser.open(asking());
    expect(asksForConsent(await browser.signIn(email, PASSWORD))).toBe(true);
  });

  test('a sign-in lasts eight hours', async () => {
    await browser.open(asking());
    await browser.signIn(email, PASSWORD);
    await clock.advance(8 * 3_600_000 - 1);
    expect(asksForConsent(await browser.open(asking()))).toBe(true);
    await clock.advance(1);
    expect(asksForPassword(await browser.open(asking()))).toBe(true);
  });

  test('force_reauthentication asks for the password once for each request', async () => {
    await browser.open(asking());
    await browser.signIn(email, PASSWORD);
    const request = asking({ force_reauthentication: 'true', state: '1' });
    expect(asksForPassword(await browser.open(request))).toBe(true);
    expect(asksForConsent(await browser.signIn(email, PASSWORD))).toBe(true);
    await browser.press('allow');
    for (const next of [request, { ...request, state: '2' }])
      expect(asksForPassword(await browser.open(next))).toBe(true);
  });

  test('force_reauthentication is not bypassed by the consent form with the token of the sign-in page', async () => {
    await browser.open(asking());
    await browser.signIn(email, PASSWORD);
    const request = asking({ force_reauthentication: 'true' });
    expect(asksForPassword(await browser.open(request))).toBe(true);
    const answered = await browser.press('allow');
    expect([answered.status, answered.headers.get('location'), asksForPassword(answered)]).toEqual([
      403,
      null,
      true,
    ]);
    await browser.signIn(email, PASSWORD);
    expect(sentBack(await browser.press('allow'), CALLBACK)).toHaveProperty('code');
  });

  test('a sign-in replaces the cookie of the browser by a new one with HttpOnly', async () => {
    const url = `${service.url}/oauth2/authorize?${new URLSearchParams(asking())}`;
    const [before = ''] = (await send(url, {})).headers.getSetCookie();
    expect(before).toMatch(/^davgate-visit=[\w-]{43}; HttpOnly; SameSite=Lax$/);
    const cookie = before.split(';')[0] ?? '';
    const page = await send(url, { headers: { cookie } });
    const token = /name="form_token" value="([^"]+)"/.exec(page.text)?.[1] ?? '';
    const body = new URLSearchParams({ form_token: token, action: 'sign-in', email, password: PASSWORD });
    const signedIn = await send(url, { method: 'POST', headers: { cookie }, body });
    const [after = ''] = signedIn.headers.getSetCookie();
    expect([signedIn.status, signedIn.headers.get('location')]).toEqual([
      303,
      `?${new URLSearchParams(asking())}`,
    ]);
    expect(after.split(';')[0]).not.toBe(cookie);
    expect(asksForPassword(await send(url, { headers: { cookie } }))).toBe(true);
    expect(asksForConsent(await send(url, { headers: { cookie: after } }))).toBe(true);
  });

  test('the sign-in cookie of a service with an https publicUrl is Secure', async () => {
    const behind = await startTestService({ clock, publicUrl: 'https://files.example' });
    try {
      const request = new URLSearchParams({ client_id: behind.appKey, response_type: 'code' });
      const { headers } = await send(`${behind.url}/oauth2/authorize?${request}`, {});
      expect(headers.getSetCookie()[0]).toContain('; Secure');
    } finally {
      await behind.close();
    }
  });
});

test.each(['/oauth2/authorize', '/1/oauth2/authorize'])(
  'a browser signs in at %s behind a proxy that serves the service below a path',
  async (path) => {
    const pass = async (request: IncomingMessage, response: ServerResponse) => {
      request.url = request.url?.replace(/^\/files/, '');
      const answer = await passedOn(request, service.url);
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      await pipeline(answer, response);
    };
    const proxy = createServer((request, response) => {
      // A browser that goes outside of the path reaches other programs.
      if (!request.url?.startsWith('/files/')) response.writeHead(404).end();
      else pass(request, response).catch(() => response.destroy());
    });
    proxy.listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    try {
      const { port } = proxy.address() as AddressInfo;
      const behind = new FormBrowser({ url: `http://127.0.0.1:${port}/files` });
      await behind.open(asking(), path);
      expect(asksForConsent(await behind.signIn(email, PASSWORD))).toBe(true);
      expect(sentBack(await behind.press('allow'), CALLBACK)).toHaveProperty('code');
    } finally {
      proxy.close();
      proxy.closeAllConnections();
    }
  },
);

describe('forms of the consent page', () => {
  test('a form without a valid form token is refused', async () => {
    await browser.open(asking());
    expect((await browser.press('sign-in', { email, password: PASSWORD, form_token: 'x' })).status).toBe(403);
    expect(asksForPassword(await browser.open(asking()))).toBe(true);
    await browser.signIn(email, PASSWORD);
    for (const form_token of ['', 'x', 'x'.repeat(43)]) {
      const answered = await browser.press('allow', { form_token });
      expect([answered.status, answered.headers.get('location')]).toEqual([403, null]);
      expect(answered.text).toContain('Try again.');
    }
    expect(sentBack(await browser.press('allow'), CALLBACK)).toHaveProperty('code');
  });

  test('a form with the token of another request or another browser is refused', async () => {
    const tokenOn = ({ text }: Answered) => /name="form_token" value="([^"]+)"/.exec(text)?.[1] ?? '';
    await browser.open(asking());
    const otherRequest = tokenOn(await browser.signIn(email, PASSWORD));
    const other = new FormBrowser(service);
    await other.open(asking({ state: '2' }));
    await addPerson(service, `other-${email}`, PASSWORD);
    const otherBrowser = tokenOn(await other.signIn(`other-${email}`, PASSWORD));
    await browser.open(asking({ state: '2' }));
    for (const form_token of [otherRequest, otherBrowser])
      expect((await browser.press('allow', { form_token })).status).toBe(403);
  });

  test('a sign-out form sent from another site is refused and clears no cookie', async () => {
    const url = `${service.url}/oauth2/authorize?${new URLSearchParams(asking())}`;
    // Browsers send no cookie across sites, and this header.
    const headers = { 'sec-fetch-site': 'cross-site' };
    const body = new URLSearchParams({ action: 'sign-out' });
    const answered = await send(url, { method: 'POST', headers, body });
    expect([answered.status, answered.headers.getSetCookie()]).toEqual([403, []]);
    expect(answered.text).toContain('Nothing was done.');
  });

  test('a consent form sent after the sign-in expired asks for the password', async () => {
    await browser.open(asking());
    await browser.signIn(email, PASSWORD);
    await clock.advance(8 * 3_600_000);
    const answered = await browser.press('allow');
    expect([answered.status, asksForPassword(answered)]).toEqual([403, true]);
  });

  test('a form of more than its size limit is refused', async () => {
    await browser.open(asking());
    const form = { email, password: PASSWORD, padding: 'x'.repeat(20_000) };
    const answered = await browser.press('sign-in', form);
    expect([answered.status, asksForPassword(answered)]).toEqual([403, true]);
  });
});

test('each page of the code flow refuses frames, caches, referrers and other origins', async () => {
  const pages = [
    await browser.open({ client_id: 'x' }),
    await browser.open(asking()),
    await browser.signIn(email, PASSWORD),
  ];
  const { redirect_uri: _, ...request } = asking();
  await browser.open(request);
  pages.push(await browser.press('allow'));
  for (const { headers } of pages) {
    expect(headers.get('content-security-policy')).toContain("default-src 'none'");
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('referrer-policy')).toBe('no-referrer');
    expect(headers.get('access-control-allow-origin')).toBe(null);
  }
});

describe('consent that was given before', () => {
  async function allowOnce(redirectUri: string, more: Record<string, string> = {}): Promise<void> {
    const request = asking({ redirect_uri: redirectUri, ...more });
    await browser.open(request);
    await browser.signIn(email, PASSWORD);
    const { code = '' } = sentBack(await browser.press('allow'), redirectUri);
    await besideService(service, ({ codes }) =>
      codes.exchange(clock.now(), { code, appKey: app.key, hasSecret: true, redirectUri }),
    );
  }

  test('an allowed app with an https redirect URI is not asked about again', async () => {
    await allowOnce(OVER_HTTPS);
    const answered = await browser.open(asking({ redirect_uri: OVER_HTTPS, state: 's' }));
    expect(sentBack(answered, OVER_HTTPS)).toEqual({ code: expect.any(String), state: 's' });
  });

  test('an app allowed for four hours is asked about again for offline access, and not the reverse', async () => {
    const lasting = { token_access_type: 'offline' };
    await allowOnce(OVER_HTTPS);
    const answered = await browser.open(asking({ redirect_uri: OVER_HTTPS, ...lasting }));
    expect([asksForConsent(answered), answered.text.includes('until it is revoked')]).toEqual([true, true]);
    await allowOnce(OVER_HTTPS, { ...lasting, force_reapprove: 'true' });
    for (const more of [lasting, {}]) {
      const again = await browser.open(asking({ redirect_uri: OVER_HTTPS, ...more }));
      expect(sentBack(again, OVER_HTTPS)).toHaveProperty('code');
    }
  });

  test('an allowed app is asked about again with force_reapprove, a loopback redirect URI or revoked grants', async () => {
    await allowOnce(OVER_HTTPS);
    const again = asking({ redirect_uri: OVER_HTTPS, force_reapprove: 'true' });
    expect(asksForConsent(await browser.open(again))).toBe(true);
    expect(asksForConsent(await browser.open(asking()))).toBe(true);
    await besideService(service, ({ apps }) => apps.change(app.key, { scopes: app.scopes.slice(1) }));
    const answered = await browser.open(asking({ redirect_uri: OVER_HTTPS }));
    expect(sentBack(answered, OVER_HTTPS)).toHaveProperty('code');
    await besideService(service, ({ apps }) => apps.change(app.key, { scopes: app.scopes }));
    await besideService(service, async ({ grants }) => {
      for (const { number, appKey } of await grants.all())
        if (appKey === app.key) await grants.revoke(number);
    });
    expect(asksForConsent(await browser.open(asking({ redirect_uri: OVER_HTTPS })))).toBe(true);
  });
});

test('an authorization request treats empty parameters as absent', async () => {
  const request = asking({ scope: '', state: '', code_challenge: '', token_access_type: '' });
  await browser.open(request);
  await browser.signIn(email, PASSWORD);
  expect(sentBack(await browser.press('allow'), CALLBACK)).toEqual({ code: expect.any(String) });
  const refused = await browser.open({ ...request, locale: 'en', response_type: 'x' });
  expect(Object.keys(sentBack(refused, CALLBACK))).toEqual(['error', 'error_description']);
});

describe('implicit flow, response_type=token', () => {
  test('response_type=token answers a token in the fragment', async () => {
    await browser.open(asking({ response_type: 'token', state: 's' }));
    await browser.signIn(email, PASSWORD);
    const location = (await browser.press('allow')).headers.get('location') ?? '';
    expect(location.startsWith(`${CALLBACK}#`)).toBe(true);
    const fields = Object.fromEntries(new URLSearchParams(location.slice(CALLBACK.length + 1)));
    const account = await rpc(service, 'users/get_current_account', null, {
      token: fields['access_token'] ?? '',
    });
    const { account_id, root_info } = account.json as {
      account_id: string;
      root_info: { home_namespace_id: string };
    };
    expect(fields).toEqual({
      access_token: expect.stringMatching(/^sl\./),
      token_type: 'bearer',
      expires_in: '14400',
      scope: app.scopes.join(' '),
      account_id,
      uid: root_info.home_namespace_id,
      state: 's',
    });
  });

  test('response_type=token answers errors in the fragment', async () => {
    await browser.open(asking({ response_type: 'token', state: 's' }));
    expect(sentBack(await browser.press('cancel'), `${CALLBACK}`)).toMatchObject({ error: 'access_denied' });
    const refused = await browser.open(asking({ response_type: 'token', scope: 'x' }));
    expect(refused.headers.get('location')).toBe(
      `${CALLBACK}#error=invalid_request&error_description=unknown+field+%22scope%22`,
    );
  });

  const ONLY_CODE = 'code_challenge and token_access_type "offline" need response_type "code"';

  test.each<[string, Record<string, string>, string]>([
    ['for a refresh token', { token_access_type: 'offline' }, ONLY_CODE],
    ['with PKCE', { code_challenge: 'x'.repeat(43) }, ONLY_CODE],
  ])(
    'response_type=token %s redirects with invalid_request in the fragment',
    async (_, change, error_description) => {
      const answered = await browser.open(asking({ response_type: 'token', state: 's', ...change }));
      const fields = new URLSearchParams({ error: 'invalid_request', error_description, state: 's' });
      expect([answered.status, answered.headers.get('location')]).toEqual([302, `${CALLBACK}#${fields}`]);
    },
  );

  test('response_type=token without a redirect URI answers a page with invalid_request and does not redirect', async () => {
    const { redirect_uri: _uri, ...request } = asking({ response_type: 'token' });
    const answered = await browser.open(request);
    expect([answered.status, answered.headers.get('location')]).toEqual([400, null]);
    expect(answered.text).toContain('invalid_request: missing required field &quot;redirect_uri&quot;');
  });
});
