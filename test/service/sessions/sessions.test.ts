import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import {
  type Answered,
  download,
  put,
  refusal,
  refusalIn,
  rpc,
  upload,
} from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const BLOCK = 4 * 1024 * 1024;

const send = (step: string, argument: object, body: Uint8Array | string = '') =>
  upload(service, `files/upload_session/${step}`, argument, { body });

async function started(argument: object = {}, body: Uint8Array | string = ''): Promise<string> {
  const answered = await send('start', argument, body);
  expect(answered.json).toEqual({ session_id: expect.any(String) });
  return (answered.json as { session_id: string }).session_id;
}

const at = (session: string, offset: number) => ({ cursor: { session_id: session, offset } });

describe('sequential session', () => {
  test('start, append_v2 and finish store a file', async () => {
    const session = await started({}, 'one ');
    const appended = await send('append_v2', at(session, 4), 'two ');
    expect([appended.status, appended.text]).toEqual([200, 'null']);
    const commit = { path: '/sequential', client_modified: '2020-01-01T00:00:00Z' };
    const finished = await send('finish', { ...at(session, 8), commit }, 'three');
    expect(finished.json).toEqual({
      name: 'sequential',
      path_lower: '/sequential',
      path_display: '/sequential',
      id: expect.any(String),
      client_modified: '2020-01-01T00:00:00Z',
      server_modified: expect.any(String),
      rev: expect.any(String),
      size: 13,
      is_downloadable: true,
      content_hash: contentHashOf(Buffer.from('one two three')),
    });
    expect((await download(service, '/sequential')).text).toBe('one two three');
  });

  test('append_v2 and finish at a wrong offset answer incorrect_offset with the right one', async () => {
    const session = await started({}, '123456789');
    expect(refusalIn(await send('append_v2', at(session, 5), 'x'))).toEqual(
      refusal(409, 'incorrect_offset', { '.tag': 'incorrect_offset', correct_offset: 9 }),
    );
    const commit = { path: '/offset' };
    expect(refusalIn(await send('finish', { ...at(session, 5), commit }))).toEqual(
      refusal(409, 'lookup_failed/incorrect_offset', {
        '.tag': 'lookup_failed',
        lookup_failed: { '.tag': 'incorrect_offset', correct_offset: 9 },
      }),
    );
    expect((await send('finish', { ...at(session, 9), commit })).status).toBe(200);
  });

  test('append_v2 to a closed session answers closed', async () => {
    const session = await started({ close: true }, 'all');
    expect(refusalIn(await send('append_v2', at(session, 3), 'x'))).toEqual(
      refusal(409, 'closed', { '.tag': 'closed' }),
    );
  });

  test('append_v2 and finish of an unknown session answer not_found', async () => {
    expect(refusalIn(await send('append_v2', at('nothing', 0)))).toEqual(
      refusal(409, 'not_found', { '.tag': 'not_found' }),
    );
    expect(refusalIn(await send('finish', { ...at('nothing', 0), commit: { path: '/x' } }))).toEqual(
      refusal(409, 'lookup_failed/not_found', {
        '.tag': 'lookup_failed',
        lookup_failed: { '.tag': 'not_found' },
      }),
    );
  });

  test('start, append_v2 and finish with a wrong content_hash add no bytes', async () => {
    const argument = { content_hash: '0'.repeat(64) };
    const mismatch = refusal(409, 'content_hash_mismatch', { '.tag': 'content_hash_mismatch' });
    expect(refusalIn(await send('start', argument, 'x'))).toEqual(mismatch);
    const session = await started();
    expect(refusalIn(await send('append_v2', { ...at(session, 0), ...argument }, 'x'))).toEqual(mismatch);
    const commit = { path: '/mismatch' };
    expect(refusalIn(await send('finish', { ...at(session, 0), commit, ...argument }, 'x'))).toEqual(
      mismatch,
    );
    expect((await send('finish', { ...at(session, 0), commit }, 'y')).json).toMatchObject({ size: 1 });
  });

  test.each([
    ['/taken', 'path/conflict/file', { '.tag': 'conflict', conflict: { '.tag': 'file' } }],
    ['/a//b', 'path/malformed_path', { '.tag': 'malformed_path' }],
    ['no-slash', 'path/malformed_path', { '.tag': 'malformed_path' }],
    ['/.dropbox', 'path/disallowed_name', { '.tag': 'disallowed_name' }],
    ['ns:1/x', 'path/no_write_permission', { '.tag': 'no_write_permission' }],
  ])('finish at %s answers %s without the nesting of upload', async (path, summary, error) => {
    await put(service, '/taken', 'something else');
    const session = await started({}, 'text');
    expect(refusalIn(await send('finish', { ...at(session, 4), commit: { path } }))).toEqual(
      refusal(409, summary, { '.tag': 'path', path: error }),
    );
  });
});

