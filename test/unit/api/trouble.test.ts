import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createRemote } from '../../../src/api/client.ts';
import { HTTP_TIMEOUTS } from '../../../src/api/http.ts';
import { at, openScripted, type Scripted, TOKEN } from '../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  hang,
  json,
  lose,
  notFound,
  ok,
  REQUEST_ID,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const STAT = 'files/get_metadata';
const found = ok(tagged('file', fileMetadata('/f')));
const limited = (seconds: number, tag = 'too_many_requests') =>
  json(
    429,
    { error_summary: `${tag}/..`, error: { reason: { '.tag': tag }, retry_after: seconds } },
    { 'retry-after': String(seconds) },
  );

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
});
afterEach(() => scripted.close());

describe('transient failures', () => {
  test.each<[string, Answer]>([
    ['500 without a body', text(500, '')],
    ['503 with HTML', text(503, '<html>down</html>')],
    ['a lost connection', lose],
    ['an answer that is not JSON', text(200, '{"name": "f", ')],
    ['an answer without required fields', ok({ '.tag': 'file', name: 'f', path_display: '/f' })],
    ['an answer of null', ok(null)],
    ['an entry of an unknown kind', ok(tagged('file', { '.tag': 'symlink' }))],
    ['internal_error', json(409, { error_summary: 'internal_error/', error: { '.tag': 'internal_error' } })],
    ['409 without an error', text(409, '')],
  ])('a stat is retried after %s', async (_what, trouble) => {
    const { service, remote } = scripted;
    service.on(STAT, trouble, trouble, found);
    expect(await remote.stat(at('/f'))).toMatchObject({ name: 'f' });
    expect(service.calls).toHaveLength(3);
  });

  test('a stat is retried after an answer that was cut off', async () => {
    const { service, remote } = scripted;
    const half: Answer = (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' });
      response.write('{".tag":"file"', () => response.destroy());
    };
    service.on(STAT, half, found);
    expect(await remote.stat(at('/f'))).toMatchObject({ name: 'f' });
  });

  test('a stat is retried after a timeout', async () => {
    await scripted.close();
    scripted = await openScripted({ timeouts: { ...HTTP_TIMEOUTS, firstAnswerMs: 50, answerMs: 50 } });
    scripted.service.on(STAT, hang, found);
    expect(await scripted.remote.stat(at('/f'))).toMatchObject({ name: 'f' });
  });

  test('a stat is retried after a rate limit for the time in Retry-After', async () => {
    const { service, remote, clock } = scripted;
    service.on(STAT, limited(3), found);
    const stat = remote.stat(at('/f'));
    await clock.untilSleeping(2);
    await clock.advance(2999);
    expect(service.calls).toHaveLength(1);
    await clock.advance(1);
    expect(await stat).toMatchObject({ name: 'f' });
  });

  test.each<[string, Answer]>([
    ['as text with Retry-After', text(429, 'slow down', { 'retry-after': '3' })],
    [
      'as JSON without Retry-After',
      json(429, {
        error_summary: 'too_many_requests/',
        error: { reason: { '.tag': 'too_many_requests' }, retry_after: 3 },
      }),
    ],
    [
      'with a date in Retry-After',
      text(503, '', { 'retry-after': new Date(Date.UTC(2026, 0, 1, 0, 0, 3)).toUTCString() }),
    ],
  ])('a rate limit %s is waited for', async (_form, answer) => {
    const { service, remote, clock } = scripted;
    service.on(STAT, answer, found);
    const stat = remote.stat(at('/f'));
    await clock.untilSleeping();
    await clock.advance(2999);
    expect(service.calls).toHaveLength(1);
    await clock.during(stat);
    expect(service.calls).toHaveLength(2);
  });

  test('a rate limit delays all other calls of the account too', async () => {
    const { service, remote, clock } = scripted;
    service
      .on(STAT, limited(3), found)
      .on('users/get_space_usage', ok({ used: 1, allocation: { '.tag': 'other' } }));
    const stat = remote.stat(at('/f'));
    await clock.untilSleeping(2);
    const quota = remote.quota();
    await clock.advance(2999);
    expect(service.calls).toHaveLength(1);
    await clock.advance(1);
    await Promise.all([stat, quota]);
    expect(service.calls).toHaveLength(3);
  });
});

test('a rate limit of 5 s ends after 5 s although the wall clock is set back an hour meanwhile', async () => {
  const { service, remote, clock } = scripted;
  service.on(STAT, limited(5), found);
  const first = remote.stat(at('/f'));
  await clock.untilSleeping(2);
  clock.stepWall(-3_600_000);
  const second = remote.stat(at('/f'));
  await clock.advance(5_250);
  expect(await first).toMatchObject({ name: 'f' });
  expect(await second).toMatchObject({ name: 'f' });
});

