import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CALLBACK, CodeFlow, EMAIL, OVER_HTTPS, PASSWORD, tokensIn } from '../../support/code-flow.ts';
import { addApp, addPerson, sentBack } from '../../support/consent.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { rpc, send } from '../../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;
let flow: CodeFlow;

beforeAll(async () => {
  service = await startTestService({ clock });
  await addPerson(service, EMAIL, PASSWORD);
});
afterAll(() => service.close());

beforeEach(async () => {
  flow = await CodeFlow.start(service);
});

describe('authorization code flow', () => {
  test('/1/oauth2/authorize redirects to /oauth2/authorize with the same query', async () => {
    const query = new URLSearchParams(flow.asking({ state: 'a b' }));
    const answer = await fetch(`${service.url}/1/oauth2/authorize?${query}`, { redirect: 'manual' });
    // Relative, because a proxy may serve the service below a path.
    expect([answer.status, answer.headers.get('location')]).toEqual([302, `../../oauth2/authorize?${query}`]);
  });

  test('the code flow gives the app a token for four hours for the account that signed in', async () => {
    await flow.browser.open(flow.asking({ state: 'a b&c' }));
    expect(flow.browser.text).toContain('Sign in to go on to Photo &lt;Sorter&gt;');
    await flow.browser.signIn('ANN@example.org', PASSWORD);
    expect(flow.browser.text).toContain('Photo &lt;Sorter&gt; wants access to your account');
    expect(flow.browser.text).toContain('Read the content of your files');
    expect(flow.browser.text).toContain('for four hours');
    const back = sentBack(await flow.browser.press('allow'), CALLBACK);
    expect(back).toEqual({ code: expect.stringMatching(/^[\w-]{43}$/), state: 'a b&c' });
    const answered = await flow.exchange(back['code'] ?? '');
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
        scope: flow.app.scopes.join(' '),
        uid: account.root_info.home_namespace_id,
        account_id: account.account_id,
      },
    ]);
    expect(await flow.whoIs(token)).toBe(EMAIL);
    await clock.advance(14_400_000);
    expect(await flow.whoIs(token)).toBe(401);
  });

  test('the code flow with token_access_type=offline gives a refresh token that works a year later', async () => {
    const code = await flow.codeFor(flow.asking({ token_access_type: 'offline' }));
    expect(flow.browser.text).toContain('until it is revoked');
    const { refresh_token: refreshToken = '' } = tokensIn(await flow.exchange(code));
    await clock.advance(365 * 86_400_000);
    const refreshed = await flow.refresh(refreshToken, { client_secret: flow.secret });
    expect(await flow.whoIs(tokensIn(refreshed).access_token)).toBe(EMAIL);
    expect((await flow.refresh(refreshToken, {})).json).toMatchObject({ error: 'invalid_client' });
  });

  test('the code flow without a redirect URI shows the code, which is exchanged without one', async () => {
    const { redirect_uri: _, ...request } = flow.asking();
    const shown = await flow.allow(request);
    expect([shown.status, shown.headers.get('location')]).toEqual([200, null]);
    const code = /<output[^>]*>([\w-]{43})<\/output>/.exec(shown.text)?.[1] ?? '';
    expect((await flow.exchange(code)).json).toEqual({
      error: 'invalid_grant',
      error_description: 'redirect_uri mismatch',
    });
    expect(await flow.whoIs(tokensIn(await flow.exchange(code, { redirect_uri: '' })).access_token)).toBe(
      EMAIL,
    );
  });

  test('the code flow keeps the query of a redirect URI', async () => {
    const back = await flow.allow(flow.asking({ redirect_uri: OVER_HTTPS, state: '1' }));
    expect(back.headers.get('location')).toMatch(
      /^https:\/\/app\.example\/callback\?from=davgate&code=[\w-]{43}&state=1$/,
    );
  });

  test('the token endpoint takes the app as Basic credentials and the parameters in the query', async () => {
    const code = await flow.codeFor(flow.asking());
    const query = new URLSearchParams({
      grant_type: 'authorization_code',
      code,
      redirect_uri: CALLBACK,
    });
    const authorization = `Basic ${Buffer.from(`${flow.app.key}:${flow.secret}`).toString('base64')}`;
    const answered = await send(`${service.url}/oauth2/token?${query}`, {
      method: 'POST',
      headers: { authorization },
    });
    expect(await flow.whoIs(tokensIn(answered).access_token)).toBe(EMAIL);
  });

  test('the code flow accepts locale, disable_signup and require_role and ignores them', async () => {
    const words = { locale: 'de_DE', disable_signup: 'true', require_role: 'personal' };
    const code = await flow.codeFor(flow.asking({ ...words, token_access_type: 'legacy' }));
    const answered = await flow.exchange(code, { locale: 'de_DE' });
    expect(await flow.whoIs(tokensIn(answered).access_token)).toBe(EMAIL);
    expect(tokensIn(answered).refresh_token).toBeUndefined();
  });

  test('cancelling the code flow answers access_denied, before and after signing in', async () => {
    const denied = {
      error: 'access_denied',
      error_description: 'The user chose not to give your app access to their account.',
      state: 's',
    };
    await flow.browser.open(flow.asking({ state: 's' }));
    expect(sentBack(await flow.browser.press('cancel'), CALLBACK)).toEqual(denied);
    await flow.browser.open(flow.asking({ state: 's' }));
    await flow.browser.signIn(EMAIL, PASSWORD);
    expect(sentBack(await flow.browser.press('cancel'), CALLBACK)).toEqual(denied);
    const { redirect_uri: _, ...request } = flow.asking();
    await flow.browser.open(request);
    expect((await flow.browser.press('cancel')).text).toContain('Nothing was allowed');
  });
});

