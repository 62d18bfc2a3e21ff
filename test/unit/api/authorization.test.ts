import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { authorizationUrl, exchangeCode, newProof, revokeLogin } from '../../../src/api/authorization.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { json, lose, ok, ScriptedService, text } from '../../support/scripted-service.ts';

const TOKEN = 'oauth2/token';
const REVOKE = 'auth/token/revoke';
const SECRETS = /the-code|the-verifier|the-refresh-token|sl\.access/;

let service: ScriptedService;
beforeEach(async () => {
  service = await ScriptedService.start();
});
afterEach(() => service.close());

const server = () => ({
  apiUrl: service.url,
  clock: new ManualClock(),
  signal: new AbortController().signal,
});
const exchange = { code: 'the-code', appKey: 'app', verifier: 'the-verifier' };
const granted = {
  access_token: 'sl.access',
  token_type: 'bearer',
  expires_in: 14_400,
  refresh_token: 'the-refresh-token',
  account_id: 'dbid:one',
  scope: 'files.content.read sharing.read',
};

describe('the authorization URL', () => {
  test('the authorization URL asks for a code, offline access and PKCE, and names no scope', () => {
    const url = new URL(
      authorizationUrl('https://x.example/oauth2/authorize', { appKey: 'a&b', challenge: 'c' }),
    );
    expect(url.origin + url.pathname).toBe('https://x.example/oauth2/authorize');
    expect(Object.fromEntries(url.searchParams)).toEqual({
      client_id: 'a&b',
      response_type: 'code',
      token_access_type: 'offline',
      code_challenge: 'c',
      code_challenge_method: 'S256',
    });
  });

  test('the authorization URL has the redirect URI and the state', () => {
    const request = { appKey: 'a', challenge: 'c', redirectUri: 'http://localhost:1/', state: 's' };
    const { searchParams } = new URL(authorizationUrl('https://x.example/', request));
    expect(searchParams.get('redirect_uri')).toBe('http://localhost:1/');
    expect(searchParams.get('state')).toBe('s');
  });

  test('newProof returns a new verifier each time, with its SHA-256 as the challenge', () => {
    const [one, two] = [newProof(), newProof()];
    expect(one.verifier).toMatch(/^[\w-]{43,128}$/);
    expect(one.verifier).not.toBe(two.verifier);
    expect(one.challenge).toBe(createHash('sha256').update(one.verifier).digest('base64url'));
  });
});

describe('exchangeCode', () => {
  test('exchangeCode sends the code with its verifier and no secret, and returns the refresh token, account and scopes', async () => {
    service.on(TOKEN, ok(granted));
    const grant = await exchangeCode(server(), { ...exchange, redirectUri: 'http://localhost:1/' });
    expect(grant).toEqual({
      refreshToken: 'the-refresh-token',
      accountId: 'dbid:one',
      scopes: ['files.content.read', 'sharing.read'],
    });
    const [call] = service.calls;
    expect(call?.headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(Object.fromEntries(new URLSearchParams(call?.body.toString()))).toEqual({
      grant_type: 'authorization_code',
      code: 'the-code',
      client_id: 'app',
      code_verifier: 'the-verifier',
      redirect_uri: 'http://localhost:1/',
    });
  });

  const refused = (error: string) => json(400, { error, error_description: 'the-code the-verifier' });

  test.each([
    ['an expired code', refused('invalid_grant'), /refused the code, .* \(invalid_grant\)/],
    ['an unknown app', refused('invalid_client'), /check the app key .* \(invalid_client\)/],
    ['an invalid request', refused('invalid_request'), /\(invalid_request\)/],
    ['a failing service', text(503, 'the-code'), /failed with status 503/],
    ['an unreachable service', lose, /cannot reach the storage service/],
    ['an answer in HTML', text(200, '<html>the-code'), /no refresh token for the code/],
    [
      'an answer without a refresh token',
      ok({ ...granted, refresh_token: undefined }),
      /no refresh token for the code/,
    ],
    [
      'a refresh token with a line break',
      ok({ ...granted, refresh_token: 'a\nb' }),
      /no refresh token for the code/,
    ],
  ])('exchangeCode fails for %s with a message that contains no secret', async (_name, answer, message) => {
    service.on(TOKEN, answer);
    const failure = await exchangeCode(server(), exchange).catch((error) => error);
    expect(failure.name).toBe('ApiError');
    expect(failure.message).toMatch(message);
    expect(failure.message).not.toMatch(SECRETS);
  });
});

describe('revokeLogin', () => {
  const credentials = { appKey: 'app', refreshToken: 'the-refresh-token' };

  test('revokeLogin revokes a new access token of the login', async () => {
    service.on(TOKEN, ok(granted)).on(REVOKE, ok(null));
    expect(await revokeLogin(server(), credentials)).toBe(true);
    const [call] = service.callsOf(REVOKE);
    expect([call?.headers.authorization, call?.body.toString()]).toEqual(['Bearer sl.access', 'null']);
  });

  test('revokeLogin returns false for a login that was revoked elsewhere', async () => {
    service.on(TOKEN, json(400, { error: 'invalid_grant', error_description: '' }));
    expect(await revokeLogin(server(), credentials)).toBe(false);
    service.on(TOKEN, ok(granted)).on(REVOKE, json(401, { error_summary: 'x/', error: { '.tag': 'x' } }));
    expect(await revokeLogin(server(), credentials)).toBe(false);
  });

  test.each([
    ['no access token is granted', text(500, ''), ok(null)],
    ['the app is unknown', json(400, { error: 'invalid_client' }), ok(null)],
    ['the service fails', ok(granted), text(500, 'the-refresh-token')],
    ['the service is unreachable', lose, ok(null)],
  ])('revokeLogin fails when %s, with a message that contains no secret', async (_name, token, revoke) => {
    service.on(TOKEN, token).on(REVOKE, revoke);
    const failure = await revokeLogin(server(), credentials).catch((error) => error);
    expect(failure.name).toBe('ApiError');
    expect(failure.message).not.toMatch(SECRETS);
  });
});
