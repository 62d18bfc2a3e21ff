import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ANN, listening } from '../../support/listening.ts';
import {
  type BegunSignIn,
  EVE,
  nameIn,
  type OidcGateway,
  oidcGateway,
  SECRET,
} from '../../support/oidc-gateway.ts';

import { OTHER_KEY } from '../../support/token-issuer.ts';

// Sign-ins of browsers at an OpenID Connect provider, whose answers are valid or forged.

const BY_SECRET = { alg: 'HS256', key: Buffer.from(SECRET.padEnd(32)) };
const ONLY_SECRET = { id_token_signing_alg_values_supported: ['HS256'] };

describe('the way to the provider', () => {
  test('the button leads there with PKCE, a state and a nonce, and a cookie ties the sign-in to the browser', async () => {
    const { begin, issuer } = await oidcGateway();
    const { status, location, headers } = await begin();
    expect(status).toBe(303);
    expect(location.href).toMatch(`${issuer.issuer}/authorize?`);
    expect(Object.fromEntries(location.searchParams)).toEqual({
      client_id: 'davgate',
      response_type: 'code',
      scope: 'openid profile',
      redirect_uri: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/\.davgate\/sign-in\/oidc\/callback$/),
      state: expect.stringMatching(/^[\w-]{43}$/),
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
    });
    expect(headers.get('set-cookie')).toMatch(
      /^davgate-oidc-\d+=[\w-]{43}; Path=\/; Max-Age=600; HttpOnly; SameSite=Lax$/,
    );
    expect(headers.get('cache-control')).toBe('no-store');
  });

  test('the address for the way back is that of the browser, also behind a proxy, or below the public URL', async () => {
    const { begin } = await oidcGateway();
    const forwarded = {
      'x-forwarded-proto': 'https',
      'x-forwarded-host': 'drive.example',
      'x-forwarded-prefix': '/cloud',
    };
    const { location, headers } = await begin('/', forwarded);
    const callback = '/.davgate/sign-in/oidc/callback';
    expect(location.searchParams.get('redirect_uri')).toBe(`https://drive.example/cloud${callback}`);
    expect(headers.get('set-cookie')).toMatch(/^__Host-davgate-oidc-\d+=.*; SameSite=Lax; Secure$/);
    const known = await oidcGateway({ publicUrl: 'https://files.example/drive' });
    expect((await known.begin()).location.searchParams.get('redirect_uri')).toBe(
      `https://files.example/drive${callback}`,
    );
  });

  test('nothing is asked of the provider before the first sign-in, and it describes itself once', async () => {
    const { begin, get, issuer } = await oidcGateway();
    await get('/.davgate/sign-in');
    expect(issuer.asked).toEqual([]);
    await Promise.all([begin(), begin()]);
    expect(issuer.asked).toEqual(['GET /.well-known/openid-configuration']);
  });
});