describe('authorization code', () => {
  test('a code can be exchanged for ten minutes', async () => {
    const [late, inTime] = [await flow.codeFor(flow.asking()), await flow.codeFor(flow.asking())];
    await clock.advance(599_999);
    expect((await flow.exchange(inTime)).status).toBe(200);
    await clock.advance(1);
    expect((await flow.exchange(late)).json).toEqual({
      error: 'invalid_grant',
      error_description: "code doesn't exist or has expired",
    });
  });

  test('a second exchange of a code is refused and revokes the tokens of the first', async () => {
    const code = await flow.codeFor(flow.asking({ token_access_type: 'offline' }));
    const { access_token: token, refresh_token: refreshToken = '' } = tokensIn(await flow.exchange(code));
    expect(await flow.whoIs(token)).toBe(EMAIL);
    expect((await flow.exchange(code)).json).toMatchObject({ error: 'invalid_grant' });
    expect(await flow.whoIs(token)).toBe(401);
    expect((await flow.refresh(refreshToken, { client_secret: flow.secret })).json).toMatchObject({
      error: 'invalid_grant',
    });
  });

  test('a second exchange of a code without the secret, with an invented verifier, leaves the tokens valid', async () => {
    const code = await flow.codeFor(flow.asking());
    const { access_token: token } = tokensIn(await flow.exchange(code));
    const replay = await flow.exchange(code, { client_secret: '', code_verifier: 'v'.repeat(43) });
    expect(replay.json).toMatchObject({ error: 'invalid_grant' });
    expect(await flow.whoIs(token)).toBe(EMAIL);
  });

  test('of two exchanges of a code at once one succeeds', async () => {
    const code = await flow.codeFor(flow.asking());
    const answers = await Promise.all([flow.exchange(code), flow.exchange(code)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 400]);
  });

  test.each([
    ['another secret', { client_secret: 'x' }, 'invalid_client', 'Invalid client_id or client_secret'],
    ['no secret', { client_secret: '' }, 'invalid_client', 'Invalid client_id or client_secret'],
    ['an unknown app', { client_id: 'x' }, 'invalid_client', 'Invalid client_id or client_secret'],
    ['another redirect URI', { redirect_uri: OVER_HTTPS }, 'invalid_grant', 'redirect_uri mismatch'],
    ['no redirect URI', { redirect_uri: '' }, 'invalid_grant', 'redirect_uri mismatch'],
    [
      'a verifier without a challenge',
      { code_verifier: 'v'.repeat(43) },
      'invalid_grant',
      'invalid code verifier',
    ],
    ['scope', { scope: 'sharing.read' }, 'invalid_request', 'unknown field "scope"'],
    ['no code', { code: '' }, 'invalid_request', 'missing required field "code"'],
  ])(
    'a code is not exchanged with %s, and is afterwards with the right parameters',
    async (_, change, error, text) => {
      const code = await flow.codeFor(flow.asking());
      const refused = await flow.exchange(code, change);
      expect([refused.status, refused.json]).toEqual([400, { error, error_description: text }]);
      expect((await flow.exchange(code)).status).toBe(200);
    },
  );

  test('a code is not exchanged by another app', async () => {
    const code = await flow.codeFor(flow.asking());
    const other = await addApp(service, { redirectUris: [CALLBACK] });
    const answered = await flow.exchange(code, { client_id: other.app.key, client_secret: other.secret });
    expect(answered.json).toMatchObject({ error: 'invalid_grant' });
    expect((await flow.exchange(code)).status).toBe(200);
  });
});