test('the session id in a refused upload has all its bytes, and finish alone stores them', async () => {
  await put(service, '/taken', 'other');
  const bytes = pseudoRandomBytes(100_000, 5);
  const refused = await upload(service, 'files/upload', { path: '/taken' }, { body: bytes });
  expect(refusalIn(refused)).toMatchObject({ status: 409, summary: 'path/conflict/file' });
  const { error } = refused.json as { error: { upload_session_id: string } };
  const commit = { path: '/free' };
  const finished = await send('finish', { ...at(error.upload_session_id, bytes.length), commit });
  expect([finished.status, finished.json]).toEqual([
    200,
    expect.objectContaining({ name: 'free', content_hash: contentHashOf(bytes) }),
  ]);
});

describe('concurrent session', () => {
  const begin = () => started({ session_type: 'concurrent' });

  test('a concurrent session takes its parts in any order', async () => {
    const bytes = pseudoRandomBytes(2 * BLOCK + 5, 1);
    const session = await begin();
    const last = { ...at(session, 2 * BLOCK), close: true };
    const sent = await Promise.all([
      send('append_v2', last, bytes.subarray(2 * BLOCK)),
      send('append_v2', at(session, BLOCK), bytes.subarray(BLOCK, 2 * BLOCK)),
      send('append_v2', at(session, 0), bytes.subarray(0, BLOCK)),
    ]);
    expect(sent.map(({ status }) => status)).toEqual([200, 200, 200]);
    const commit = { path: '/concurrent' };
    const finished = await send('finish', { ...at(session, bytes.length), commit });
    expect(finished.json).toMatchObject({ size: bytes.length, content_hash: contentHashOf(bytes) });
  });

  test.each<[string, () => Promise<Answered>]>([
    [
      'concurrent_session_data_not_allowed',
      () => send('start', { session_type: { '.tag': 'concurrent' } }, 'x'),
    ],
    [
      'concurrent_session_close_not_allowed',
      () => send('start', { session_type: 'concurrent', close: true }),
    ],
    [
      'concurrent_session_invalid_offset',
      async () => send('append_v2', at(await begin(), 5), Buffer.alloc(BLOCK)),
    ],
    ['concurrent_session_invalid_data_size', async () => send('append_v2', at(await begin(), 0), 'x')],
    [
      'concurrent_session_data_not_allowed',
      async () => send('finish', { ...at(await begin(), 0), commit: { path: '/x' } }, 'x'),
    ],
    [
      'concurrent_session_not_closed',
      async () => send('finish', { ...at(await begin(), 0), commit: { path: '/x' } }),
    ],
    [
      'concurrent_session_missing_data',
      async () => {
        const session = await begin();
        await send('append_v2', { ...at(session, BLOCK), close: true }, 'x');
        return send('finish', { ...at(session, BLOCK + 1), commit: { path: '/x' } });
      },
    ],
  ])('a concurrent session refuses with %s', async (tag, call) => {
    expect(refusalIn(await call())).toEqual(refusal(409, tag, { '.tag': tag }));
  });
});

describe('upload_session/finish_batch_v2', () => {
  const finish = (entries: object[]) => rpc(service, 'files/upload_session/finish_batch_v2', { entries });

  test('finish_batch_v2 answers each entry in its place', async () => {
    await put(service, '/batch/taken', 'something else');
    const [first, second, third, open] = await Promise.all([
      started({ close: true }, 'one'),
      started({ close: true }, 'two'),
      started({ close: true }, 'three'),
      started({}, 'open'),
    ]);
    const answered = await finish([
      { ...at(first, 3), commit: { path: '/batch/1' } },
      { ...at(second, 3), commit: { path: '/batch/taken' } },
      { ...at('nothing', 0), commit: { path: '/batch/2' } },
      { ...at(second, 3), commit: { path: 'no-slash' } },
      { ...at(open, 4), commit: { path: '/batch/3' } },
      { ...at(third, 5), commit: { path: '/batch/4' } },
    ]);
    expect(answered.status).toBe(200);
    expect(answered.json).toEqual({
      entries: [
        {
          '.tag': 'success',
          name: '1',
          path_lower: '/batch/1',
          path_display: '/batch/1',
          id: expect.any(String),
          client_modified: expect.any(String),
          server_modified: expect.any(String),
          rev: expect.any(String),
          size: 3,
          is_downloadable: true,
          content_hash: contentHashOf(Buffer.from('one')),
        },
        {
          '.tag': 'failure',
          failure: { '.tag': 'path', path: { '.tag': 'conflict', conflict: { '.tag': 'file' } } },
        },
        {
          '.tag': 'failure',
          failure: { '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_found' } },
        },
        { '.tag': 'failure', failure: { '.tag': 'path', path: { '.tag': 'malformed_path' } } },
        {
          '.tag': 'failure',
          failure: { '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_closed' } },
        },
        expect.objectContaining({ '.tag': 'success', name: '4', size: 5 }),
      ],
    });
  });

  test('finish_batch_v2 of no entries answers no entries', async () => {
    expect((await finish([])).json).toEqual({ entries: [] });
  });
});
