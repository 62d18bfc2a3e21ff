import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { bodyOf } from '../../support/bytes.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  hang,
  json,
  lose,
  ok,
  type Received,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const STAT = 'files/get_metadata';
const GRANT = 'oauth2/token';
const MINUTE_MS = 60_000;
const REFRESH_TOKEN = 'refresh-secret';
const APP_SECRET = 'app-secret';

const found = ok(tagged('file', fileMetadata('/f')));
const expired = json(401, {
  error_summary: 'expired_access_token/',
  error: { '.tag': 'expired_access_token' },
});

let scripted: Scripted;
let granted: number;

/** Grants `token-1`, `token-2` and so on, for four hours each. */
const grant: Answer = (response, call, request) => {
  granted += 1;
  return ok({ access_token: `token-${granted}`, token_type: 'bearer', expires_in: 14_400 })(
    response,
    call,
    request,
  );
};

/** Accepts only the latest granted token. */
const acceptsNewest: Answer = (response, call, request) =>
  (bearer(call) === `token-${granted}` ? found : expired)(response, call, request);

const bearer = (call: Received | undefined) => call?.headers.authorization?.replace('Bearer ', '');

beforeEach(async () => {
  granted = 0;
  scripted = await openScripted({
    credentials: { appKey: 'app-key', appSecret: APP_SECRET, refreshToken: REFRESH_TOKEN },
  });
  scripted.service.on(GRANT, grant).on(STAT, acceptsNewest);
});
afterEach(() => scripted.close());

const stat = () => scripted.remote.stat(at('/f'));

describe('access tokens', () => {
  test('four calls share one access token, requested as a form with the refresh token and the app secret', async () => {
    const { service } = scripted;
    await Promise.all([stat(), stat(), stat()]);
    await stat();
    const [call, ...more] = service.callsOf(GRANT);
    expect(more).toEqual([]);
    expect(call?.headers['content-type']).toBe('application/x-www-form-urlencoded');
    expect(call?.headers.authorization).toBeUndefined();
    expect(Object.fromEntries(new URLSearchParams(call?.body.toString()))).toEqual({
      grant_type: 'refresh_token',
      refresh_token: REFRESH_TOKEN,
      client_id: 'app-key',
      client_secret: APP_SECRET,
    });
    expect(service.callsOf(STAT).map(bearer)).toEqual(Array(4).fill('token-1'));
  });

  test('an app without a secret requests its access token without one', async () => {
    await scripted.close();
    scripted = await openScripted({ credentials: { appKey: 'app-key', refreshToken: REFRESH_TOKEN } });
    scripted.service.on(GRANT, grant).on(STAT, acceptsNewest);
    await stat();
    expect(scripted.service.callsOf(GRANT)[0]?.body.toString()).not.toContain('secret=');
  });

  test('an access token is replaced five minutes before it expires, and no call waits for the new one', async () => {
    const { service, clock } = scripted;
    await stat();
    await clock.advance(235 * MINUTE_MS - 1);
    await stat();
    expect(granted).toBe(1);
    await clock.advance(1);
    service.on(STAT, found);
    await stat();
    expect(bearer(service.callsOf(STAT).at(-1))).toBe('token-1');
    await service.until(() => granted === 2);
    await scripted.remote.quota().catch(() => {});
    await stat();
    expect(bearer(service.callsOf(STAT).at(-1))).toBe('token-2');
  });

  test('a failing grant before the access token expires fails no call, and is retried after 10 seconds', async () => {
    const { service, clock } = scripted;
    await stat();
    service.on(GRANT, text(500, ''));
    await clock.advance(239 * MINUTE_MS);
    await stat();
    await service.until(() => service.callsOf(GRANT).length === 2);
    await stat();
    // The grant is not repeated with each call.
    expect(service.callsOf(GRANT)).toHaveLength(2);
    await clock.advance(10_000);
    await stat();
    await service.until(() => service.callsOf(GRANT).length === 3);
  });

  test('a call after the access token has expired uses a new one', async () => {
    await stat();
    await scripted.clock.advance(240 * MINUTE_MS);
    await stat();
    expect(scripted.service.callsOf(STAT).map(bearer)).toEqual(['token-1', 'token-2']);
  });
});

