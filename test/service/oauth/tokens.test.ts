import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SCOPES } from '../../../src/service/accounts/scopes.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { type Answered, refreshForm, refusal, refusalIn, rpc, send } from '../../support/service-client.ts';

const clock = new ManualClock();
let service: TestService;

beforeAll(async () => {
  service = await startTestService({ clock });
});
afterAll(() => service.close());

const FOUR_HOURS_MS = 14_400_000;

function requestToken(form: Record<string, string>, headers: Record<string, string> = {}): Promise<Answered> {
  return send(`${service.url}/oauth2/token`, { method: 'POST', body: new URLSearchParams(form), headers });
}

const refreshing = () => refreshForm(service);

async function freshToken(form = refreshing()): Promise<string> {
  return ((await requestToken(form)).json as { access_token: string }).access_token;
}

const whoAmI = (token: string | null, headers = {}) =>
  rpc(service, 'users/get_current_account', null, { token, headers });

describe('POST /oauth2/token', () => {
  const SUCCESS = {
    access_token: expect.stringMatching(/^sl\.[\w-]{43}$/),
    token_type: 'bearer',
    expires_in: 14_400,
    scope: SCOPES.join(' '),
  };

  test('POST /oauth2/token takes a form', async () => {
    const answered = await requestToken(refreshing());
    expect([answered.status, answered.json]).toEqual([200, SUCCESS]);
    expect(answered.headers.get('cache-control')).toBe('no-store');
    expect(answered.headers.get('x-dropbox-request-id')).toMatch(/^[0-9a-f]{32}$/);
  });

  test('POST /1/oauth2/token, the path of the Go SDK, answers like /oauth2/token', async () => {
    const answered = await send(`${service.url}/1/oauth2/token`, {
      method: 'POST',
      body: new URLSearchParams(refreshing()),
    });
    expect([answered.status, answered.json]).toEqual([200, SUCCESS]);
  });

  test('POST /oauth2/token takes its parameters in the query with an empty JSON body', async () => {
    const answered = await send(`${service.url}/oauth2/token?${new URLSearchParams(refreshing())}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
    });
    expect([answered.status, answered.json]).toEqual([200, SUCCESS]);
  });

  test('POST /oauth2/token takes the app as Basic credentials, and refuses a client_id beside them', async () => {
    const { client_id: id, client_secret: secret, ...form } = refreshing();
    const authorization = `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
    expect((await requestToken(form, { authorization })).json).toEqual(SUCCESS);
    expect((await requestToken({ ...form, client_id: id ?? '' }, { authorization })).json).toEqual({
      error: 'invalid_request',
      error_description: 'unknown field "client_id"',
    });
  });

  test('POST /oauth2/token with scope gives a token with those scopes alone', async () => {
    const answered = await requestToken({ ...refreshing(), scope: 'sharing.read account_info.read' });
    expect(answered.json).toMatchObject({ scope: 'account_info.read sharing.read' });
    const { access_token: token } = answered.json as { access_token: string };
    expect((await rpc(service, 'files/list_folder', { path: '' }, { token })).status).toBe(401);
    expect((await whoAmI(token)).status).toBe(200);
  });

  test('POST /oauth2/token treats empty parameters as absent', async () => {
    const answered = await requestToken({ ...refreshing(), scope: '', redirect_uri: '' });
    expect([answered.status, answered.json]).toEqual([200, SUCCESS]);
  });

  test.each<[string, (form: Record<string, string>) => Record<string, string>, string, string]>([
    ['no grant', ({ grant_type, ...form }) => form, 'invalid_request', 'missing required field "grant_type"'],
    [
      'another grant',
      (form) => ({ ...form, grant_type: 'password' }),
      'unsupported_grant_type',
      'grant_type must be "authorization_code" or "refresh_token"',
    ],
    [
      'no token',
      ({ refresh_token, ...form }) => form,
      'invalid_request',
      'missing required field "refresh_token"',
    ],
    [
      'an unknown field',
      (form) => ({ ...form, redirect_uri: 'x' }),
      'invalid_request',
      'unknown field "redirect_uri"',
    ],
    [
      'another secret',
      (form) => ({ ...form, client_secret: 'x' }),
      'invalid_client',
      'Invalid client_id or client_secret',
    ],
    [
      'no secret',
      ({ client_secret, ...form }) => form,
      'invalid_client',
      'Invalid client_id or client_secret',
    ],
    [
      'another app',
      (form) => ({ ...form, client_id: 'x' }),
      'invalid_client',
      'Invalid client_id or client_secret',
    ],
    [
      'another token',
      (form) => ({ ...form, refresh_token: 'x' }),
      'invalid_grant',
      'refresh token is invalid or revoked',
    ],
    [
      'a malformed token',
      (form) => ({ ...form, refresh_token: 'no token' }),
      'invalid_grant',
      'refresh token is malformed',
    ],
    [
      'more scopes',
      (form) => ({ ...form, scope: 'team_data.member' }),
      'invalid_scope',
      'scope was not granted',
    ],
  ])('POST /oauth2/token refuses %s', async (_, change, error, description) => {
    const answered = await requestToken(change(refreshing()));
    expect(answered.status).toBe(400);
    expect(answered.headers.get('content-type')).toBe('application/json');
    expect(answered.json).toEqual({ error, error_description: description });
  });

  test('POST /oauth2/token refuses a JSON body and does not repeat it', async () => {
    const answered = await send(`${service.url}/oauth2/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(refreshing()),
    });
    expect([answered.status, answered.json]).toEqual([
      400,
      {
        error: 'invalid_request',
        error_description: 'the body must be application/x-www-form-urlencoded',
      },
    ]);
  });

  test('GET /oauth2/token answers 405 with Allow: POST', async () => {
    const response = await fetch(`${service.url}/oauth2/token`);
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  });
});

describe('access token', () => {
  test('an access token expires after four hours and not before', async () => {
    const token = await freshToken();
    await clock.advance(FOUR_HOURS_MS - 1);
    expect((await whoAmI(token)).status).toBe(200);
    await clock.advance(1);
    const answered = await whoAmI(token);
    expect(refusalIn(answered)).toEqual(
      refusal(401, 'expired_access_token', { '.tag': 'expired_access_token' }),
    );
    expect(answered.headers.get('www-authenticate')).toBe('Bearer realm="Dropbox-API"');
    expect((await whoAmI(await freshToken())).status).toBe(200);
  });

  test('an unknown access token answers 401 invalid_access_token', async () => {
    expect(refusalIn(await whoAmI('sl.nothing'))).toEqual(
      refusal(401, 'invalid_access_token', { '.tag': 'invalid_access_token' }),
    );
  });

  test.each<[string | undefined, string]>([
    [undefined, 'Must provide HTTP header "Authorization" or URL parameter "authorization".'],
    ['Bearer', 'Invalid authorization value in HTTP header "Authorization": "Bearer". Expecting "Bearer …".'],
    [
      'Basic YTpi',
      'Invalid authorization value in HTTP header "Authorization": "Basic". Expecting "Bearer …".',
    ],
    ['sl.secret', 'Invalid authorization value in HTTP header "Authorization": "…". Expecting "Bearer …".'],
    [
      'Bearer a b',
      'Invalid authorization value in HTTP header "Authorization": The given OAuth 2 access token is malformed.',
    ],
  ])('the malformed header Authorization %j answers 400', async (authorization, problem) => {
    const answered = await whoAmI(null, authorization === undefined ? {} : { authorization });
    expect(answered.status).toBe(400);
    expect(Buffer.from(answered.text, 'utf8').toString()).toBe(
      `Error in call to API function "users/get_current_account": ${problem}`,
    );
  });

  test('Dropbox-API-Select-User and -Admin answer 401', async () => {
    for (const who of ['user', 'admin'])
      expect(
        refusalIn(await whoAmI(service.token, { [`dropbox-api-select-${who}`]: 'dbmid:x' })),
      ).toMatchObject({ status: 401, summary: `invalid_select_${who}` });
  });
});

describe('auth/token/revoke', () => {
  test('auth/token/revoke revokes the token, its refresh token and their other access tokens, and no others', async () => {
    const { token: keptToken, dataDirectory, ...own } = await startTestService({ clock });
    try {
      const on = { ...own, token: keptToken, dataDirectory };
      const form = new URLSearchParams(refreshForm(on));
      const refresh = () => send(`${own.url}/oauth2/token`, { method: 'POST', body: form });
      const [first, second] = [await refresh(), await refresh()].map(
        ({ json }) => (json as { access_token: string }).access_token,
      );
      const revoked = await rpc(on, 'auth/token/revoke', null, { token: first ?? '' });
      expect([revoked.status, revoked.text]).toEqual([200, 'null']);
      for (const token of [first, second])
        expect(
          refusalIn(await rpc(on, 'users/get_current_account', null, { token: token ?? '' })),
        ).toMatchObject({ status: 401, summary: 'invalid_access_token' });
      expect((await refresh()).json).toMatchObject({ error: 'invalid_grant' });
      expect((await rpc(on, 'users/get_current_account', null)).status).toBe(200);
      const again = await own.service.provision();
      expect(again.token).toBe(keptToken);
      expect(again.refreshToken).not.toBe(own.refreshToken);
      expect(await own.service.provision()).toEqual(again);
    } finally {
      await own.close();
    }
  });
});

describe('provisioning', () => {
  test('provision answers the same credentials at each call and after a restart, and its token works', async () => {
    const first = await startTestService({ clock });
    const both = await Promise.all([first.service.provision(), first.service.provision()]);
    expect(both[0]).toEqual(both[1]);
    await first.service.close();
    const second = await startTestService({ clock, dataDirectory: first.dataDirectory });
    expect(await second.service.provision()).toEqual(both[0]);
    expect((await rpc(second, 'users/get_current_account', null)).status).toBe(200);
    await second.service.close();
    await first.close();
  });

  test('credentials are readable by their owner alone, and the database has no secret in clear text', async () => {
    const file = join(service.dataDirectory, 'credentials.json');
    expect((await stat(file)).mode & 0o077).toBe(0);
    const names = (await readdir(service.dataDirectory)).filter((name) => name.startsWith('accounts.sqlite'));
    expect(names).toContain('accounts.sqlite');
    for (const name of names) {
      const path = join(service.dataDirectory, name);
      expect((await stat(path)).mode & 0o077).toBe(0);
      const bytes = await readFile(path);
      for (const secret of [service.token, service.refreshToken, service.appSecret])
        expect(bytes.includes(secret)).toBe(false);
    }
  });
});
