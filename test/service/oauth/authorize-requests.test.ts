import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { CALLBACK, CodeFlow, EMAIL, OVER_HTTPS, PASSWORD } from '../../support/code-flow.ts';
import { addPerson, sentBack } from '../../support/consent.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { send } from '../../support/service-client.ts';

let service: TestService;
let flow: CodeFlow;

beforeAll(async () => {
  service = await startTestService();
  await addPerson(service, EMAIL, PASSWORD);
});
afterAll(() => service.close());

beforeEach(async () => {
  flow = await CodeFlow.start(service);
});

describe('GET /oauth2/authorize', () => {
  test.each<[string, Record<string, string>, string, string]>([
    ['scope', { scope: 'sharing.read' }, 'invalid_request', 'unknown field "scope"'],
    ['an unknown field', { approval_prompt: 'x' }, 'invalid_request', 'unknown field "approval_prompt"'],
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
      'an invalid boolean',
      { force_reapprove: 'yes' },
      'invalid_request',
      'force_reapprove must be "false" or "true"',
    ],
  ])(
    'an authorization request with %s redirects with the error, and answers a page without a redirect URI',
    async (_, change, error, text) => {
      const request = flow.asking({ state: 's', ...change });
      const answered = await flow.browser.open(request);
      expect([answered.status, sentBack(answered, CALLBACK)]).toEqual([
        302,
        { error, error_description: text, state: 's' },
      ]);
      const { redirect_uri: _uri, ...unreturnable } = request;
      const page = await flow.browser.open(unreturnable);
      expect([page.status, page.headers.get('location')]).toEqual([400, null]);
      expect(page.text).toContain(`${error}: ${text.replaceAll('"', '&quot;')}`);
    },
  );

  test('an authorization request with a state over 2000 bytes redirects with the error and without the state', async () => {
    const answered = await flow.browser.open(flow.asking({ state: 's'.repeat(2001) }));
    expect(sentBack(answered, CALLBACK)).toEqual({
      error: 'invalid_request',
      error_description: 'state must be at most 2000 bytes',
    });
  });

  test.each<[string, (request: Record<string, string>) => URLSearchParams | Record<string, string>]>([
    ['no app', ({ client_id, ...request }) => request],
    ['an unknown app', (request) => ({ ...request, client_id: 'x' })],
    ['a redirect URI of another site', (request) => ({ ...request, redirect_uri: 'https://evil.example/' })],
    ['a redirect URI that begins like its own', (request) => ({ ...request, redirect_uri: `${CALLBACK}x` })],
    [
      'a redirect URI in another letter case',
      (request) => ({ ...request, redirect_uri: CALLBACK.toUpperCase() }),
    ],
    ['an empty redirect URI', (request) => ({ ...request, redirect_uri: '' })],
    [
      'two redirect URIs',
      (request) => new URLSearchParams([...Object.entries(request), ['redirect_uri', OVER_HTTPS]]),
    ],
    ['two apps', (request) => new URLSearchParams([...Object.entries(request), ['client_id', 'x']])],
  ])('an authorization request with %s answers an error page and does not redirect', async (_, change) => {
    const answered = await flow.browser.open(change(flow.asking({ scope: 'x' })));
    expect([answered.status, answered.headers.get('location')]).toEqual([400, null]);
    expect(answered.text).toContain('This request is not valid');
  });

  test('PUT to /oauth2/authorize answers 405 with Allow', async () => {
    const url = `${service.url}/oauth2/authorize?${new URLSearchParams(flow.asking())}`;
    const answered = await send(url, { method: 'PUT' });
    expect([answered.status, answered.headers.get('allow')]).toEqual([405, 'GET, HEAD, POST']);
  });
});
