import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { App } from '../../src/service/accounts/apps.ts';
import { addAccount } from '../../src/service/accounts/provision.ts';
import { addApp, addPerson, besideService, FormBrowser, sentBack } from '../support/consent.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { type Answered, rpc, send } from '../support/service-client.ts';

const EMAIL = 'ann@example.org';
const PASSWORD = 'correct horse';
const CALLBACK = 'http://localhost:53682/';
const OVER_HTTPS = 'https://app.example/callback?from=davgate';

const clock = new ManualClock();
let service: TestService;
let app: App;
let secret: string;
let browser: FormBrowser;

beforeAll(async () => {
  service = await startTestService({ clock });
  await addPerson(service, EMAIL, PASSWORD);
});
afterAll(() => service.close());

beforeEach(() => {
  // Each test has its own app, to which nobody has said yes, and a browser that knows nobody.
  ({ app, secret } = addApp(service, { name: 'Photo <Sorter>', redirectUris: [CALLBACK, OVER_HTTPS] }));
  browser = new FormBrowser(service);
});

function asking(more: Record<string, string> = {}): Record<string, string> {
  return { client_id: app.key, response_type: 'code', redirect_uri: CALLBACK, ...more };
}

/** Opens the page, signs in and allows what is asked. */
async function allow(request: Record<string, string>): Promise<Answered> {
  await browser.open(request);
  await browser.signIn(EMAIL, PASSWORD);
  return browser.press('allow');
}

async function codeFor(request: Record<string, string>): Promise<string> {
  return sentBack(await allow(request), request['redirect_uri'] ?? '')['code'] ?? '';
}

function exchange(code: string, more: Record<string, string> = {}): Promise<Answered> {
  const form = {
    grant_type: 'authorization_code',
    code,
    client_id: app.key,
    client_secret: secret,
    redirect_uri: CALLBACK,
    ...more,
  };
  const body = new URLSearchParams(Object.entries(form).filter(([, value]) => value !== ''));
  return send(`${service.url}/oauth2/token`, { method: 'POST', body });
}

interface TokenAnswer {
  readonly access_token: string;
  readonly refresh_token?: string;
}

const tokensIn = (answered: Answered) => answered.json as TokenAnswer;

async function whoIs(token: string): Promise<unknown> {
  const answered = await rpc(service, 'users/get_current_account', null, { token });
  return answered.status === 200 ? (answered.json as { email: string }).email : answered.status;
}

function refresh(refreshToken: string, more: Record<string, string>): Promise<Answered> {
  const form = { grant_type: 'refresh_token', refresh_token: refreshToken, client_id: app.key, ...more };
  return send(`${service.url}/oauth2/token`, { method: 'POST', body: new URLSearchParams(form) });
}

