import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Meter } from '../../../src/util/meter.ts';
import { silentMeter } from '../../../src/util/meter.ts';
import { at, openScripted, type Scripted } from '../../support/scripted-remote.ts';
import {
  fileMetadata,
  hang,
  json,
  lose,
  notFound,
  ok,
  tagged,
  text,
} from '../../support/scripted-service.ts';

const STAT = 'files/get_metadata';

let events: string[];
let scripted: Scripted;

beforeEach(() => {
  events = [];
});
afterEach(() => scripted.close());

const meter: Meter = {
  ...silentMeter,
  called: ({ route, outcome, ms }) => void events.push(`${route} ${outcome} ${ms}`),
  answered: (status) => void events.push(`answer ${status}`),
  retried: (reason) => void events.push(`retry ${reason}`),
  batched: (commits) => void events.push(`batch ${commits}`),
};

test('the meter counts each try with its outcome and each answer with its status', async () => {
  scripted = await openScripted({ meter });
  scripted.service.on(STAT, text(503, ''), lose, ok(tagged('file', fileMetadata('/a'))));
  await scripted.remote.stat(at('/a'));
  expect(events).toEqual([
    'answer 503',
    `${STAT} server 0`,
    'retry server',
    `${STAT} lost 0`,
    'retry lost',
    'answer 200',
    `${STAT} ok 0`,
  ]);
});

test('the meter counts a refusal once, without a retry', async () => {
  scripted = await openScripted({ meter });
  scripted.service.on(STAT, notFound);
  await scripted.remote.stat(at('/a'));
  expect(events).toEqual(['answer 409', `${STAT} refused 0`]);
});

test("the meter counts a 429 by its reason, and the wait before the retry is not part of a call's duration", async () => {
  scripted = await openScripted({ meter });
  const limited = json(
    429,
    {
      error_summary: 'too_many_requests/',
      error: { reason: { '.tag': 'too_many_requests' }, retry_after: 7 },
    },
    { 'retry-after': '7' },
  );
  scripted.service.on(STAT, limited, ok(tagged('file', fileMetadata('/a'))));
  await scripted.clock.during(scripted.remote.stat(at('/a')));
  expect(events).toEqual([
    'answer 429',
    `${STAT} rate-limited 0`,
    'retry rate-limited',
    'answer 200',
    `${STAT} ok 0`,
  ]);
});

test('the meter counts an aborted call as cancelled, not as lost', async () => {
  scripted = await openScripted({ meter });
  scripted.service.on(STAT, hang);
  const gone = new AbortController();
  const found = scripted.remote.stat(at('/a'), gone.signal);
  await scripted.service.until(() => scripted.service.calls.length === 1);
  gone.abort(new Error('the client has gone'));
  await expect(found).rejects.toThrow('the client has gone');
  expect(events).toEqual([`${STAT} cancelled 0`]);
});

test('the meter counts calls for access tokens, and a call with a stale token by that outcome', async () => {
  scripted = await openScripted({ meter, credentials: { appKey: 'k', refreshToken: 'r' } });
  const grant = (token: string) => ok({ access_token: token, token_type: 'bearer', expires_in: 14_400 });
  scripted.service.on('oauth2/token', grant('one'), grant('two'));
  const expired = json(401, {
    error_summary: 'expired_access_token/',
    error: { '.tag': 'expired_access_token' },
  });
  scripted.service.on(STAT, expired, ok(tagged('file', fileMetadata('/a'))));
  await scripted.remote.stat(at('/a'));
  expect(events).toEqual([
    'answer 200',
    'oauth2/token ok 0',
    'answer 401',
    `${STAT} stale-token 0`,
    'answer 200',
    'oauth2/token ok 0',
    'answer 200',
    `${STAT} ok 0`,
  ]);
});

test('the meter counts the commits in one batch call', async () => {
  scripted = await openScripted({ meter });
  const commits = ['a', 'b', 'c'].map((name) => ({
    session: { id: name },
    sizeBytes: 3,
    path: at(`/${name}`),
    options: { mode: { if: 'any' } as const },
  }));
  const done = (name: string) => ({ '.tag': 'success', ...fileMetadata(`/${name}`) });
  scripted.service.on('files/upload_session/finish_batch_v2', ok({ entries: ['a', 'b', 'c'].map(done) }));
  await scripted.uploads.finishSessions(commits);
  expect(events[0]).toBe('batch 3');
});

test('status shows the bytes of bodies in both directions, and the calls by lane', async () => {
  scripted = await openScripted();
  const { remote, uploads, service } = scripted;
  const idle = { waiting: 0, running: 0 };
  const names = ['metadata', 'read', 'commit', 'upload', 'session', 'staging', 'prefetch'];
  const lanes = Object.fromEntries(names.map((name) => [name, idle]));
  expect(remote.status()).toEqual({
    lanes,
    isPaused: false,
    sentBytes: 0,
    receivedBytes: 0,
    serviceAheadMs: 0,
  });

  service.on('files/upload', hang);
  const gone = new AbortController();
  const calls = ['/a', '/b', '/c'].map((path) =>
    uploads.upload(at(path), new Uint8Array(300_000), { mode: { if: 'any' } }, gone.signal),
  );
  const ended = Promise.allSettled(calls);
  await service.until(() => service.calls.length === 2);
  expect(remote.status().lanes).toEqual({ ...lanes, upload: { waiting: 1, running: 2 } });
  expect(remote.status().sentBytes).toBe(600_000);
  gone.abort(new Error('the client has gone'));
  await ended;
  expect(remote.status().lanes).toEqual(lanes);

  const answer = tagged('file', fileMetadata('/a'));
  service.on(STAT, ok(answer));
  await remote.stat(at('/a'));
  expect(remote.status().receivedBytes).toBe(JSON.stringify(answer).length);
  const argument = service.callsOf(STAT)[0]?.body.length ?? 0;
  expect(remote.status().sentBytes).toBe(600_000 + argument);
});
