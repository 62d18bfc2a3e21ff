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

let told: string[];
let scripted: Scripted;

beforeEach(() => {
  told = [];
});
afterEach(() => scripted.close());

const meter: Meter = {
  ...silentMeter,
  called: ({ route, outcome, ms }) => void told.push(`${route} ${outcome} ${ms}`),
  answered: (status) => void told.push(`answer ${status}`),
  retried: (reason) => void told.push(`retry ${reason}`),
  batched: (commits) => void told.push(`batch ${commits}`),
};

test('each try is told with its outcome, each answer with its status', async () => {
  scripted = await openScripted({ meter });
  scripted.service.on(STAT, text(503, ''), lose, ok(tagged('file', fileMetadata('/a'))));
  await scripted.remote.stat(at('/a'));
  expect(told).toEqual([
    'answer 503',
    `${STAT} server 0`,
    'retry server',
    `${STAT} lost 0`,
    'retry lost',
    'answer 200',
    `${STAT} ok 0`,
  ]);
});

test('a refusal is no trouble: told, and not tried again', async () => {
  scripted = await openScripted({ meter });
  scripted.service.on(STAT, notFound);
  await scripted.remote.stat(at('/a'));
  expect(told).toEqual(['answer 409', `${STAT} refused 0`]);
});

test('429 is told by its reason; the wait for leave is no part of the call', async () => {
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
  expect(told).toEqual([
    'answer 429',
    `${STAT} rate-limited 0`,
    'retry rate-limited',
    'answer 200',
    `${STAT} ok 0`,
  ]);
});

test('what nobody wants any more is cancelled, and not lost', async () => {
  scripted = await openScripted({ meter });
  scripted.service.on(STAT, hang);
  const gone = new AbortController();
  const found = scripted.remote.stat(at('/a'), gone.signal);
  await scripted.service.until(() => scripted.service.calls.length === 1);
  gone.abort(new Error('the client has gone'));
  await expect(found).rejects.toThrow('the client has gone');
  expect(told).toEqual([`${STAT} cancelled 0`]);
});

test('the calls for access tokens are calls too, and one that is stale is told', async () => {
  scripted = await openScripted({ meter, credentials: { appKey: 'k', refreshToken: 'r' } });
  const grant = (token: string) => ok({ access_token: token, token_type: 'bearer', expires_in: 14_400 });
  scripted.service.on('oauth2/token', grant('one'), grant('two'));
  const expired = json(401, {
    error_summary: 'expired_access_token/',
    error: { '.tag': 'expired_access_token' },
  });
  scripted.service.on(STAT, expired, ok(tagged('file', fileMetadata('/a'))));
  await scripted.remote.stat(at('/a'));
  expect(told).toEqual([
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

test('how many commits go out in one call', async () => {
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
  expect(told[0]).toBe('batch 3');
});

test('bytes of bodies both ways, and the calls under way by lane', async () => {
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