describe('the way back', () => {
  test('the user is signed in, and a page leads on to the address that was asked for', async () => {
    const all = await oidcGateway();
    const { begin, finish, get, issuer, lines } = all;
    const { state, nonce, cookie, location } = await begin();
    issuer.claims = { preferred_username: 'eve', nonce };
    const answer = await finish({ state, code: 'the-code' }, cookie);
    expect(answer.status).toBe(200);
    expect(answer.text).toContain('<meta http-equiv="refresh" content="0; url=/Photos/">');
    expect(answer.headers.get('set-cookie')).toMatch(/^davgate-session-\d+=.*; SameSite=Strict$/);
    expect(JSON.parse((await get('/', { cookie: answer.cookie })).text)).toEqual({
      user: EVE,
      providerName: 'Example ID',
    });
    const { authorization, form } = issuer.tokenRequest;
    expect(form.get('code')).toBe('the-code');
    expect(form.get('redirect_uri')).toBe(location.searchParams.get('redirect_uri'));
    const challenge = createHash('sha256')
      .update(form.get('code_verifier') ?? '')
      .digest('base64url');
    expect(challenge).toBe(location.searchParams.get('code_challenge'));
    expect(authorization).toBe(`Basic ${Buffer.from('davgate:the+secret%3A+1').toString('base64')}`);
    expect(lines).toContainEqual({
      level: 'info',
      event: 'signed in',
      fields: { address: '127.0.0.1', user: 'eve', at: 'Example ID' },
    });
    for (const secret of [
      'the-code',
      'the secret',
      'an access token',
      state,
      nonce,
      cookie.split('=')[1] ?? '',
    ])
      expect(JSON.stringify(lines)).not.toContain(secret);
  });

  test.each([
    ['in the form, if the provider takes it only there', SECRET, ['client_secret_post'], SECRET],
    ['not at all, if davgate is a public client', undefined, undefined, null],
  ])('the client secret is sent %s', async (_, clientSecret, ways, sent) => {
    const { issuer, signIn } = await oidcGateway({ client: { clientSecret } });
    issuer.description = { token_endpoint_auth_methods_supported: ways };
    expect((await signIn()).status).toBe(200);
    const { authorization, form } = issuer.tokenRequest;
    expect([authorization, form.get('client_secret'), form.get('client_id')]).toEqual([
      undefined,
      sent,
      'davgate',
    ]);
  });

  test.each([
    ['of another key', { signature: { alg: 'RS256', key: OTHER_KEY } }, {}, /signature/],
    [
      'signed with the client secret',
      { signature: BY_SECRET, description: ONLY_SECRET },
      {},
      /unsupported JWS algorithm/,
    ],
    ['signed in a way that the provider does not name', { signature: BY_SECRET }, {}, /unexpected JWT "alg"/],
    ['with another nonce', {}, { nonce: 'another' }, /nonce/],
    ['without a nonce', {}, { nonce: undefined }, /nonce/],
    ['for another client', {}, { aud: 'another' }, /aud/],
    ['of another issuer', {}, { iss: 'https://another.example' }, /iss/],
    ['that has expired', {}, { exp: 1_700_000_000 }, /exp/],
  ])('a token %s signs nobody in', async (_, changes, claims, reason) => {
    const { issuer, signIn, lines } = await oidcGateway();
    Object.assign(issuer, changes);
    const { status, text, cookie } = await signIn(claims);
    expect([status, cookie]).toEqual([502, '']);
    expect(text).toContain('The sign-in with Example ID has failed.');
    const problem = lines.find(({ level }) => level === 'error');
    expect(problem?.fields['reason']).toMatch(reason);
    expect(JSON.stringify(lines)).not.toMatch(/the-code|eyJ|the secret/);
  });

  test.each<
    readonly [
      string,
      (way: BegunSignIn, all: OidcGateway) => Promise<readonly [string, string]> | [string, string],
    ]
  >([
    ['with an unknown state', ({ cookie }) => ['A'.repeat(43), cookie]],
    ['without a state', ({ cookie }) => ['', cookie]],
    ['without the cookie', ({ state }) => [state, '']],
    ['in another browser', async ({ state }, { begin }) => [state, (await begin()).cookie]],
    [
      'after ten minutes',
      async ({ state, cookie }, { clock }) => {
        await clock.advance(10 * 60_000);
        return [state, cookie];
      },
    ],
    [
      'a second time',
      async ({ state, cookie }, { finish }) => {
        await finish({ state, error: 'access_denied' }, cookie);
        return [state, cookie];
      },
    ],
  ])('a browser that comes back %s is asked to try again, and no code is exchanged', async (_, change) => {
    const all = await oidcGateway();
    const [state, cookie] = await change(await all.begin(), all);
    const answer = await all.finish({ state, code: 'the-code' }, cookie);
    expect([answer.status, answer.cookie]).toEqual([400, '']);
    expect(answer.text).toContain('This sign-in took too long, or began in another browser.');
    expect(all.issuer.asked).not.toContain('POST /token');
  });

  test('sign-ins that began in two tabs of a browser both end well', async () => {
    const { begin, finish, issuer } = await oidcGateway();
    const first = await begin();
    const second = await begin('/', { cookie: first.cookie });
    for (const { state, nonce } of [first, second]) {
      issuer.claims = { ...issuer.claims, nonce };
      expect((await finish({ state, code: 'x' }, second.cookie)).status).toBe(200);
    }
  });

  test.each([
    ['another site', 'https://evil.example/'],
    ['another host', '//evil.example/'],
    ['an endlessly long path', `/${'a'.repeat(1_000)}`],
    ['the way to the provider', '/.davgate/sign-in/oidc'],
  ])('a link that wants to go on to %s leads to the root of the drive', async (_, wanted) => {
    const { begin, finish, issuer } = await oidcGateway();
    const { state, nonce, cookie } = await begin(wanted);
    issuer.claims = { ...issuer.claims, nonce };
    expect((await finish({ state, code: 'x' }, cookie)).text).toContain('content="0; url=/"');
  });
});

