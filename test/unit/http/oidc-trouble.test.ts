import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { eventually } from '../../support/eventually.ts';
import { oidcGateway } from '../../support/oidc-gateway.ts';
import { OTHER_KEY, type TokenIssuer } from '../../support/token-issuer.ts';

const DISCOVERY = '/.well-known/openid-configuration';

const FORGED = { signature: { alg: 'RS256', key: OTHER_KEY } };
const NOT_FOUND = (response: ServerResponse) => void response.writeHead(404).end();

describe('a provider in trouble', () => {
  test.each([
    ['access_denied', 403, 'was cancelled'],
    ['temporarily_unavailable', 503, 'does not answer'],
    ['server_error', 502, 'has failed'],
  ])('the error %s on the way back is answered %i', async (error, status, text) => {
    const { begin, finish, lines } = await oidcGateway();
    const { state, cookie } = await begin();
    const answer = await finish({ state, error, error_description: 'because' }, cookie);
    expect([answer.status, answer.text]).toEqual([status, expect.stringContaining(text)]);
    expect(answer.text).toContain('href="/.davgate/sign-in/oidc?to=%2FPhotos%2F"');
    expect(lines.at(-2)?.fields['reason']).toBe(`${error}: because`);
  });

  test.each([
    ['a used code', 400, '{"error":"invalid_grant"}', 400, 'invalid_grant'],
    ['a wrong client secret', 401, '{"error":"invalid_client"}', 502, 'invalid_client'],
    ['a failure of its own', 500, 'oops', 503, '/token answered 500'],
    ['no JSON', 200, 'oops', 502, '/token answered 200'],
  ])(
    '%s at the exchange of the code is answered kindly and logged',
    async (_, status, body, shown, reason) => {
      const { issuer, signIn, lines } = await oidcGateway();
      const type = body === 'oops' ? 'text/plain' : 'application/json';
      issuer.answers.set('/token', (response) =>
        response.writeHead(status, { 'content-type': type }).end(body),
      );
      expect((await signIn()).status).toBe(shown);
      expect(lines.find(({ event }) => event !== 'request')?.fields['reason']).toContain(reason);
    },
  );

  test.each<readonly [string, (issuer: TokenIssuer) => unknown, number, string]>([
    ['that does not listen', (issuer) => issuer.stop(), 503, 'ECONNREFUSED'],
    ['that does not answer', ({ answers }) => answers.set(DISCOVERY, () => {}), 503, 'timed out'],
    [
      'that fails',
      ({ answers }) => answers.set(DISCOVERY, (response) => response.writeHead(500).end()),
      503,
      'openid-configuration answered 500',
    ],
    [
      'that calls itself otherwise',
      (issuer) => {
        issuer.description = { issuer: 'https://another.example' };
      },
      502,
      'discovered metadata issuer does not match the expected issuer',
    ],
  ])(
    'a provider %s is named on the sign-in page, and asked again at the next try',
    async (_, spoil, status, reason) => {
      const { issuer, begin, lines } = await oidcGateway({ client: { answerSeconds: 3 } });
      await spoil(issuer);
      const answer = await begin();
      expect([answer.status, answer.cookie]).toEqual([status, '']);
      expect(answer.text).toContain('Example ID');
      expect(answer.headers.get('retry-after')).toBe(status === 503 ? '5' : null);
      expect(lines[0]).toMatchObject({
        level: 'error',
        event: 'the OpenID Connect provider has a problem',
        fields: { reason: expect.stringContaining(reason) },
      });
      if (reason === 'ECONNREFUSED') return;
      issuer.answers.clear();
      issuer.description = {};
      expect((await begin()).status).toBe(303);
    },
  );

  test('33 sign-ins at once are too many for a provider that does not answer, and it is asked only once', async () => {
    const { issuer, begin } = await oidcGateway();
    let release = () => {};
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    issuer.answers.set(DISCOVERY, (response) => void waiting.then(() => response.writeHead(500).end()));
    const begun = Array.from({ length: 33 }, () => begin());
    const first = await Promise.race(begun);
    expect(first.status).toBe(503);
    release();
    await Promise.all(begun);
    expect(issuer.asked).toHaveLength(1);
  });

  test('a client whose 32 sign-ins wait for the provider gets no further one, and another client does', async () => {
    const { issuer, begin, finish, get } = await oidcGateway();
    const held: ServerResponse[] = [];
    issuer.answers.set('/token', (response) => void held.push(response));
    const waiting: Promise<unknown>[] = [];
    for (let count = 0; count < 32; count += 1) {
      const way = await begin();
      waiting.push(finish({ state: way.state, code: 'x' }, way.cookie));
    }
    await eventually(() => expect(held).toHaveLength(32));
    expect((await begin()).status).toBe(503);
    const elsewhere = { 'x-forwarded-for': '203.0.113.7' };
    const { status, state, cookie } = await begin('/', elsewhere);
    expect(status).toBe(303);
    const callback = `/.davgate/sign-in/oidc/callback?${new URLSearchParams({ state, code: 'x' })}`;
    waiting.push(get(callback, { ...elsewhere, cookie }));
    await eventually(() => expect(held).toHaveLength(33));
    for (const response of held) response.writeHead(500).end();
    await Promise.all(waiting);
  });

  test.each<readonly [string, Readonly<Record<string, string>>]>([
    ['without a code', {}],
    ['with an empty code', { code: '' }],
    ['with the code of another provider', { code: 'x', iss: 'https://another.example' }],
    ['with an answer in another form', { response: 'x' }],
  ])('a browser that comes back %s is not taken for a problem of the provider', async (_, query) => {
    const { begin, finish, issuer, lines } = await oidcGateway();
    const { state, cookie } = await begin();
    expect((await finish({ state, ...query }, cookie)).status).toBe(400);
    expect(lines.map(({ level }) => level)).not.toContain('error');
    await begin();
    expect(issuer.asked).toEqual([`GET ${DISCOVERY}`]);
  });

  test.each<readonly [string, number, (issuer: TokenIssuer) => unknown, object]>([
    ['token has an unknown signature', 2, (issuer) => Object.assign(issuer, FORGED), {}],
    ['token endpoint is gone', 2, ({ answers }) => answers.set('/token', NOT_FOUND), {}],
    ['token is that of another sign-in', 1, () => {}, { nonce: 'another' }],
    ['token has no user name', 1, () => {}, { preferred_username: undefined }],
  ])(
    'a provider whose %s has described itself %i times by the next sign-in',
    async (_, times, spoil, claims) => {
      const { issuer, signIn, begin } = await oidcGateway();
      spoil(issuer);
      expect((await signIn(claims)).status).toBe(502);
      await begin();
      expect(issuer.asked.filter((asked) => asked.endsWith(DISCOVERY))).toHaveLength(times);
    },
  );
});