describe('the code flow', () => {
  test('the address of the first version leads to it, which the Go SDK still has', async () => {
    const query = new URLSearchParams(asking({ state: 'a b' }));
    const answer = await fetch(`${service.url}/1/oauth2/authorize?${query}`, { redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, `/oauth2/authorize?${query}`]);
  });

  test('ends with a token for four hours, for the account that signed in', async () => {
    await browser.open(asking({ state: 'a b&c' }));
    expect(browser.text).toContain('Sign in to go on to Photo &lt;Sorter&gt;');
    await browser.signIn('ANN@example.org', PASSWORD);
    expect(browser.text).toContain('Photo &lt;Sorter&gt; wants access to your account');
    expect(browser.text).toContain('Read what is in your files');
    expect(browser.text).toContain('for four hours');
    const back = sentBack(await browser.press('allow'), CALLBACK);
    expect(back).toEqual({ code: expect.stringMatching(/^[\w-]{43}$/), state: 'a b&c' });
    const answered = await exchange(back['code'] ?? '');
    expect(answered.headers.get('cache-control')).toBe('no-store');
    const { access_token: token } = tokensIn(answered);
    const account = (await rpc(service, 'users/get_current_account', null, { token })).json as {
      account_id: string;
      root_info: { home_namespace_id: string };
    };
    expect([answered.status, answered.json]).toEqual([
      200,
      {
        access_token: expect.stringMatching(/^sl\./),
        token_type: 'bearer',
        expires_in: 14_400,
        scope: app.scopes.join(' '),
        uid: account.root_info.home_namespace_id,
        account_id: account.account_id,
      },
    ]);
    expect(await whoIs(token)).toBe(EMAIL);
    await clock.advance(14_400_000);
    expect(await whoIs(token)).toBe(401);
  });

  test('gives a refresh token that lasts when access is to be offline', async () => {
    const code = await codeFor(asking({ token_access_type: 'offline' }));
    expect(browser.text).toContain('until it is revoked');
    const { refresh_token: refreshToken = '' } = tokensIn(await exchange(code));
    await clock.advance(365 * 86_400_000);
    const refreshed = await refresh(refreshToken, { client_secret: secret });
    expect(await whoIs(tokensIn(refreshed).access_token)).toBe(EMAIL);
    expect((await refresh(refreshToken, {})).json).toMatchObject({ error: 'invalid_client' });
  });

  test('without a redirect URI shows the code, good for the app without one', async () => {
    const { redirect_uri: _, ...request } = asking();
    const shown = await allow(request);
    expect([shown.status, shown.headers.get('location')]).toEqual([200, null]);
    const code = /<output[^>]*>([\w-]{43})<\/output>/.exec(shown.text)?.[1] ?? '';
    expect((await exchange(code)).json).toEqual({
      error: 'invalid_grant',
      error_description: 'redirect_uri mismatch',
    });
    expect(await whoIs(tokensIn(await exchange(code, { redirect_uri: '' })).access_token)).toBe(EMAIL);
  });

  test('keeps the query of a redirect URI', async () => {
    const back = await allow(asking({ redirect_uri: OVER_HTTPS, state: '1' }));
    expect(back.headers.get('location')).toMatch(
      /^https:\/\/app\.example\/callback\?from=davgate&code=[\w-]{43}&state=1$/,
    );
  });

  test('takes the app as Basic, and the parameters in the query', async () => {
    const code = await codeFor(asking());
    const query = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
    });
    const authorization = `Basic ${Buffer.from(`${app.key}:${secret}`).toString('base64')}`;
    const answered = await send(`${service.url}/oauth2/token?${query}`, {
      method: 'POST',
      headers: { authorization },
    });
    expect(await whoIs(tokensIn(answered).access_token)).toBe(EMAIL);
  });

  test('takes the words that only say how pages should look, at both ends', async () => {
    const words = { locale: 'de_DE', disable_signup: 'true', require_role: 'personal' };
    const code = await codeFor(asking({ ...words, token_access_type: 'legacy' }));
    const answered = await exchange(code, { locale: 'de_DE' });
    expect(await whoIs(tokensIn(answered).access_token)).toBe(EMAIL);
    expect(tokensIn(answered).refresh_token).toBeUndefined();
  });

  test('says no to the app when its owner does, before and after signing in', async () => {
    const denied = {
      error: 'access_denied',
      error_description: 'The user chose not to give your app access to their account.',
      state: 's',
    };
    await browser.open(asking({ state: 's' }));
    expect(sentBack(await browser.press('cancel'), CALLBACK)).toEqual(denied);
    await browser.open(asking({ state: 's' }));
    await browser.signIn(EMAIL, PASSWORD);
    expect(sentBack(await browser.press('cancel'), CALLBACK)).toEqual(denied);
    const { redirect_uri: _, ...request } = asking();
    await browser.open(request);
    expect((await browser.press('cancel')).text).toContain('Nothing was allowed');
  });
});

