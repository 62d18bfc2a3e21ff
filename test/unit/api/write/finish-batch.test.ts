import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SessionCommit } from '../../../../src/api/write/upload-calls.ts';
import { at, openScripted, type Scripted } from '../../../support/scripted-remote.ts';
import {
  type Answer,
  fileMetadata,
  lose,
  notFound,
  ok,
  tagged,
  text,
} from '../../../support/scripted-service.ts';
import { afterTheCall, STAT } from '../../../support/uploaded-file.ts';

const BATCH = 'files/upload_session/finish_batch_v2';

let scripted: Scripted;
beforeEach(async () => {
  scripted = await openScripted();
  scripted.service.on('files/list_revisions', notFound);
});
afterEach(() => scripted.close());

const hashOf = (name: string) => name.repeat(64).slice(0, 64);

const commit = (name: string): SessionCommit => ({
  session: { id: `session-${name}` },
  sizeBytes: 3,
  contentHash: hashOf(name),
  path: at(`/${name}`),
  options: { mode: { if: 'absent' } },
});
const commits = ['a', 'b', 'c'].map(commit);

const metadata = (name: string) =>
  fileMetadata(`/${name}`, { content_hash: hashOf(name), server_modified: afterTheCall() });
const success = (name: string) => tagged('file', metadata(name));
const done = (name: string) => ({ ...metadata(name), '.tag': 'success' });
const failed = (failure: Record<string, unknown>) => ({ '.tag': 'failure', failure });
const conflict = failed({ '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'file' } } });
const contention = failed({ '.tag': 'too_many_write_operations' });

/** Answers each requested entry by the name in its session. */
const entries =
  (outcomeOf: (name: string) => unknown): Answer =>
  (response, call, request) =>
    ok({ entries: namesIn(call.arg).map(outcomeOf) })(response, call, request);

function namesIn(arg: unknown): string[] {
  const { entries: asked } = arg as { entries: { cursor: { session_id: string } }[] };
  return asked.map(({ cursor }) => cursor.session_id.replace('session-', ''));
}

/** Answers `get_metadata` for the files in `names`, and not-found for others. */
const there =
  (...names: string[]): Answer =>
  (response, call, request) => {
    const name = (call.arg as { path: string }).path.slice(1);
    return (names.includes(name) ? ok(success(name)) : notFound)(response, call, request);
  };

const asked = () => scripted.service.callsOf(BATCH).map(({ arg }) => namesIn(arg));
const finish = () => scripted.uploads.finishSessions(commits);

test('finishSessions returns an outcome for each entry, in the order asked', async () => {
  scripted.service.on(
    BATCH,
    entries((name) => (name === 'b' ? conflict : done(name))),
  );
  expect(await finish()).toMatchObject([{ path: '/a' }, { failure: 'conflict-file' }, { path: '/c' }]);
  expect(scripted.service.routes).toEqual([BATCH]);
  expect(scripted.service.calls[0]?.arg).toMatchObject({
    entries: [
      {
        cursor: { session_id: 'session-a', offset: 3 },
        commit: { path: '/a', mode: { '.tag': 'add' }, strict_conflict: true, autorename: false },
      },
      {},
      {},
    ],
  });
});

test('finishSessions without entries makes no call', async () => {
  expect(await scripted.uploads.finishSessions([])).toEqual([]);
  expect(scripted.service.calls).toEqual([]);
});

test('finishSessions refuses more than 1,000 entries', async () => {
  const tooMany = Array.from({ length: 1001 }, () => commit('a'));
  await expect(scripted.uploads.finishSessions(tooMany)).rejects.toMatchObject({ failure: 'bad-request' });
});

test('finishSessions retries only the entries that met contention, after a second', async () => {
  const { service, clock } = scripted;
  service.on(
    BATCH,
    entries((name) => (name === 'b' ? contention : done(name))),
    entries(done),
  );
  const finished = finish();
  await clock.untilSleeping();
  await clock.advance(999);
  expect(asked()).toEqual([['a', 'b', 'c']]);
  await clock.advance(1);
  expect(await finished).toMatchObject([{ path: '/a' }, { path: '/b' }, { path: '/c' }]);
  expect(asked()).toEqual([['a', 'b', 'c'], ['b']]);
});

test('finishSessions looks up an entry whose outcome is unknown, and retries only the ones with contention', async () => {
  const { service, clock } = scripted;
  const internal = failed({ '.tag': 'internal_error' });
  const used = failed({ '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_found' } });
  const first: Record<string, unknown> = { a: internal, b: contention };
  service
    .on(
      BATCH,
      entries((name) => first[name] ?? done(name)),
      entries((name) => (name === 'a' ? used : done(name))),
    )
    .on(STAT, there('a', 'c'));
  expect(await clock.during(finish())).toMatchObject([{ path: '/a' }, { path: '/b' }, { path: '/c' }]);
  expect(asked()).toEqual([['a', 'b', 'c'], ['b']]);
});

test('finishSessions fails only the entries whose contention lasts to the deadline', async () => {
  const { service, clock } = scripted;
  const nested = failed({ '.tag': 'path', path: { '.tag': 'too_many_write_operations' } });
  service.on(
    BATCH,
    entries((name) => (name === 'b' ? nested : done(name))),
  );
  expect(await clock.during(finish())).toMatchObject([
    { path: '/a' },
    { failure: 'rate-limited' },
    { path: '/c' },
  ]);
});

test('finishSessions fails with hash-mismatch for an entry that was stored with other content', async () => {
  const other = { ...done('b'), content_hash: 'f'.repeat(64) };
  scripted.service.on(
    BATCH,
    entries((name) => (name === 'b' ? other : done(name))),
  );
  expect(await finish()).toMatchObject([{}, { failure: 'hash-mismatch' }, {}]);
});

describe.each<[string, Answer]>([
  ['cut', lose],
  ['500', text(500, '')],
  ['fewer outcomes than entries', ok({ entries: [] })],
])('finishSessions whose answer is lost: %s', (_what, loss) => {
  test('finishSessions whose answer was lost retries only the files that are not there', async () => {
    scripted.service.on(BATCH, loss, entries(done)).on(STAT, there('a', 'c'));
    expect(await finish()).toMatchObject([{ path: '/a' }, { path: '/b' }, { path: '/c' }]);
    expect(asked()).toEqual([['a', 'b', 'c'], ['b']]);
  });

  test('finishSessions whose answer was lost makes no further call when all files are there', async () => {
    scripted.service.on(BATCH, loss).on(STAT, there('a', 'b', 'c'));
    expect(await finish()).toMatchObject([{ path: '/a' }, { path: '/b' }, { path: '/c' }]);
    expect(asked()).toHaveLength(1);
  });

  test('finishSessions whose answer was lost takes a used session or a conflict for success when its own content is there', async () => {
    const used = failed({ '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_found' } });
    let looks = 0;
    scripted.service
      .on(
        BATCH,
        loss,
        entries((name) => (name === 'a' ? used : conflict)),
      )
      .on(STAT, (response, call, request) => {
        looks += 1;
        return (looks <= 3 ? notFound : there('a', 'b'))(response, call, request);
      });
    expect(await finish()).toMatchObject([
      { path: '/a' },
      { path: '/b' },
      { failure: 'conflict-file', details: { isUndone: false } },
    ]);
  });

  test('finishSessions whose answer was lost reports no refusal of a file that cannot be looked up', async () => {
    const limited = text(429, 'slow down', { 'retry-after': '300' });
    scripted.service
      .on(
        BATCH,
        loss,
        entries(() => conflict),
      )
      .on(STAT, notFound, notFound, notFound, limited);
    const unknown = { failure: 'rate-limited', details: { isUndone: false } };
    expect(await finish()).toMatchObject([unknown, unknown, unknown]);
  });
});

test('finishSessions reports unavailable for each missing file while the service stays away', async () => {
  await scripted.close();
  scripted = await openScripted({ random: () => 0.9 });
  scripted.service.on(BATCH, text(503, '')).on(STAT, there('a'));
  expect(await scripted.clock.during(finish())).toMatchObject([
    { path: '/a' },
    { failure: 'unavailable' },
    { failure: 'unavailable' },
  ]);
});

test('finishSessions rejects with the reason of an abort', async () => {
  const abort = new AbortController();
  const reason = new Error('gone');
  scripted.service.on(BATCH, () => abort.abort(reason));
  await expect(scripted.uploads.finishSessions(commits, abort.signal)).rejects.toBe(reason);
});