describe('users', () => {
  test('an unknown user is refused with the name, which is escaped', async () => {
    const { signIn, lines } = await oidcGateway();
    const { status, text, cookie } = await signIn({ preferred_username: '<b>mallory' });
    expect([status, cookie]).toEqual([403, '']);
    expect(text).toContain('“&lt;b&gt;mallory” is not a user of this drive.');
    expect(lines).toContainEqual({
      level: 'warn',
      event: 'sign-in failed',
      fields: { address: '127.0.0.1', user: '<b>mallory', reason: 'davgate has no user of this name' },
    });
  });

  test('with new users allowed, everyone gets in, and a known user keeps the own drives', async () => {
    const all = await oidcGateway({ newUser: (name) => ({ name, grants: [{ drive: 'first' }] }) });
    const userOf = async (name: string) => {
      const { cookie } = await all.signIn({ preferred_username: name });
      return JSON.parse((await all.get('/', { cookie })).text).user;
    };
    expect(await userOf('mallory')).toEqual({ name: 'mallory', grants: [{ drive: 'first' }] });
    expect(await userOf('eve')).toEqual(EVE);
  });

  test('a claim that is not in the token is taken from the userinfo of the same subject', async () => {
    const all = await oidcGateway();
    all.issuer.userInfo = { preferred_username: 'eve' };
    const { cookie } = await all.signIn({ preferred_username: undefined });
    expect(await nameIn(all, cookie)).toBe('eve');
    all.issuer.userInfo = { preferred_username: 'eve', sub: 'another' };
    expect((await all.signIn({ preferred_username: undefined })).status).toBe(502);
  });

  test.each([
    ['missing', {}, 'the claim preferred_username is missing; choose another with oidc-user-claim'],
    ['a list', { preferred_username: ['ann'] }, 'the claim preferred_username is not a user name'],
    ['empty', { preferred_username: '' }, 'is not a user name'],
    ['a name with a colon', { preferred_username: 'a:b' }, 'is not a user name'],
  ])('a claim that is %s signs nobody in, and the log says what to change', async (_, claims, reason) => {
    const { signIn, lines } = await oidcGateway({ newUser: (name) => ({ ...EVE, name }) });
    const { status } = await signIn({ preferred_username: undefined, ...claims });
    expect(status).toBe(502);
    expect(lines.find(({ level }) => level === 'error')?.fields['reason']).toContain(reason);
  });

  test.each([
    [true, 200],
    [undefined, 200],
    [false, 403],
    ['false', 403],
  ])('an e-mail address that is verified: %s is answered %i', async (isVerified, status) => {
    const { signIn } = await oidcGateway({
      client: { userClaim: 'email' },
      users: [{ ...EVE, name: 'e@x.example' }],
    });
    const answer = await signIn({ email: 'e@x.example', email_verified: isVerified });
    expect(answer.status).toBe(status);
    if (status === 403) expect(answer.text).toContain('Your e-mail address is not confirmed at Example ID.');
  });
});