describe('lasting failures', () => {
  test.each<[string, Answer, string]>([
    ['a failing service', text(502, ''), 'unavailable'],
    ['a service that cuts connections', lose, 'offline'],
    ['a rate limit', limited(4), 'rate-limited'],
    ['contention', limited(4, 'too_many_write_operations'), 'rate-limited'],
    ['a service with invalid answers', ok([]), 'unavailable'],
  ])('%s is retried and fails the call at the deadline with %s', async (_what, trouble, failure) => {
    await scripted.close();
    scripted = await openScripted({ random: () => 0.9 });
    const { service, remote, clock } = scripted;
    service.on(STAT, trouble);
    const startMs = clock.now();
    const stat = remote.stat(at('/f'));
    await expect(clock.during(stat)).rejects.toMatchObject({ name: 'ApiError', failure });
    expect(service.calls.length).toBeGreaterThan(4);
    expect(clock.now() - startMs).toBeLessThanOrEqual(25_000);
  });

  test('a rate limit beyond the deadline fails the call at once with its length, and holds back other calls', async () => {
    const { service, remote } = scripted;
    service.on(STAT, limited(300));
    await expect(remote.stat(at('/f'))).rejects.toMatchObject({
      failure: 'rate-limited',
      details: { retryAfterMs: 300_000, requestId: REQUEST_ID },
    });
    // No other call is sent until the limit ends.
    await expect(remote.stat(at('/g'))).rejects.toMatchObject({ failure: 'rate-limited' });
    expect(service.calls).toHaveLength(1);
  });

  test('the wait for an earlier rate limit counts toward the deadline of a call', async () => {
    const { service, remote, clock } = scripted;
    service.on(STAT, limited(20)).on('users/get_space_usage', limited(20));
    const stat = expect(remote.stat(at('/f'))).rejects.toMatchObject({ failure: 'rate-limited' });
    await clock.untilSleeping(2);
    const quota = expect(remote.quota()).rejects.toMatchObject({ failure: 'rate-limited' });
    await clock.advance(20_000);
    await Promise.all([stat, quota]);
    expect(service.calls).toHaveLength(3);
  });

  test('a stat of a service that is not running fails with offline', async () => {
    await scripted.close();
    const gone = scripted.service.url;
    scripted = await openScripted({ apiUrl: gone, random: () => 0.9 });
    await expect(scripted.clock.during(scripted.remote.stat(at('/f')))).rejects.toMatchObject({
      failure: 'offline',
    });
  });
});

describe('refusals', () => {
  const plain = (status: number, sentence: string) => text(status, sentence);
  const tag = (status: number, error: Record<string, unknown>) =>
    json(status, { error_summary: 'x/', error });

  test.each<[string, Answer, string]>([
    ['a malformed call', plain(400, "request body: unknown field 'pat'"), 'bad-request'],
    [
      'a malformed path',
      plain(400, "request body: path: 'x' did not match pattern '(/.*)'"),
      'malformed-path',
    ],
    [
      'an app without the permission',
      plain(400, 'Your API app is not allowed to call this function.'),
      'not-allowed',
    ],
    [
      'a scope that the app lacks',
      plain(
        400,
        "Your app is not permitted to access this endpoint because it does not have the required scope 'x'.",
      ),
      'not-allowed',
    ],
    [
      'a scope that the token lacks',
      tag(401, { '.tag': 'missing_scope', required_scope: 'x' }),
      'not-allowed',
    ],
    ['a malformed token', plain(400, 'The given OAuth 2 access token is malformed.'), 'unauthorized'],
    ['a revoked token', tag(401, { '.tag': 'invalid_access_token' }), 'unauthorized'],
    ['an expired token that cannot be renewed', tag(401, { '.tag': 'expired_access_token' }), 'unauthorized'],
    ['a suspended user', tag(401, { '.tag': 'user_suspended' }), 'unauthorized'],
    ['an unknown token error', tag(401, { '.tag': 'moon_phase' }), 'unauthorized'],
    [
      'an account of the wrong type',
      tag(403, { '.tag': 'invalid_account_type', invalid_account_type: { '.tag': 'endpoint' } }),
      'not-allowed',
    ],
    ['a wrong root', tag(422, { '.tag': 'no_permission' }), 'wrong-namespace'],
    [
      'restricted content',
      tag(409, { '.tag': 'path', path: { '.tag': 'restricted_content' } }),
      'restricted',
    ],
    ['an unknown lookup error', tag(409, { '.tag': 'path', path: { '.tag': 'moon_phase' } }), 'bad-request'],
    ['an error named like a property of all objects', tag(409, { '.tag': 'constructor' }), 'bad-request'],
  ])(
    'a call refused for %s fails at once with the right failure and the request id',
    async (_what, answer, failure) => {
      const { service, remote } = scripted;
      service.on(STAT, answer);
      await expect(remote.stat(at('/f'))).rejects.toMatchObject({
        failure,
        details: { requestId: REQUEST_ID },
      });
      expect(service.calls).toHaveLength(1);
    },
  );

  test('stat of a missing path returns undefined', async () => {
    scripted.service.on(STAT, notFound);
    expect(await scripted.remote.stat(at('/f'))).toBeUndefined();
  });
});