describe('access tokens that expire early', () => {
  test('a call with an access token that expired early is repeated with a new one and succeeds', async () => {
    const { service } = scripted;
    await stat();
    granted += 1;
    expect(await stat()).toMatchObject({ name: 'f' });
    expect(service.callsOf(STAT).map(bearer)).toEqual(['token-1', 'token-1', 'token-3']);
  });

  test('concurrent calls whose access token expired early share one new token', async () => {
    const { service } = scripted;
    await stat();
    granted += 1;
    await Promise.all([stat(), stat(), stat(), stat()]);
    expect(service.callsOf(GRANT)).toHaveLength(2);
  });

  test('a late answer about an expired access token does not replace the new one', async () => {
    const { service } = scripted;
    await stat();
    granted += 1;
    let answerLate = () => {};
    const late: Answer = (response, call, request) => {
      answerLate = () => void expired(response, call, request);
    };
    service.on(STAT, late, acceptsNewest);
    const first = stat();
    await service.until(() => service.callsOf(STAT).length === 2);
    await stat();
    expect(service.callsOf(GRANT)).toHaveLength(2);
    answerLate();
    expect(await first).toMatchObject({ name: 'f' });
    expect(service.callsOf(GRANT)).toHaveLength(2);
  });

  test('a new access token that is refused again fails the call with unauthorized', async () => {
    scripted.service.on(STAT, expired);
    await expect(stat()).rejects.toMatchObject({ failure: 'unauthorized' });
    expect(scripted.service.callsOf(STAT)).toHaveLength(2);
  });

  test('an upload whose access token has expired sends its bytes again with a new one', async () => {
    const { service, remote } = scripted;
    await stat();
    granted += 1;
    service.on('files/upload', (response, call, request) => {
      const { content_hash } = call.arg as { content_hash: string };
      const answer = bearer(call) === `token-${granted}` ? ok(fileMetadata('/f', { content_hash })) : expired;
      return answer(response, call, request);
    });
    await remote.write(at('/f'), bodyOf('abc'), { mode: { if: 'absent' } });
    expect(service.callsOf('files/upload').map(({ body }) => body.toString())).toEqual(['abc', 'abc']);
  });
});

describe('failing grants', () => {
  const refusals: [string, Answer][] = [
    [
      'a revoked refresh token',
      json(400, { error: 'invalid_grant', error_description: `${REFRESH_TOKEN} is revoked` }),
    ],
    ['a wrong app', json(400, { error: 'invalid_client', error_description: `not ${APP_SECRET}` })],
    ['another service', text(404, `no ${REFRESH_TOKEN}`)],
  ];

  test.each(refusals)(
    'a grant refused for %s fails the call with unauthorized, and neither error nor log contains a secret',
    async (_what, answer) => {
      const { service, log } = scripted;
      service.on(GRANT, answer);
      const error: unknown = await stat().catch((caught: unknown) => caught);
      expect(error).toMatchObject({ failure: 'unauthorized' });
      expect(service.callsOf(GRANT)).toHaveLength(1);
      expect(service.callsOf(STAT)).toHaveLength(0);
      const output = `${error instanceof Error ? error.stack : ''}${JSON.stringify([error, log.lines])}`;
      expect(output).not.toMatch(/refresh-secret|app-secret/);
    },
  );

  test.each<[string, Answer]>([
    ['a failing service', text(503, '')],
    ['a lost connection', lose],
    ['an invalid token in the answer', ok({ access_token: 'a\nb', expires_in: 5 })],
    ['an answer that is not JSON', text(200, 'token-0')],
  ])('a grant is retried after %s, and the call succeeds', async (_what, trouble) => {
    scripted.service.on(GRANT, trouble, trouble, grant);
    expect(await stat()).toMatchObject({ name: 'f' });
    expect(scripted.service.callsOf(STAT)).toHaveLength(1);
  });

  test('a call that is aborted while it waits for a token does not abort the grant for other calls', async () => {
    const { service, remote } = scripted;
    let answer = () => {};
    service.on(GRANT, (response, call, request) => {
      answer = () => void grant(response, call, request);
    });
    const abort = new AbortController();
    const impatient = remote.stat(at('/f'), abort.signal);
    const patient = stat();
    await service.until(() => service.callsOf(GRANT).length === 1);
    const reason = new Error('gone');
    abort.abort(reason);
    await expect(impatient).rejects.toBe(reason);
    answer();
    expect(await patient).toMatchObject({ name: 'f' });
  });

  test('close fails a call that waits for a token with offline', async () => {
    const { service, remote } = scripted;
    service.on(GRANT, hang);
    const failed = expect(stat()).rejects.toMatchObject({ failure: 'offline' });
    await service.until(() => service.callsOf(GRANT).length === 1);
    await remote.close();
    await failed;
  });
});