describe('an e-mail address as the user name', () => {
  const address = 'e@x.example';

  test.each<readonly [string, number, object, object]>([
    ['names in the token and calls unverified beside it', 403, { email: address }, { email_verified: false }],
    ['names in the token and calls verified beside it', 200, { email: address }, { email_verified: true }],
    ['names beside the token alone, as unverified', 403, {}, { email: address, email_verified: false }],
    ['calls unverified in the token alone', 403, { email_verified: false }, { email: address }],
  ])('an address that the provider %s is answered %i', async (_, status, claims, userInfo) => {
    const { issuer, signIn } = await oidcGateway({
      client: { userClaim: 'email' },
      users: [{ ...EVE, name: address }],
    });
    issuer.userInfo = userInfo;
    expect((await signIn(claims)).status).toBe(status);
  });
});

describe('a flood of sign-ins', () => {
  test('a network that begins too many loses its own oldest, and a sign-in that began elsewhere ends well', async () => {
    const { begin, finish, issuer } = await oidcGateway({ begunMax: 3 });
    const from = (address: string) => begin('/', { 'x-forwarded-for': address });
    const slow = await from('203.0.113.7');
    const [first] = [await from('2001:db8::1'), await from('2001:db8::2'), await from('2001:db8::3')];
    issuer.claims = { ...issuer.claims, nonce: slow.nonce };
    expect((await finish({ state: slow.state, code: 'x' }, slow.cookie)).status).toBe(200);
    expect((await finish({ state: first.state, code: 'x' }, first.cookie)).status).toBe(400);
  });
});

describe('a session that began at the provider', () => {
  test('it replaces the browser’s old one and ends after an hour, even if the user has a password', async () => {
    const all = await oidcGateway();
    const { cookie: old } = await all.signIn({ preferred_username: 'eve' });
    const { state, nonce, cookie } = await all.begin();
    all.issuer.claims = { preferred_username: 'ann', nonce };
    const answer = await all.finish({ state, code: 'x' }, `${cookie}; ${old}`);
    expect([await nameIn(all, old), await nameIn(all, answer.cookie)]).toEqual([401, 'ann']);
    await all.clock.advance(60 * 60_000);
    expect(await nameIn(all, answer.cookie)).toBe(401);
  });

  test('a request that is no navigation, like that of an image, does not end the browser’s session', async () => {
    const all = await oidcGateway();
    const { cookie } = await all.signIn({ preferred_username: 'eve' });
    await all.begin('/', { cookie });
    expect(await nameIn(all, cookie)).toBe('eve');
  });

  test('a reload ends it when the user was removed, and otherwise gives it the user’s new drives', async () => {
    const all = await oidcGateway();
    const { cookie } = await all.signIn({ preferred_username: 'eve' });
    all.listener.reload({ users: [{ ...EVE, grants: [{ drive: 'new' }] }] });
    expect(JSON.parse((await all.get('/', { cookie })).text).user.grants).toEqual([{ drive: 'new' }]);
    all.listener.reload({ users: [ANN] });
    expect(await nameIn(all, cookie)).toBe(401);
    all.listener.reload({ users: [EVE] });
    expect(await nameIn(all, cookie)).toBe(401);
  });
});

describe('the sign-in page', () => {
  const german = { 'accept-language': 'de' };

  test('the button stands below the form, and alone if nobody has a password', async () => {
    const link = '" href="/.davgate/sign-in/oidc?to=%2Fa%2F"';
    const both = await (await oidcGateway()).get('/.davgate/sign-in?to=/a/', german);
    expect(both.status).toBe(401);
    expect(both.text).toContain('<form');
    expect(both.text).toContain(`<a class="button provider${link}>Mit Example ID anmelden</a>`);
    const alone = await (await oidcGateway({ users: [EVE] })).get('/.davgate/sign-in?to=/a/', german);
    expect(alone.text).not.toContain('<form');
    expect(alone.text).toContain(
      `<a class="button provider primary${link} autofocus>Mit Example ID anmelden</a>`,
    );
  });

  test('a gateway without a provider has no button and nothing at its addresses', async () => {
    const { url } = await listening({ users: [ANN] });
    const page = await (await fetch(`${url}.davgate/sign-in`)).text();
    expect(page).toContain('<form');
    expect(page).not.toContain('oidc');
    for (const path of ['oidc', 'oidc/callback?state=x&code=y'])
      expect((await fetch(`${url}.davgate/sign-in/${path}`)).status).toBe(401);
  });
});
