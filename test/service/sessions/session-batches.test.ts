import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contentHashOf } from '../../../src/util/content-hash.ts';
import { pseudoRandomBytes } from '../../support/bytes.ts';
import { finished } from '../../support/jobs.ts';
import { startTestService, type TestService } from '../../support/service.ts';
import { type Answered, download, refusal, refusalIn, rpc, upload } from '../../support/service-client.ts';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.close());

const call = (name: string, argument: unknown) => rpc(service, `files/${name}`, argument);
const stat = async (path: string) => (await call('get_metadata', { path })).json as Record<string, unknown>;
const untagged = ({ '.tag': _, ...metadata }: Record<string, unknown>) => metadata;

describe('upload_session/start_batch and append_batch', () => {
  const BLOCK = 4 * 1024 * 1024;
  const start = async (argument: object): Promise<string[]> => {
    const { json } = await call('upload_session/start_batch', argument);
    return (json as { session_ids: string[] }).session_ids;
  };
  const append = (argument: object, body: Uint8Array): Promise<Answered> =>
    upload(service, 'files/upload_session/append_batch', argument, { body });
  const piece = (session_id: string, offset: number, length: number, close = false) => ({
    cursor: { session_id, offset },
    length,
    close,
  });

  test('append_batch adds the pieces of several sessions from one body, and finish_batch commits them', async () => {
    const [first = '', second = '', ...more] = await start({ num_sessions: 20 });
    expect(new Set([first, second, ...more]).size).toBe(20);
    expect(first).toMatch(/^pid_upload_session:[\w-]+$/);
    const one = pseudoRandomBytes(BLOCK + 1000, 1);
    const two = pseudoRandomBytes(500, 2);
    const body = Buffer.concat([one.subarray(0, 700), two, one.subarray(700)]);
    const answered = await append(
      {
        entries: [
          piece(first, 0, 700),
          piece(second, 0, 500, true),
          piece(first, 700, one.length - 700, true),
          piece(second, 500, 0),
        ],
        content_hash: contentHashOf(body),
      },
      body,
    );
    expect([answered.status, answered.json]).toEqual([
      200,
      {
        entries: [
          { '.tag': 'success' },
          { '.tag': 'success' },
          { '.tag': 'success' },
          { '.tag': 'failure', failure: { '.tag': 'closed' } },
        ],
      },
    ]);
    const entries = await finished(service, 'upload_session/finish_batch', {
      entries: [
        { cursor: { session_id: first, offset: one.length }, commit: { path: '/Batch/one' } },
        { cursor: { session_id: second, offset: 500 }, commit: { path: '/Batch/two' } },
        { cursor: { session_id: more[0], offset: 0 }, commit: { path: '/Batch/open' } },
        { cursor: { session_id: second, offset: 500 }, commit: { path: 'rubbish' } },
      ],
    });
    const file = await stat('/Batch/one');
    expect(file['content_hash']).toBe(contentHashOf(one));
    expect(entries).toEqual([
      { '.tag': 'success', ...untagged(file) },
      { '.tag': 'success', ...untagged(await stat('/Batch/two')) },
      {
        '.tag': 'failure',
        failure: { '.tag': 'lookup_failed', lookup_failed: { '.tag': 'not_closed' } },
      },
      { '.tag': 'failure', failure: { '.tag': 'path', path: { '.tag': 'malformed_path' } } },
    ]);
  });

  test('append_batch refuses each invalid piece by itself and adds the valid one', async () => {
    const [session = ''] = await start({ num_sessions: 1 });
    const [concurrent = ''] = await start({ num_sessions: 1, session_type: 'concurrent' });
    const { json } = await append(
      {
        entries: [
          piece('unknown', 0, 3),
          piece(session, 2, 3),
          piece(concurrent, 1, 3),
          piece(concurrent, 0, 3),
          piece(session, 0, 2),
          piece(session, 2 ** 41, 1),
        ],
      },
      Buffer.from('aaabbbcccdddeef'),
    );
    const failure = (tag: string, fields = {}) => ({
      '.tag': 'failure',
      failure: { '.tag': tag, ...fields },
    });
    expect(json).toEqual({
      entries: [
        failure('not_found'),
        failure('incorrect_offset', { correct_offset: 0 }),
        failure('concurrent_session_invalid_offset'),
        failure('concurrent_session_invalid_data_size'),
        { '.tag': 'success' },
        failure('incorrect_offset', { correct_offset: 2 }),
      ],
    });
  });

  test('append_batch with a wrong length or hash of its body adds nothing', async () => {
    const [session = ''] = await start({ num_sessions: 1 });
    const entries = [piece(session, 0, 3), piece(session, 3, 3)];
    for (const body of ['aaabb', 'aaabbbc', '']) {
      const answered = await append({ entries }, Buffer.from(body));
      expect(refusalIn(answered)).toEqual(refusal(409, 'length_mismatch', { '.tag': 'length_mismatch' }));
    }
    const wrong = await append(
      { entries, content_hash: contentHashOf(Buffer.from('aaabbc')) },
      Buffer.from('aaabbb'),
    );
    expect(refusalIn(wrong)).toEqual(
      refusal(409, 'content_hash_mismatch', { '.tag': 'content_hash_mismatch' }),
    );
    const much = await append({ entries: [piece(session, 0, 150 * 1024 * 1024 + 1)] }, Buffer.from('a'));
    expect(refusalIn(much)).toEqual(refusal(409, 'payload_too_large', { '.tag': 'payload_too_large' }));
    expect((await append({ entries }, Buffer.from('aaabbb'))).json).toEqual({
      entries: [{ '.tag': 'success' }, { '.tag': 'success' }],
    });
  });

  test('upload_session/append adds bytes and answers incorrect_offset to a wrong offset', async () => {
    const [session_id = ''] = await start({ num_sessions: 1 });
    const send = (offset: number, body: string) =>
      upload(service, 'files/upload_session/append', { session_id, offset }, { body });
    const answered = await send(0, 'te');
    expect([answered.status, answered.text]).toEqual([200, 'null']);
    expect(refusalIn(await send(0, 'xt'))).toEqual(
      refusal(409, 'incorrect_offset', { '.tag': 'incorrect_offset', correct_offset: 2 }),
    );
    const commit = { cursor: { session_id, offset: 2 }, commit: { path: '/Appended' } };
    expect((await upload(service, 'files/upload_session/finish', commit, { body: 'xt' })).status).toBe(200);
    expect((await download(service, '/Appended')).text).toBe('text');
  });

  test.each([{ num_sessions: 0 }, { num_sessions: 1001 }, {}])(
    'start_batch of %j answers 400',
    async (argument) => {
      expect((await call('upload_session/start_batch', argument)).status).toBe(400);
    },
  );
});
