import { describe, expect, test } from 'vitest';
import { oidcGateway } from '../../support/oidc-gateway.ts';
import type { TokenIssuer } from '../../support/token-issuer.ts';

const DISCOVERY = '/.well-known/openid-configuration';

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
});