describe('a code', () => {
  test('is good for ten minutes', async () => {
    const [late, inTime] = [await codeFor(asking()), await codeFor(asking())];
    await clock.advance(599_999);
    expect((await exchange(inTime)).status).toBe(200);
    await clock.advance(1);
    expect((await exchange(late)).json).toEqual({
      error: 'invalid_grant',
      error_description: "code doesn't exist or has expired",
    });
  });

  test('is good once: using it again ends what it was exchanged for', async () => {
    const code = await codeFor(asking({ token_access_type: 'offline' }));
    const { access_token: token, refresh_token: refreshToken = '' } = tokensIn(await exchange(code));
    expect(await whoIs(token)).toBe(EMAIL);
    expect((await exchange(code)).json).toMatchObject({ error: 'invalid_grant' });
    expect(await whoIs(token)).toBe(401);
    expect((await refresh(refreshToken, { client_secret: secret })).json).toMatchObject({
      error: 'invalid_grant',
    });
  });

  test('used twice at once is good once', async () => {
    const code = await codeFor(asking());
    const answers = await Promise.all([exchange(code), exchange(code)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
  });

  test.each([
    ['another secret', { client_secret: 'x' }, 'invalid_client', 'Invalid client_id or client_secret'],
    ['no secret', { client_secret: '' }, 'invalid_client', 'Invalid client_id or client_secret'],
    ['an unknown app', { client_id: 'x' }, 'invalid_client', 'Invalid client_id or client_secret'],
    ['another redirect URI', { redirect_uri: OVER_HTTPS }, 'invalid_grant', 'redirect_uri mismatch'],
    ['no redirect URI', { redirect_uri: '' }, 'invalid_grant', 'redirect_uri mismatch'],
    [
      'a verifier out of nowhere',
      { code_verifier: 'v'.repeat(43) },
      'invalid_grant',
      'invalid code verifier',
    ],
    ['scope', { scope: 'sharing.read' }, 'invalid_request', 'unknown field "scope"'],
    ['no code', { code: '' }, 'invalid_request', 'missing required field "code"'],
  ])('is not exchanged with %s, and then still with all that is right', async (_, change, error, text) => {
    const code = await codeFor(asking());
    const refused = await exchange(code, change);
    expect([refused.status, refused.json]).toEqual([400, { error, error_description: text }]);
    expect((await exchange(code)).status).toBe(200);
  });

  test('is no good for another app', async () => {
    const code = await codeFor(asking());
    const other = addApp(service, { redirectUris: [CALLBACK] });
    const answered = await exchange(code, { client_id: other.app.key, client_secret: other.secret });
    expect(answered.json).toMatchObject({ error: 'invalid_grant' });
    expect((await exchange(code)).status).toBe(200);
  });
});

describe('PKCE', () => {
  const verifier = 'the~verifier-of_the.test'.padEnd(50, 'x');
  const s256 = createHash('sha256').update(verifier).digest('base64url');

  test.each([
    ['S256', { code_challenge_method: 'S256', code_challenge: s256 }],
    ['plain', { code_challenge_method: 'plain', code_challenge: verifier }],
    ['plain, unsaid', { code_challenge: verifier }],
  ])('%s stands for the secret, and the refresh token needs none either', async (_, challenge) => {
    const code = await codeFor(asking({ token_access_type: 'offline', ...challenge }));
    const wrong = await exchange(code, { client_secret: '', code_verifier: `${verifier}y` });
    expect(wrong.json).toEqual({ error: 'invalid_grant', error_description: 'invalid code verifier' });
    const answered = await exchange(code, { client_secret: '', code_verifier: verifier });
    const { access_token: token, refresh_token: refreshToken = '' } = tokensIn(answered);
    expect(await whoIs(token)).toBe(EMAIL);
    expect((await refresh(refreshToken, {})).status).toBe(200);
    expect((await refresh(refreshToken, { client_secret: secret })).status).toBe(200);
    expect((await refresh(refreshToken, { client_secret: 'x' })).json).toMatchObject({
      error: 'invalid_client',
    });
  });

  test('is not waived by the secret', async () => {
    const code = await codeFor(asking({ code_challenge_method: 'S256', code_challenge: s256 }));
    expect((await exchange(code)).json).toEqual({
      error: 'invalid_grant',
      error_description: 'invalid code verifier',
    });
  });
});

describe('a request', () => {
  test.each<[string, Record<string, string>, string, string]>([
    ['scope', { scope: 'sharing.read' }, 'invalid_request', 'unknown field "scope"'],
    ['a field of nobody', { approval_prompt: 'x' }, 'invalid_request', 'unknown field "approval_prompt"'],
    ['no response_type', { response_type: '' }, 'invalid_request', 'missing required field "response_type"'],
    [
      'another response_type',
      { response_type: 'id_token' },
      'unsupported_response_type',
      'response_type must be "code" or "token"',
    ],
    [
      'another access type',
      { token_access_type: 'eternal' },
      'invalid_request',
      'token_access_type must be "online" or "offline" or "legacy"',
    ],
    [
      'a short challenge',
      { code_challenge: 'short' },
      'invalid_request',
      'code_challenge must be 43 to 128 characters of A-Z, a-z, 0-9, "-", ".", "_" and "~"',
    ],
    [
      'a method without challenge',
      { code_challenge_method: 'S256' },
      'invalid_request',
      'code_challenge must be a SHA-256 in base64url without padding: 43 characters',
    ],
    [
      'another method',
      { code_challenge_method: 'MD5', code_challenge: 'x'.repeat(43) },
      'invalid_request',
      'code_challenge_method must be "plain" or "S256"',
    ],
    [
      'half a yes',
      { force_reapprove: 'yes' },
      'invalid_request',
      'force_reapprove must be "false" or "true"',
    ],
  ])('with %s is sent back with the reason', async (_, change, error, text) => {
    const request = asking({ state: 's', ...change });
    const answered = await browser.open(request);
    expect([answered.status, sentBack(answered, CALLBACK)]).toEqual([
      302,
      { error, error_description: text, state: 's' },
    ]);
    const { redirect_uri: _uri, ...unreturnable } = request;
    const page = await browser.open(unreturnable);
    expect([page.status, page.headers.get('location')]).toEqual([400, null]);
    expect(page.text).toContain(`${error}: ${text.replaceAll('"', '&quot;')}`);
  });

  test('with a state too long is sent back without it', async () => {
    const answered = await browser.open(asking({ state: 's'.repeat(2001) }));
    expect(sentBack(answered, CALLBACK)).toEqual({
      error: 'invalid_request',
      error_description: 'state must be at most 2000 bytes',
    });
  });

  test.each<[string, (request: Record<string, string>) => URLSearchParams | Record<string, string>]>([
    ['no app', ({ client_id, ...request }) => request],
    ['an unknown app', (request) => ({ ...request, client_id: 'x' })],
    ['a redirect URI of somebody else', (request) => ({ ...request, redirect_uri: 'https://evil.example/' })],
    ['one that begins like its own', (request) => ({ ...request, redirect_uri: `${CALLBACK}x` })],
    ['one that differs in case', (request) => ({ ...request, redirect_uri: CALLBACK.toUpperCase() })],
    ['an empty redirect URI', (request) => ({ ...request, redirect_uri: '' })],
    [
      'two redirect URIs',
      (request) => new URLSearchParams([...Object.entries(request), ['redirect_uri', OVER_HTTPS]]),
    ],
    ['two apps', (request) => new URLSearchParams([...Object.entries(request), ['client_id', 'x']])],
  ])('with %s is answered on a page and sends nobody anywhere', async (_, change) => {
    const answered = await browser.open(change(asking({ scope: 'x' })));
    expect([answered.status, answered.headers.get('location')]).toEqual([400, null]);
    expect(answered.text).toContain('This request is not valid');
  });

  test('is asked for with GET or sent as a form', async () => {
    const url = `${service.url}/oauth2/authorize?${new URLSearchParams(asking())}`;
    const answered = await send(url, { method: 'PUT' });
    expect([answered.status, answered.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
  });
});

/** So many accounts that have linked the app. */
function linkUsers(count: number): void {
  besideService(service, ({ accounts, grants }) => {
    for (let user = 0; user < count; user++) {
      const email = `${user}-${app.key}@example.org`;
      const person = { email, givenName: 'N', surname: 'N', mayDeletePermanently: false };
      const { id } = addAccount(accounts, person);
      grants.add(0, { accountId: id, appKey: app.key, scopes: app.scopes });
    }
  });
}

/** The page that somebody who has never linked the app gets after signing in. */
async function asNewcomer(): Promise<{ newcomer: FormBrowser; page: Answered }> {
  const email = `new-${newcomers++}@example.org`;
  await addPerson(service, email, PASSWORD);
  const newcomer = new FormBrowser(service);
  await newcomer.open(asking());
  return { newcomer, page: await newcomer.signIn(email, PASSWORD) };
}

let newcomers = 0;
const LIMIT_REACHED = 'This app has reached its user limit';

describe('an app', () => {
  test.each([
    ['in development', 'development', 50],
    ['with production applied for', 'applied', 500],
  ] as const)('%s has no more than its users', async (_, status, most) => {
    besideService(service, ({ apps }) => apps.change(app.key, { status }));
    linkUsers(most - 1);
    const code = await codeFor(asking());
    // The code is not yet exchanged, but its place is taken.
    const { page } = await asNewcomer();
    expect([page.status, page.text]).toEqual([403, expect.stringContaining(LIMIT_REACHED)]);
    expect((await exchange(code)).status).toBe(200);
    // Who is linked already may link again.
    expect((await exchange(await codeFor(asking()))).status).toBe(200);
    expect((await asNewcomer()).page.text).toContain(LIMIT_REACHED);
  });

  test('takes more as soon as its status allows it', async () => {
    besideService(service, ({ apps }) => apps.change(app.key, { status: 'development' }));
    linkUsers(50);
    expect((await asNewcomer()).page.text).toContain(LIMIT_REACHED);
    besideService(service, ({ apps }) => apps.change(app.key, { status: 'applied' }));
    const { newcomer, page } = await asNewcomer();
    expect(page.text).toContain('wants access to your account');
    expect((await exchange(sentBack(await newcomer.press('allow'), CALLBACK)['code'] ?? '')).status).toBe(
      200,
    );
  });

  test('has one last place for one of two who are asked at once', async () => {
    besideService(service, ({ apps }) => apps.change(app.key, { status: 'development' }));
    linkUsers(49);
    const both = [await asNewcomer(), await asNewcomer()];
    for (const { page } of both) expect(page.text).toContain('wants access to your account');
    const answers = await Promise.all(both.map(({ newcomer }) => newcomer.press('allow')));
    expect(answers.map(({ status }) => status).sort()).toEqual([303, 403]);
  });

  test('gets a place back when a code was not used in time', async () => {
    besideService(service, ({ apps }) => apps.change(app.key, { status: 'development' }));
    linkUsers(49);
    await codeFor(asking());
    expect((await asNewcomer()).page.text).toContain(LIMIT_REACHED);
    await clock.advance(600_000);
    expect((await asNewcomer()).page.text).toContain('wants access to your account');
  });

  test('in production has any number', async () => {
    linkUsers(501);
    expect((await asNewcomer()).page.text).toContain('wants access to your account');
  });
});
