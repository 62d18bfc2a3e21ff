import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { finished } from '../support/jobs.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { startTestService, type TestService } from '../support/service.ts';
import { put, refusal, refusalIn, rpc } from '../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const call = (name: string, argument: unknown) => rpc(service, `files/${name}`, argument);
const stat = async (path: string) => (await call('get_metadata', { path })).json as Record<string, unknown>;
const JOB = { '.tag': 'async_job_id', async_job_id: expect.stringMatching(/^dbjid:[\w-]{32}$/) };

const ID = expect.stringMatching(/^id:[\w-]{22}$/);

function folder(path: string): object {
  return { name: path.split('/').at(-1), path_lower: path.toLowerCase(), path_display: path, id: ID };
}

describe('files/create_folder_batch', () => {
  test('create_folder_batch of a few folders answers at once, each entry in its place with its own outcome', async () => {
    await put(service, '/Taken', 'text');
    const answered = await call('create_folder_batch', {
      paths: ['/Made/B', '/Taken', '/made/b', '/Made/b//c', '/Made/A'],
    });
    expect([answered.status, answered.json]).toEqual([
      200,
      {
        '.tag': 'complete',
        entries: [
          { '.tag': 'success', metadata: folder('/Made/B') },
          {
            '.tag': 'failure',
            failure: { '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'file' } } },
          },
          { '.tag': 'success', metadata: folder('/Made/B') },
          { '.tag': 'failure', failure: { '.tag': 'path', path: { '.tag': 'malformed_path' } } },
          { '.tag': 'success', metadata: folder('/Made/A') },
        ],
      },
    ]);
  });

  test('create_folder_batch answers the same folder twice for a path named twice, also with autorename', async () => {
    await call('create_folder_v2', { path: '/Twice' });
    const { json } = await call('create_folder_batch', { paths: ['/Twice', '/Twice'], autorename: true });
    const { entries } = json as { entries: object[] };
    expect(entries).toEqual(
      Array.from({ length: 2 }, () => ({ '.tag': 'success', metadata: folder('/Twice (1)') })),
    );
    expect(entries[0]).toEqual(entries[1]);
  });

  test('create_folder_batch of 120 folders, or with force_async, answers with a job', async () => {
    const paths = Array.from({ length: 120 }, (_, index) => `/Many/${index}`);
    const entries = await finished(service, 'create_folder_batch', { paths });
    expect(entries).toEqual(paths.map((path) => ({ '.tag': 'success', metadata: folder(path) })));
    const launched = await call('create_folder_batch', { paths: ['/Forced'], force_async: true });
    expect(launched.json).toEqual(JOB);
  });

  test('create_folder_batch of no paths answers complete without entries', async () => {
    const { json } = await call('create_folder_batch', { paths: [] });
    expect(json).toEqual({ '.tag': 'complete', entries: [] });
  });
});

describe('files/delete_batch', () => {
  test('delete_batch answers with a job, and each entry has the deleted metadata or its own failure', async () => {
    await put(service, '/Del/File', 'text');
    await put(service, '/Del/Kept', 'text');
    await put(service, '/Del/Folder/x', 'text');
    const file = await stat('/Del/File');
    const tree = await stat('/Del/Folder');
    const launched = await call('delete_batch', { entries: [{ path: '/del/file' }] });
    expect([launched.status, launched.json]).toEqual([200, JOB]);
    await finished(service, 'delete_batch', launched);
    await call('restore', { path: '/Del/File', rev: file['rev'] });
    const restored = await stat('/Del/File');
    const entries = await finished(service, 'delete_batch', {
      entries: [
        { path: '/del/file', parent_rev: restored['rev'] },
        { path: '/Del/File' },
        { path: '/Del/Kept', parent_rev: file['rev'] },
        { path: tree['id'] },
        { path: '/Del/' },
      ],
    });
    expect(entries).toEqual([
      { '.tag': 'success', metadata: restored },
      { '.tag': 'failure', failure: { '.tag': 'path_lookup', path_lookup: { '.tag': 'not_found' } } },
      {
        '.tag': 'failure',
        failure: {
          '.tag': 'path_write',
          path_write: { '.tag': 'conflict', conflict: { '.tag': 'file' } },
        },
      },
      { '.tag': 'success', metadata: tree },
      { '.tag': 'failure', failure: { '.tag': 'path_lookup', path_lookup: { '.tag': 'malformed_path' } } },
    ]);
    const { json } = await call('list_folder', { path: '/Del' });
    expect(json).toMatchObject({ entries: [{ name: 'Kept' }] });
  });
});

describe.each([
  ['move', false],
  ['copy', true],
] as const)('%s_batch_v2', (verb, copies) => {
  test(`${verb}_batch_v2 runs its entries in order in a job, and each succeeds or fails by itself`, async () => {
    const root = `/${verb}`;
    await put(service, `${root}/a`, 'text');
    await put(service, `${root}/b`, 'text');
    const before = await stat(`${root}/a`);
    const entries = await finished(service, `${verb}_batch_v2`, {
      entries: [
        { from_path: `${root}/a`, to_path: `${root}/new/A` },
        { from_path: `${root}/new/A`, to_path: `${root}/next` },
        { from_path: `${root}/none`, to_path: `${root}/x` },
        { from_path: `${root}/b`, to_path: `${root}/NEXT` },
        { from_path: `${root}/new`, to_path: `${root}/new/inside` },
        { from_path: `${root}/b`, to_path: 'id:nothing' },
      ],
    });
    const moved = await stat(`${root}/next`);
    expect(entries).toEqual([
      {
        '.tag': 'success',
        success: expect.objectContaining({ '.tag': 'file', name: 'A', path_display: `${root}/new/A` }),
      },
      { '.tag': 'success', success: moved },
      relocationFailure('from_lookup', { '.tag': 'not_found' }),
      relocationFailure('to', { '.tag': 'conflict', conflict: { '.tag': 'file' } }),
      {
        '.tag': 'failure',
        failure: {
          '.tag': 'relocation_error',
          relocation_error: {
            '.tag': copies ? 'duplicated_or_nested_paths' : 'cant_move_folder_into_itself',
          },
        },
      },
      relocationFailure('to', { '.tag': 'malformed_path' }),
    ]);
    expect(moved['id'] === before['id']).toBe(!copies);
    expect((await stat(`${root}/a`))['id']).toBe(copies ? before['id'] : undefined);
  });

  test(`${verb}_batch_v2 with autorename takes a free name`, async () => {
    await put(service, `/${verb}-again/a`, 'text');
    await put(service, `/${verb}-again/b`, 'text');
    const entries = await finished(service, `${verb}_batch_v2`, {
      entries: [{ from_path: `/${verb}-again/a`, to_path: `/${verb}-again/b` }],
      autorename: true,
    });
    expect(entries).toMatchObject([{ success: { name: 'b (1)' } }]);
  });

  test(`${verb}_batch_v2 of no entries or of 1,001 answers 400`, async () => {
    const entry = { from_path: '/a', to_path: '/b' };
    for (const entries of [[], Array(1001).fill(entry)]) {
      const answered = await call(`${verb}_batch_v2`, { entries });
      expect(answered.status).toBe(400);
      expect(answered.text).toMatch(/request body: entries: must have at (least|most) /);
    }
  });

  test(`allow_ownership_transfer is ${copies ? 'unknown' : 'taken'}`, async () => {
    const entries = [{ from_path: '/nothing', to_path: '/b' }];
    const answered = await call(`${verb}_batch_v2`, { entries, allow_ownership_transfer: true });
    expect(answered.status).toBe(copies ? 400 : 200);
  });
});

function relocationFailure(tag: string, inner: object): object {
  const error = { '.tag': tag, [tag]: inner };
  return { '.tag': 'failure', failure: { '.tag': 'relocation_error', relocation_error: error } };
}

describe('jobs of batches', () => {
  const checks = [
    'create_folder_batch/check',
    'delete_batch/check',
    'move_batch/check_v2',
    'copy_batch/check_v2',
    'upload_session/finish_batch/check',
  ];
  const unknown = refusal(409, 'invalid_async_job_id', { '.tag': 'invalid_async_job_id' });

  test.each(checks)(
    '%s answers invalid_async_job_id for an unknown job and for one of another kind',
    async (check) => {
      expect(refusalIn(await call(check, { async_job_id: 'dbjid:unknown' }))).toEqual(unknown);
      const other = check.startsWith('delete') ? 'copy_batch_v2' : 'delete_batch';
      const entries = other === 'delete_batch' ? [] : [{ from_path: '/a', to_path: '/b' }];
      const { json } = await call(other, { entries });
      const { async_job_id } = json as { async_job_id: string };
      expect(refusalIn(await call(check, { async_job_id }))).toEqual(unknown);
      expect((await call(check, { async_job_id: '' })).status).toBe(400);
    },
  );

  test('delete_batch/check answers invalid_async_job_id for a job of another account', async () => {
    const other = await service.service.addAccount({
      email: 'other@example.org',
      givenName: 'O',
      surname: 'T',
      mayDeletePermanently: false,
    });
    const scopes = ['files.content.write'] as const;
    const token = await service.service.grant({ accountId: other.id, scopes });
    const { json } = await call('delete_batch', { entries: [] });
    const { async_job_id } = json as { async_job_id: string };
    const asked = await rpc(service, 'files/delete_batch/check', { async_job_id }, { token });
    expect(refusalIn(asked)).toEqual(unknown);
  });

  test('an account with 100 jobs under way gets 429 and Retry-After for one more', async () => {
    const stopped = new ManualClock();
    const crowded = await startTestService({ faults: { 'contention-hold-ms': 1 }, clock: stopped });
    const launch = () =>
      rpc(crowded, 'files/move_batch_v2', { entries: [{ from_path: '/a', to_path: '/b' }] });
    // The clock does not advance, so that the first job never reaches its commit.
    const launched = await Promise.all(Array.from({ length: 101 }, launch));
    expect(launched.map(({ status }) => status).sort()).toEqual([...Array(100).fill(200), 429]);
    crowded.service.setFaults({});
    expect(launched.find(({ status }) => status === 429)?.headers.get('retry-after')).toBe('1');
    const [{ json } = { json: undefined }] = launched;
    const asked = await rpc(crowded, 'files/move_batch/check_v2', {
      async_job_id: (json as { async_job_id: string }).async_job_id,
    });
    expect(asked.json).toEqual({ '.tag': 'in_progress' });
    await stopped.during(crowded.close());
  });
});

test('a service that closes lets the step of a batch under way finish, drops the rest, and the job answers internal_error after a restart', async () => {
  const stopped = new ManualClock();
  const first = await startTestService({ faults: { 'contention-hold-ms': 1 }, clock: stopped });
  const paths = Array.from({ length: 200 }, (_, index) => `/Rest/${index}`);
  const launched = await rpc(first, 'files/create_folder_batch', { paths });
  await stopped.untilSleeping();
  const closed = first.service.close();
  await stopped.advance(1);
  await closed;
  const second = await startTestService({ dataDirectory: first.dataDirectory, clock: stopped });
  const { json } = await rpc(second, 'files/list_folder', { path: '/Rest' });
  expect(json).toMatchObject({ entries: { length: 50 }, has_more: false });
  const { async_job_id } = launched.json as { async_job_id: string };
  const checked = await rpc(second, 'files/create_folder_batch/check', { async_job_id });
  expect(refusalIn(checked)).toEqual(refusal(409, 'internal_error', { '.tag': 'internal_error' }));
  await second.close();
  await first.close();
});