test.each<[string, Answer]>([
  ['403 with the page of a proxy', text(403, '<html>blocked</html>')],
  ['400 with the page of a proxy', text(400, '<html>bad request</html>')],
  ['404 in plain text', text(404, 'no such route')],
  ['413 of a proxy', text(413, '<html>too large</html>')],
  ['418', text(418, 'short and stout')],
  ['405', text(405, '')],
  ['a redirect', text(302, '', { location: 'http://elsewhere.example/' })],
  ["another API's error", json(403, { error: { code: 403, message: 'blocked' } })],
])('%s is not taken for an answer of the service and fails with foreign', async (_what, answer) => {
  const { service, remote } = scripted;
  service.on(STAT, answer);
  await expect(remote.stat(at('/f'))).rejects.toMatchObject({ failure: 'foreign' });
});

describe('secrets', () => {
  test('errors and log never contain the token, even when the service quotes it', async () => {
    const { service, remote, clock, log } = scripted;
    service.on(
      STAT,
      text(500, TOKEN),
      text(400, `Invalid authorization value in HTTP header "Authorization": "Bearer ${TOKEN}".`),
    );
    const error: unknown = await clock.during(remote.stat(at('/f')).catch((caught: unknown) => caught));
    expect(error).toMatchObject({ failure: 'unauthorized' });
    expect(service.calls[0]?.headers.authorization).toBe(`Bearer ${TOKEN}`);
    expect(everythingIn(error)).not.toContain(TOKEN);
    expect(log.lines).not.toEqual([]);
    expect(JSON.stringify(log.lines)).not.toContain(TOKEN);
  });

  test('a token with a line break is refused without being shown', () => {
    const token = 'sl.secret\nX-Injected: 1';
    const open = () =>
      createRemote({
        apiUrl: scripted.service.url,
        contentUrl: scripted.service.url,
        notifyUrl: scripted.service.url,
        credentials: { token },
        root: '',
        clock: scripted.clock,
        log: scripted.log,
      });
    expect(open).toThrow(/access token/);
    expect(open).not.toThrow(/secret/);
  });
});

describe('aborted calls', () => {
  test('an aborted call closes its connection at once and fails with the reason of the abort', async () => {
    const { service, remote } = scripted;
    service.on(STAT, hang);
    const abort = new AbortController();
    const stat = remote.stat(at('/f'), abort.signal);
    await service.until(() => service.calls.length === 1);
    const reason = new Error('the client has gone');
    abort.abort(reason);
    await expect(stat).rejects.toBe(reason);
    await service.until(() => service.aborted === 1);
  });

  test('an aborted call ends its wait for the next try', async () => {
    const { service, remote, clock } = scripted;
    service.on(STAT, text(503, '', { 'retry-after': '20' }));
    const abort = new AbortController();
    const stat = remote.stat(at('/f'), abort.signal);
    await clock.untilSleeping();
    const reason = new Error('the client has gone');
    abort.abort(reason);
    await expect(stat).rejects.toBe(reason);
    expect(clock.sleeping).toBe(0);
  });
});

test('close fails running calls and all later ones with offline', async () => {
  const { service, remote } = scripted;
  service.on(STAT, hang);
  const stat = remote.stat(at('/f'));
  await service.until(() => service.calls.length === 1);
  const failed = expect(stat).rejects.toMatchObject({ failure: 'offline' });
  await remote.close();
  await failed;
  await expect(remote.stat(at('/f'))).rejects.toMatchObject({ failure: 'offline' });
  expect(service.calls).toHaveLength(1);
});

describe('a server that does not speak HTTP', () => {
  let server: Server;
  const sockets: Socket[] = [];

  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
    server.close();
  });

  test('a stat of a server that does not speak HTTP fails with offline', async () => {
    server = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
      socket.end('SSH-2.0-OpenSSH_9.9\r\n');
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await scripted.close();
    scripted = await openScripted({ apiUrl: url, random: () => 0.9 });
    await expect(scripted.clock.during(scripted.remote.stat(at('/f')))).rejects.toMatchObject({
      failure: 'offline',
    });
  });
});

/** Returns the message, stack and fields of an error and of its causes. */
function everythingIn(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const own = JSON.stringify(error, Object.getOwnPropertyNames(error));
  return `${own}${error.stack}${error.cause === undefined ? '' : everythingIn(error.cause)}`;
}