describe('PKCE', () => {
  const verifier = 'the~verifier-of_the.test'.padEnd(50, 'x');
  const s256 = createHash('sha256').update(verifier).digest('base64url');

  test.each([
    ['S256', { code_challenge_method: 'S256', code_challenge: s256 }],
    ['plain', { code_challenge_method: 'plain', code_challenge: verifier }],
    ['plain by default', { code_challenge: verifier }],
  ])('PKCE with %s replaces the app secret for the code and for the refresh token', async (_, challenge) => {
    const code = await flow.codeFor(flow.asking({ token_access_type: 'offline', ...challenge }));
    const wrong = await flow.exchange(code, { client_secret: '', code_verifier: `${verifier}y` });
    expect(wrong.json).toEqual({ error: 'invalid_grant', error_description: 'invalid code verifier' });
    const answered = await flow.exchange(code, { client_secret: '', code_verifier: verifier });
    const { access_token: token, refresh_token: refreshToken = '' } = tokensIn(answered);
    expect(await flow.whoIs(token)).toBe(EMAIL);
    expect((await flow.refresh(refreshToken, {})).status).toBe(200);
    expect((await flow.refresh(refreshToken, { client_secret: flow.secret })).status).toBe(200);
    expect((await flow.refresh(refreshToken, { client_secret: 'x' })).json).toMatchObject({
      error: 'invalid_client',
    });
  });

  test('a second exchange of a PKCE code revokes its tokens only with the right verifier', async () => {
    const challenge = { code_challenge_method: 'S256', code_challenge: s256 };
    const code = await flow.codeFor(flow.asking(challenge));
    const right = { client_secret: '', code_verifier: verifier };
    const { access_token: token } = tokensIn(await flow.exchange(code, right));
    const wrong = await flow.exchange(code, { client_secret: '', code_verifier: `${verifier}y` });
    expect(wrong.json).toMatchObject({ error: 'invalid_grant' });
    expect(await flow.whoIs(token)).toBe(EMAIL);
    expect((await flow.exchange(code, right)).json).toMatchObject({ error: 'invalid_grant' });
    expect(await flow.whoIs(token)).toBe(401);
  });

  test('a PKCE code is not exchanged with the app secret and no verifier', async () => {
    const code = await flow.codeFor(flow.asking({ code_challenge_method: 'S256', code_challenge: s256 }));
    expect((await flow.exchange(code)).json).toEqual({
      error: 'invalid_grant',
      error_description: 'invalid code verifier',
    });
  });
});
